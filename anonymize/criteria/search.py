"""Exact search for what ruling values out tells, in one holder's groups: all groups side by side (semantics §10.13).

Asked is whether for some set X of values and some protected value s outside of it more than a share p/q of the
records with none of X have s. The sets are too many to try them all, and most cannot matter. Let n records be left,
n_v of them with value v, and e further values to be ruled out. Ruling out x takes at most n_x records away, so s
needs q·n_s > p·(n − the e greatest n_v); and as long as s is within its share, d = p·n − q·n_s >= 0, some x of every
set of at most e values that breaks it has e·p·n_x > d. Whoever tries those alone finds a set if there is one.

Checking this is NP-hard for three or more columns and sets of any size, so the size is limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.table import Ints, tally

_MOST_ITEMS = 1 << 21
"""Rows that are held at a time for sets of values."""
_MOST_COUNTS = 1 << 22
"""Counts of values that are held at a time."""
_FAR = 1 << 62


@dataclass(frozen=True)
class RuledColumn:
    """A sensitive column some of whose values somebody can rule out.

    number:     of the column in the schema. n_values: its values, 0 … n_values - 1.
    protected:  those that must not be inferred.
    bound:      the greatest share of these; None: any but all.
    at_most:    how many of its values are ruled out and inferred together; None: any number.
    """

    number: int
    n_values: int
    protected: tuple[int, ...]
    bound: Fraction | None = None
    at_most: int | None = None


@dataclass(frozen=True)
class _Nodes:
    """Groups without the records of values that are ruled out.

    group:   that each is made of: int64, shape (n_nodes,).
    used:    how many values of every column are ruled out: int64, shape (n_nodes, n_columns).
    node:    of every item left. items: their numbers. Shape (n_items,).
    """

    group: Ints
    used: Ints
    node: Ints
    items: Ints

    @property
    def n_nodes(self) -> int:
        return len(self.group)

    def among(self, chosen: Bools) -> _Nodes:
        """Some of the nodes; chosen: shape (n_nodes,)."""
        number = np.cumsum(chosen) - 1
        kept = chosen[self.node]
        return _Nodes(self.group[chosen], self.used[chosen], number[self.node[kept]], self.items[kept])


@dataclass(frozen=True)
class RuledOutSearch:
    """Whether somebody who rules out at most ``most`` values infers too much of a member of a group.

    columns:  those that values are ruled out of, by number in the schema.
    """

    ruled: tuple[RuledColumn, ...]
    most: int

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column.number for column in self.ruled)

    @property
    def width(self) -> int:
        """Counts that it takes of a group."""
        return sum(column.n_values for column in self.ruled)

    @property
    def factor(self) -> int:
        """How many times the number of records a number that it computes can be."""
        return max((column.bound.denominator for column in self.ruled if column.bound), default=1)

    def broken(self, keys: Ints, n_keys: int, codes: Sequence[Ints], weights: Ints | None) -> Bools:
        """Which groups tell too much: shape (n_keys,).

        keys:     the group of every item. codes: by column the value of each. weights: records that each stands for;
                  None: 1. Shape (n_items,) each.
        """
        found = np.zeros(n_keys, dtype=bool)
        run = _Run(self, codes, weights, len(keys), found)
        used = np.zeros((n_keys, len(self.ruled)), dtype=np.int64)
        run.search(_Nodes(np.arange(n_keys), used, keys, np.arange(len(keys))), self.most)
        return found


class _Run:
    """One call: which groups are broken is written to ``found``."""

    def __init__(
        self,
        search: RuledOutSearch,
        codes: Sequence[Ints],
        weights: Ints | None,
        n_items: int,
        found: Bools,
    ) -> None:
        ruled = search.ruled
        sizes = np.array([column.n_values for column in ruled], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        records = n_items if weights is None else int(weights.sum())
        self._found = found
        self._weights = weights
        self._values = [start + own for start, own in zip(starts, codes, strict=True)]
        self._column = np.repeat(np.arange(len(ruled)), sizes)
        self._limits = np.array([_FAR if c.at_most is None else c.at_most for c in ruled], dtype=np.int64)
        protected = np.concatenate(
            [starts[i] + np.array(c.protected, dtype=np.int64) for i, c in enumerate(ruled)]
        )
        self._protected = protected.astype(np.int64)
        # "Any but all" of at most n records is a share of n / (n + 1).
        bounds = [Fraction(records, records + 1) if c.bound is None else c.bound for c in ruled]
        of_value = self._column[self._protected]
        self._p = np.array([bound.numerator for bound in bounds], dtype=np.int64)[of_value]
        self._q = np.array([bound.denominator for bound in bounds], dtype=np.int64)[of_value]

    def search(self, nodes: _Nodes, left: int) -> None:
        """Look at nodes of which ``left`` further values may be ruled out."""
        n, counts = self._counted(nodes)
        free = nodes.used < self._limits
        held = np.where(free[:, self._column[self._protected]], counts[:, self._protected], 0)
        self._found[nodes.group[(self._q * held > self._p * n[:, None]).any(axis=1)]] = True
        if left == 0:
            return
        counts = np.where(free[:, self._column], counts, 0)
        most = np.sort(counts, axis=1)[:, ::-1][:, :left]
        rest = np.maximum(n - most.sum(axis=1), 0)
        in_reach = self._q * held > self._p * rest[:, None]
        chosen = in_reach.any(axis=1) & ~self._found[nodes.group]
        if not chosen.any():
            return
        held, in_reach, n = held[chosen], in_reach[chosen], n[chosen]
        least = self._least(n, held, in_reach, most[chosen, : left - 1].sum(axis=1), left)
        nodes = nodes.among(chosen)
        for part in self._without(nodes, *np.nonzero(counts[chosen] > least[:, None])):
            self.search(part, left - 1)

    def _least(self, n: Ints, held: Ints, in_reach: Bools, others: Ints, left: int) -> Ints:
        """More records than this has some value of every set that breaks the share of a value in reach.

        held: of the protected values, in_reach likewise: shape (n_nodes, n_protected). others: records that the other
        values of a set have at most: shape (n_nodes,).
        """
        p = np.maximum(self._p, 1)
        beside = (self._p * n[:, None] - self._q * held) // p // left
        needed = np.where(in_reach, beside, _FAR).min(axis=1)
        largest = np.where(in_reach, -(-self._q * held // p), 0).max(axis=1)
        least: Ints = np.maximum(np.maximum(needed, n - others - largest), 0)
        return least

    def _counted(self, nodes: _Nodes) -> tuple[Ints, Ints]:
        """Records of every node, and those with every value: shape (n_nodes,) and (n_nodes, n_values)."""
        weights = None if self._weights is None else self._weights[nodes.items]
        n = tally(nodes.node, weights, nodes.n_nodes)
        width = len(self._column)
        counts = np.zeros(nodes.n_nodes * width, dtype=np.int64)
        for values in self._values:
            counts += tally(nodes.node * width + values[nodes.items], weights, len(counts))
        return n, counts.reshape(nodes.n_nodes, width)

    def _without(self, nodes: _Nodes, node: Ints, value: Ints) -> Iterator[_Nodes]:
        """Nodes without the records of one value each, so many at a time that all are held easily."""
        order = np.argsort(nodes.node, kind="stable")
        sizes = np.bincount(nodes.node, minlength=nodes.n_nodes)
        starts = np.cumsum(sizes) - sizes
        each = np.maximum(sizes[node], len(self._column) * _MOST_ITEMS // _MOST_COUNTS)
        for start, stop in _batches(each):
            chosen = ~self._found[nodes.group[node[start:stop]]]
            of, out = node[start:stop][chosen], value[start:stop][chosen]
            number = np.repeat(np.arange(len(of)), sizes[of])
            first = np.cumsum(sizes[of]) - sizes[of]
            items = nodes.items[order[np.arange(len(number)) + np.repeat(starts[of] - first, sizes[of])]]
            stays = np.ones(len(items), dtype=bool)
            for column, values in enumerate(self._values):
                at = self._column[out[number]] == column
                stays[at] = values[items[at]] != out[number[at]]
            used = nodes.used[of]
            used[np.arange(len(of)), self._column[out]] += 1
            yield _Nodes(nodes.group[of], used, number[stays], items[stays])


def _batches(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Neighbours of about ``_MOST_ITEMS`` together; at least one."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _MOST_ITEMS, side="right")))
        yield start, stop
        start = stop
