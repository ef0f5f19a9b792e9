"""A compact AIM for comparison: adaptive selection of marginals with a graphical model in between.

McKenna, Mullins, Sheldon, Miklau, *AIM: An Adaptive and Iterative Mechanism for Differentially Private Synthetic
Data*, VLDB 2022, with (ε, 10^−9) by zCDP. Differences from the authors' program: the workload is all pairs of
columns, class included, and all triples with the class; a model has at most 20,000 cells; fitting is mirror descent
with few iterations a round. Noise is drawn in floating point, so the result is not for release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import log, pi, prod, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.synthetic.draw import assigned
from anonymize.table import Ints
from crypto.rng import Prg

Clique: TypeAlias = tuple[int, ...]
"""Columns, ascending."""
Floats: TypeAlias = NDArray[np.float64]
DELTA = 1e-9
MOST_CELLS = 20_000
ITERATIONS, LAST_ITERATIONS = 30, 300


@dataclass(frozen=True)
class Noisy:
    """Counts of a clique with Gaussian noise of the standard deviation ``sigma``."""

    clique: Clique
    counts: Floats
    sigma: float


def zcdp(epsilon: float) -> float:
    """Return the ρ of zero-concentrated DP that is (ε, DELTA)-DP by the simple bound."""
    return float((sqrt(log(1 / DELTA) + epsilon) - sqrt(log(1 / DELTA))) ** 2)


# ---- the graphical model


class Tree:
    """A junction tree of cliques over columns of given sizes."""

    def __init__(self, sizes: Sequence[int], cliques: Sequence[Clique]) -> None:
        self.sizes = sizes
        self.nodes = _maximal(_triangulated(len(sizes), cliques))
        self.links = self._spanning()

    @property
    def n_cells(self) -> int:
        return sum(prod(self.sizes[c] for c in node) for node in self.nodes)

    def _spanning(self) -> list[tuple[int, int]]:
        """Return (above, below) for every node but the first, in top-down order; largest separators first (Prim)."""
        found, inside = [], [0]
        while len(inside) < len(self.nodes):
            pairs = [(a, b) for a in inside for b in range(len(self.nodes)) if b not in inside]
            best = max(pairs, key=lambda pair: len(set(self.nodes[pair[0]]) & set(self.nodes[pair[1]])))
            found.append(best)
            inside.append(best[1])
        return found

    def marginals(self, potentials: Mapping[Clique, Floats], total: float) -> list[Floats]:
        """Run belief propagation; return the table of every node, each with the sum ``total``."""
        beliefs = [np.zeros([self.sizes[c] for c in node]) for node in self.nodes]
        for clique, potential in potentials.items():
            place = next(i for i, node in enumerate(self.nodes) if set(clique) <= set(node))
            beliefs[place] = beliefs[place] + _spread(potential, clique, self.nodes[place])
        sent: dict[int, Floats] = {}
        for above, below in reversed(self.links):
            sent[below] = self._message(beliefs[below], below, above)
            beliefs[above] = beliefs[above] + _spread(
                sent[below], self._between(above, below), self.nodes[above]
            )
        for above, below in self.links:
            message = self._message(beliefs[above], above, below) - sent[below]
            beliefs[below] = beliefs[below] + _spread(message, self._between(above, below), self.nodes[below])
        tables = [np.exp(belief - belief.max()) for belief in beliefs]
        return [table * (total / table.sum()) for table in tables]

    def _between(self, one: int, other: int) -> Clique:
        return tuple(sorted(set(self.nodes[one]) & set(self.nodes[other])))

    def _message(self, belief: Floats, of: int, to: int) -> Floats:
        axes = tuple(i for i, c in enumerate(self.nodes[of]) if c not in self.nodes[to])
        top = belief.max()
        found: Floats = np.log(np.exp(belief - top).sum(axis=axes) + 1e-300) + top
        return found

    def table(self, tables: Sequence[Floats], clique: Clique) -> Floats:
        """Return the table of a clique: from a node with all its columns, else from several nodes by independence."""
        for node, table in zip(self.nodes, tables, strict=True):
            if set(clique) <= set(node):
                return _summed(table, node, clique)
        return self._eliminated(tables, clique)

    def _eliminated(self, tables: Sequence[Floats], clique: Clique) -> Floats:
        """Return columns of several nodes: conditionals along the tree, all other columns summed out on the way."""
        below: dict[int, list[tuple[Clique, Floats]]] = {i: [] for i in range(len(self.nodes))}
        for above, node in reversed(self.links):
            between = self._between(above, node)
            if not set(clique) & {
                c for part in (self.nodes[node], *(p for p, _ in below[node])) for c in part
            } - {*between}:
                continue  # this part of the tree adds up to one
            margin = _summed(tables[node], self.nodes[node], between)
            given = tables[node] / np.maximum(_spread(margin, between, self.nodes[node]), 1e-300)
            columns, factor = _product([(self.nodes[node], given), *below[node]], self.sizes)
            kept = tuple(c for c in columns if c in between or c in clique)
            below[above].append((kept, _summed(factor, columns, kept)))
        columns, factor = _product([(self.nodes[0], tables[0]), *below[0]], self.sizes)
        return _summed(factor, columns, clique)

    def drawn(self, tables: Sequence[Floats], n_rows: int, rng: Prg) -> Ints:
        """Draw rows, shape (n_rows, n_columns): each node given the columns shared with the node above."""
        rows: dict[int, Ints] = {}
        for node, shared in [(0, ()), *((b, self._between(a, b)) for a, b in self.links)]:
            new = tuple(c for c in self.nodes[node] if c not in shared)
            order = [self.nodes[node].index(c) for c in (*shared, *new)]
            shape = [self.sizes[c] for c in new]
            weights = tables[node].transpose(order).reshape(-1, prod(shape))
            groups = np.zeros(n_rows, dtype=np.int64)
            for column in shared:
                groups = groups * self.sizes[column] + rows[column]
            values = np.unravel_index(assigned(groups, weights, rng), shape)
            rows.update(zip(new, (np.asarray(v, dtype=np.int64) for v in values), strict=True))
        return np.array([rows[c] for c in range(len(self.sizes))]).T


def _triangulated(n_columns: int, cliques: Sequence[Clique]) -> list[Clique]:
    """Return cliques of a chordal graph that covers ``cliques``: columns are removed by fewest new links."""
    near = {c: {o for clique in cliques if c in clique for o in clique} - {c} for c in range(n_columns)}
    found = []
    while near:
        column = min(
            near, key=lambda c: (sum(b not in near[a] for a, b in combinations(near[c], 2)), len(near[c]), c)
        )
        found.append(tuple(sorted({column, *near[column]})))
        for other in near[column]:
            near[other] |= near[column] - {other}
            near[other].discard(column)
        del near[column]
    return found


def _maximal(cliques: Sequence[Clique]) -> list[Clique]:
    distinct = sorted(set(cliques), key=len, reverse=True)
    return [c for i, c in enumerate(distinct) if not any(set(c) <= set(o) for o in distinct[:i])]


def _spread(table: Floats, clique: Clique, node: Clique) -> Floats:
    """Return a table of some columns with an axis for each column of a node."""
    return table.reshape([table.shape[clique.index(c)] if c in clique else 1 for c in node])


def _summed(table: Floats, node: Clique, clique: Clique) -> Floats:
    found: Floats = table.sum(axis=tuple(i for i, c in enumerate(node) if c not in clique))
    return found


def _product(factors: Sequence[tuple[Clique, Floats]], sizes: Sequence[int]) -> tuple[Clique, Floats]:
    columns = tuple(sorted({c for clique, _ in factors for c in clique}))
    spread = [_spread(table, clique, columns) for clique, table in factors]
    return columns, reduce(np.multiply, spread, np.ones([sizes[c] for c in columns]))


class Fit:
    """Potentials moved towards the measurements by mirror descent."""

    def __init__(self, sizes: Sequence[int], total: float) -> None:
        self.sizes = sizes
        self.total = total
        self.potentials: dict[Clique, Floats] = {}
        self.measured: list[Noisy] = []
        self.tree = Tree(sizes, [(c,) for c in range(len(sizes))])
        self.tables: list[Floats] = []
        self._step = 1.0

    def add(self, found: Noisy) -> None:
        self.measured.append(found)
        self.potentials.setdefault(found.clique, np.zeros_like(found.counts))
        self.tree = Tree(self.sizes, list(self.potentials))

    def _loss(self, tables: Sequence[Floats]) -> tuple[float, dict[Clique, Floats]]:
        """Return half the squared distances by variance, and their gradient by clique."""
        loss, gradient = 0.0, {clique: np.zeros_like(p) for clique, p in self.potentials.items()}
        for noisy in self.measured:
            off = self.tree.table(tables, noisy.clique) - noisy.counts
            loss += float((off**2).sum()) / (2 * noisy.sigma**2)
            gradient[noisy.clique] += off / noisy.sigma**2
        return loss, gradient

    def run(self, iterations: int) -> None:
        """Fit the potentials. The step grows while the loss falls, else the step is halved."""
        tables = self.tree.marginals(self.potentials, self.total)
        loss, gradient = self._loss(tables)
        for _ in range(iterations):
            moved = {c: p - self._step * gradient[c] / self.total for c, p in self.potentials.items()}
            found = self.tree.marginals(moved, self.total)
            less, after = self._loss(found)
            if less <= loss:
                self.potentials, tables, loss, gradient = moved, found, less, after
                self._step *= 1.3
            else:
                self._step /= 2
        self.tables = tables


# ---- the mechanism


def aim_rows(rows: Ints, sizes: Sequence[int], of_class: int, rho: float, seed: int) -> Ints:
    """Return synthetic rows of the same columns. rows: int64, shape (n_rows, n_columns); of_class: the class's
    column.
    """
    rng, n = np.random.default_rng(seed), len(sizes)
    workload = [*combinations(range(n), 2)]
    workload += [tuple(sorted((of_class, a, b))) for a, b in workload if of_class not in (a, b)]
    most_rounds = 16 * n
    sigma, choice = sqrt(most_rounds / (2 * 0.9 * rho)), sqrt(8 * 0.1 * rho / most_rounds)
    exact = {clique: _counts(rows, sizes, clique) for clique in (*((c,) for c in range(n)), *workload)}
    weights = {r: sum(len(set(r) & set(s)) for s in workload) for r in workload}
    singles = [Noisy((c,), exact[(c,)] + rng.normal(0, sigma, sizes[c]), sigma) for c in range(n)]
    fit = Fit(sizes, max(1.0, float(np.median([noisy.counts.sum() for noisy in singles]))))
    for noisy in singles:
        fit.add(noisy)
    fit.run(100)
    left = rho - n / (2 * sigma**2)
    while left > 0:
        if left < 2 * (1 / (2 * sigma**2) + choice**2 / 8):  # the last round takes all
            sigma, choice = 1 / sqrt(2 * 0.9 * left), sqrt(8 * 0.1 * left)
        left -= 1 / (2 * sigma**2) + choice**2 / 8
        left = left if left > 1e-12 else 0.0
        clique = _chosen(fit, exact, weights, sigma, choice, 1 - left / rho, rng)
        before = fit.tree.table(fit.tables, clique)
        fit.add(Noisy(clique, exact[clique] + rng.normal(0, sigma, exact[clique].shape), sigma))
        fit.run(ITERATIONS)
        moved = np.abs(fit.tree.table(fit.tables, clique) - before).sum()
        if moved <= sqrt(2 / pi) * sigma * before.size:
            sigma, choice = sigma / 2, choice * 2
    fit.run(LAST_ITERATIONS)
    return fit.tree.drawn(fit.tables, round(fit.total), Prg(seed.to_bytes(16, "little")))


def _counts(rows: Ints, sizes: Sequence[int], clique: Clique) -> Floats:
    shape = [sizes[c] for c in clique]
    keys = np.ravel_multi_index([rows[:, c] for c in clique], shape)
    return np.bincount(keys, minlength=prod(shape)).reshape(shape).astype(np.float64)


def _chosen(
    fit: Fit,
    exact: Mapping[Clique, Floats],
    weights: Mapping[Clique, int],
    sigma: float,
    choice: float,
    spent: float,
    rng: np.random.Generator,
) -> Clique:
    """Choose by the exponential mechanism, among cliques with which the model stays small."""
    small = [r for r in weights if Tree(fit.sizes, [*fit.potentials, r]).n_cells <= spent * MOST_CELLS]
    small = small or [min(weights, key=lambda r: exact[r].size)]
    scores = []
    for clique in small:
        off = np.abs(exact[clique] - fit.tree.table(fit.tables, clique)).sum()
        scores.append(weights[clique] * (off - sqrt(2 / pi) * sigma * exact[clique].size))
    scale = max(weights[clique] for clique in small)
    return small[int(np.argmax(choice * np.array(scores) / (2 * scale) + rng.gumbel(size=len(small))))]
