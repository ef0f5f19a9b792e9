"""Ways for a single holder to make a table of rows with differential privacy: ours, and methods for comparison.

MST is a compact version of ours with the model of :mod:`anonymize.synthetic.fit`: columns, then a tree over all
columns, class included, then the pairs of the tree; a third of the budget each (McKenna, Miklau, Sheldon, JPC
2021). Noise is drawn in floating point, so the result is not for release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np

from anonymize.dp.accounting import Dp
from anonymize.dp.diffgen import release_single
from anonymize.dp.noise import exact_noise
from anonymize.dp.noisy_table import norm_sub
from anonymize.synthetic.bins import bins_of
from anonymize.synthetic.draw import assigned, drawn_leaves
from anonymize.synthetic.fit import Floats, fitted
from anonymize.synthetic.marginals import Axis, Marginal, closing_none, leaf_marginals, pairs_of, score
from anonymize.synthetic.opened import Measured, Opened
from anonymize.synthetic.requirement import Design, Synthetic
from anonymize.table import CodedTable, Ints, QidColumn, Schema
from anonymize.taxonomy import Node, from_nested
from benchmarks.synthetic_aim import aim_rows, zcdp
from benchmarks.synthetic_tables import Coded
from benchmarks.synthetic_utility import synthetic_rows
from crypto.rng import Prg

MAX_ROWS = 100_000
_NOTHING = Fraction(1, 10**6)
"""The rate of an unmeasured marginal."""
Method = Callable[[Coded, Fraction, int], Coded]


def ours(edges: int | None) -> Method:
    """Return `method: synthetic`."""

    def made(train: Coded, epsilon: Fraction, seed: int) -> Coded:
        return synthetic_rows(train, Synthetic(epsilon, edges, max_rows=MAX_ROWS), seed)[1]

    return made


def general(train: Coded, epsilon: Fraction, seed: int) -> Coded:
    """Run the same with goal general: the class is a column like others."""
    return with_class(ours(None)(without_class(train), epsilon, seed), train.schema)


def diffgen(train: Coded, epsilon: Fraction, seed: int) -> Coded:
    """Run DiffGen with h = 10, rows spread evenly inside cells. A missing number counts in the lowest cell."""
    rng = np.random.default_rng(seed)
    asked = Dp(epsilon, 10, max_rows=MAX_ROWS)
    found = release_single(
        _all_numbers(train).table.collapsed(), asked, exact_noise(Prg(seed.to_bytes(16, "little")))
    )
    rows = np.repeat(np.arange(len(found.table.counts)), norm_sub(found.table.counts))
    columns, names = found.table.cells.columns, [column.name for column in train.schema.qid]
    leaves = [
        _spread(column, nodes, columns[name].labels, columns[name].codes[rows], rng)
        for column, nodes, name in zip(train.schema.qid, found.outcome.cut.nodes, names, strict=True)
    ]
    assert train.schema.class_name is not None
    classes = columns[train.schema.class_name]
    return Coded(train.schema, np.array(leaves).T, classes.codes[rows].astype(np.int64))


def _all_numbers(rows: Coded) -> Coded:
    """Remove the leaf for missing numbers from every column."""
    columns = tuple(replace(column, missing_cell=False) for column in rows.schema.qid)
    known = rows.leaves < np.array([column.n_leaves for column in columns])
    return Coded(replace(rows.schema, qid=columns), np.where(known, rows.leaves, 0), rows.classes)


def _spread(
    column: QidColumn, nodes: Sequence[Node], labels: Sequence[str], codes: Ints, rng: np.random.Generator
) -> Ints:
    """Draw a uniform leaf of every row's node."""
    of_label = {column.label(node): node for node in nodes}
    first = np.array([of_label[label].first for label in labels])[codes]
    size = np.array([of_label[label].n_leaves for label in labels])[codes]
    found: Ints = first + (rng.random(len(codes)) * size).astype(np.int64)
    return found


# ---- MST


def mst(*, gaussian: bool) -> Method:
    """Return MST with pure ε, or with (ε, 10^−9)-DP by zCDP."""

    def made(train: Coded, epsilon: Fraction, seed: int) -> Coded:
        rows = without_class(train)
        opened = _mst_opened(rows.table, _Spending(float(epsilon), gaussian, np.random.default_rng(seed)))
        classes, leaves = drawn_leaves(fitted(rows.schema, opened), Prg(seed.to_bytes(16, "little")))
        return with_class(Coded(rows.schema, np.array(leaves).T, classes), train.schema)

    return made


class _Spending:
    """Thirds of a budget."""

    def __init__(self, epsilon: float, gaussian: bool, rng: np.random.Generator) -> None:
        self._rng = rng
        self._gaussian = gaussian
        self._third = (zcdp(epsilon) if gaussian else epsilon) / 3

    def measured(self, marginals: Sequence[Marginal], table: CodedTable) -> tuple[Measured, ...]:
        """Measure with a third of the budget."""
        scale = sqrt(len(marginals) / (2 * self._third)) if self._gaussian else len(marginals) / self._third
        draw = self._rng.normal if self._gaussian else self._rng.laplace
        variance = scale**2 if self._gaussian else 2 * scale**2
        rate = Fraction(sqrt(2 / variance)).limit_denominator(10**9)
        return tuple(
            Measured(m, np.rint(m.counts(table) + draw(0, scale, m.shape)).astype(np.int64), rate)
            for m in marginals
        )

    def best(self, scores: Sequence[float], picks: int) -> int:
        """Pick by the exponential mechanism, with a third of the budget for all ``picks``; a score moves by 1."""
        epsilon = sqrt(8 * self._third / picks) if self._gaussian else self._third / picks
        return int(np.argmax(np.array(scores) * epsilon / 2 + self._rng.gumbel(size=len(scores))))


def aim(train: Coded, epsilon: Fraction, seed: int) -> Coded:
    """Run bins with a tenth of the budget, AIM over the bins with the rest."""
    rows, rho, rng = without_class(train), zcdp(float(epsilon)), np.random.default_rng(seed)
    scale = sqrt(len(rows.schema.qid) / (2 * 0.1 * rho))
    axes, shares = list[Axis](), list[Floats]()
    for i, (column, marginal) in enumerate(zip(rows.schema.qid, leaf_marginals(rows.schema), strict=True)):
        noisy = np.rint(marginal.counts(rows.table)[:, 0] + rng.normal(0, scale, marginal.size)).astype(
            np.int64
        )
        axes.append(bins_of(i, column, noisy, max(1, int(2 * scale / sqrt(2))), Design()))
        shares.append(np.maximum(noisy, 0).astype(np.float64))
    bins = np.array([np.array(axis.bins)[leaves] for axis, leaves in zip(axes, rows.leaves.T, strict=True)]).T
    made = aim_rows(bins, [axis.n_bins for axis in axes], len(axes) - 1, 0.9 * rho, seed)
    inside = (
        (np.array(axis.bins) == np.arange(axis.n_bins)[:, None]) * share
        for axis, share in zip(axes, shares, strict=True)
    )
    prg = Prg((seed + (1 << 32)).to_bytes(16, "little"))
    leaves = [assigned(groups, weights, prg) for groups, weights in zip(made.T, inside, strict=True)]
    return with_class(
        Coded(rows.schema, np.array(leaves).T, np.zeros(len(made), dtype=np.int64)), train.schema
    )


def _mst_opened(table: CodedTable, spending: _Spending) -> Opened:
    leaves = spending.measured(leaf_marginals(table.schema), table)
    design = Design()
    theta = max(1, int(design.theta / leaves[0].rate))
    axes = [
        bins_of(i, column, measured.counts[:, 0], theta, design)
        for i, (column, measured) in enumerate(zip(table.schema.qid, leaves, strict=True))
    ]
    pairs, n_columns = pairs_of(axes, 1), len(axes)
    scores = [_off(pair, table, leaves) for pair in pairs]
    chosen: list[int] = []
    while len(chosen) < n_columns - 1:
        left = closing_none([pair.columns for pair in pairs], chosen)
        chosen.append(left[spending.best([scores[i] for i in left], n_columns - 1)])
    unmeasured = tuple(
        Measured(Marginal((axis,), 1), np.zeros((axis.n_bins, 1), dtype=np.int64), _NOTHING) for axis in axes
    )
    return Opened(leaves, unmeasured, spending.measured([pairs[i] for i in chosen], table))


def _off(pair: Marginal, table: CodedTable, leaves: Sequence[Measured]) -> float:
    """Return the distance of a pair from the product of the measurements of its columns."""
    one, other = (_binned(axis, leaves[axis.column]) for axis in pair.axes)
    total = max(1.0, (one.sum() + other.sum()) / 2)
    expected = np.rint(one[:, None, None] * other[None, :, None] / total).astype(np.int64)
    return score(pair.counts(table), expected, 0)


def _binned(axis: Axis, measured: Measured) -> Ints:
    found = np.zeros(axis.n_bins, dtype=np.int64)
    np.add.at(found, np.array(axis.bins), measured.counts[:, 0])
    return norm_sub(found)


def without_class(rows: Coded) -> Coded:
    """Append the class as the last column."""
    assert rows.schema.class_name is not None
    values = from_nested({"*": list(rows.schema.classes)}, rows.schema.class_name, missing_leaf=False)
    schema = Schema((*rows.schema.qid, QidColumn(rows.schema.class_name, values)), None, ("",))
    return Coded(schema, np.hstack([rows.leaves, rows.classes[:, None]]), np.zeros_like(rows.classes))


def with_class(rows: Coded, schema: Schema) -> Coded:
    """Take the last column as the class again."""
    return Coded(schema, rows.leaves[:, :-1], rows.leaves[:, -1])


METHODS: Mapping[str, Method] = {
    "synthetic": ours(None),
    "no edges (naive Bayes)": ours(0),
    "goal general": general,
    "DiffGen": diffgen,
    "MST": mst(gaussian=False),
    "MST zCDP": mst(gaussian=True),
    "AIM zCDP": aim,
}
