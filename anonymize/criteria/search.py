"""Exact search for inferences after exclusion of values, in all groups of a holder side by side (semantics §10.13).

Is there a set X of values and a protected value s outside X such that more than a share p/q of the records
without X have s? There are too many sets to try, and most cannot matter. Let n records be left, n_v with
value v, and e further values to be excluded. The exclusion of x removes at most n_x records, so s needs q·n_s
> p·(n − the e greatest n_v). While s is within its share, d = p·n − q·n_s >= 0, every set of at most e values
that breaks the share has some x with e·p·n_x > d. A search over these x alone finds a set if there is one.

The problem is NP-hard for three or more columns and sets of any size, so the size is limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools, Weights
from anonymize.table import Ints, tally

_MOST_ITEMS = 1 << 21
"""Most rows in memory at once for sets of values."""
_MOST_COUNTS = 1 << 22
"""Most counts of values in memory at once."""
_FAR = 1 << 62


@dataclass(frozen=True)
class RuledColumn:
    """Sensitive column with values that somebody can exclude.

    number:     number of the column in the schema. n_values: number of values, 0 … n_values - 1.
    protected:  values that must not be inferred.
    bound:      greatest share of a protected value; None: any share but all.
    at_most:    values of the column excluded and inferred together; None: any number.
    """

    number: int
    n_values: int
    protected: tuple[int, ...]
    bound: Fraction | None = None
    at_most: int | None = None


@dataclass(frozen=True)
class _Nodes:
    """Groups without the records of excluded values.

    group:    original group: int64, shape (n_nodes,).
    used:     excluded values of every column: int64, shape (n_nodes, n_columns).
    node:     of every item left: shape (n_items,). values: of every item: int32, shape (n_columns, n_items).
    weights:  records of every item; None: 1.
    """

    group: Ints = field(repr=False)
    used: Ints = field(repr=False)
    node: Ints = field(repr=False)
    values: NDArray[np.int32] = field(repr=False)
    weights: Weights | None = field(repr=False)

    @property
    def n_nodes(self) -> int:
        return len(self.group)

    def among(self, chosen: Bools) -> _Nodes:
        """Return the chosen nodes; chosen: shape (n_nodes,)."""
        number = np.cumsum(chosen) - 1
        kept = np.flatnonzero(chosen[self.node])
        return self._of(self.group[chosen], self.used[chosen], number[self.node[kept]], kept)

    def in_order(self) -> _Nodes:
        """Sort the items node by node."""
        if (self.node[1:] >= self.node[:-1]).all():
            return self
        order = np.argsort(self.node, kind="stable")
        return self._of(self.group, self.used, self.node[order], order)

    def without(self, of: Ints, columns: Ints, values: Ints) -> _Nodes:
        """Return each node of ``of``, in order, without the records with the given value of the given column."""
        sizes = np.bincount(self.node, minlength=self.n_nodes)
        starts, own = np.cumsum(sizes) - sizes, sizes[of]
        item = np.arange(int(own.sum()))
        item += np.repeat(starts[of] - (np.cumsum(own) - own), own)
        in_column = np.repeat(columns * len(self.node), own)
        in_column += item
        stays = np.flatnonzero(self.values.reshape(-1)[in_column] != np.repeat(values.astype(np.int32), own))
        used = self.used[of]
        used[np.arange(len(of)), columns] += 1
        return self._of(self.group[of], used, np.repeat(np.arange(len(of)), own)[stays], item[stays])

    def _of(self, group: Ints, used: Ints, node: Ints, items: Ints) -> _Nodes:
        weights = None if self.weights is None else self.weights[items]
        return _Nodes(group, used, node, self.values[:, items], weights)


@dataclass(frozen=True)
class RuledOutSearch:
    """Search for groups with too much inference about a member after exclusion of at most ``most`` values.

    columns:  numbers in the schema of the columns with excluded values.
    """

    ruled: tuple[RuledColumn, ...]
    most: int

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column.number for column in self.ruled)

    @property
    def width(self) -> int:
        """Counts per group."""
        return sum(column.n_values for column in self.ruled)

    @property
    def factor(self) -> int:
        """Largest multiple of the number of records that a computed number can reach."""
        return max((column.bound.denominator for column in self.ruled if column.bound), default=1)

    def broken(self, keys: Ints, n_keys: int, codes: Sequence[Ints], weights: Weights | None) -> Bools:
        """Return True for the groups with too much inference: shape (n_keys,).

        keys:     group of every item. codes: by column, value of each item. weights: records of each item; None: 1.
                  Shape (n_items,) each.
        """
        found = np.zeros(n_keys, dtype=bool)
        records = len(keys) if weights is None else int(weights.sum())
        run = _Run(self.ruled, records, found)
        values = np.stack(
            [start + own.astype(np.int32) for start, own in zip(run.starts, codes, strict=True)]
        )
        used = np.zeros((n_keys, len(self.ruled)), dtype=np.int64)
        run.search(_Nodes(np.arange(n_keys), used, keys, values, weights), self.most)
        return found


class _Run:
    """Single call. ``found`` receives the broken groups. The values of all columns are numbered consecutively."""

    def __init__(self, ruled: Sequence[RuledColumn], records: int, found: Bools) -> None:
        sizes = np.array([column.n_values for column in ruled])
        self.starts = (np.cumsum(sizes) - sizes).astype(np.int32)
        self._found = found
        self._column = np.repeat(np.arange(len(ruled)), sizes)
        self._limits = np.array([_FAR if c.at_most is None else c.at_most for c in ruled], dtype=np.int64)
        protected = [self.starts[i] + value for i, c in enumerate(ruled) for value in c.protected]
        self._protected = np.array(protected, dtype=np.int64)
        # "Any but all" of at most n records is a share of n / (n + 1).
        bounds = [Fraction(records, records + 1) if c.bound is None else c.bound for c in ruled]
        of_value = self._column[self._protected]
        self._p = np.array([bound.numerator for bound in bounds], dtype=np.int64)[of_value]
        self._q = np.array([bound.denominator for bound in bounds], dtype=np.int64)[of_value]

    def search(self, nodes: _Nodes, left: int) -> None:
        """Search nodes for which ``left`` further values may be excluded."""
        n, counts = self._counted(nodes)
        free = nodes.used < self._limits
        held = np.where(free[:, self._column[self._protected]], counts[:, self._protected], 0)
        self._found[nodes.group[(self._q * held > self._p * n[:, None]).any(axis=1)]] = True
        if left == 0:
            return
        counts = np.where(free[:, self._column], counts, 0)
        most = _greatest(counts, left)
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
        """Return a lower limit: every set that breaks the share of a value in reach has a value with more records.

        held: of the protected values, in_reach likewise: shape (n_nodes, n_protected). others: most records of a
        set's other values: shape (n_nodes,).
        """
        p = np.maximum(self._p, 1)
        beside = (self._p * n[:, None] - self._q * held) // p // left
        needed = np.where(in_reach, beside, _FAR).min(axis=1)
        largest = np.where(in_reach, -(-self._q * held // p), 0).max(axis=1)
        least: Ints = np.maximum(np.maximum(needed, n - others - largest), 0)
        return least

    def _counted(self, nodes: _Nodes) -> tuple[Ints, Ints]:
        """Count the records of every node, and with every value: shape (n_nodes,) and (n_nodes, n_values)."""
        width = len(self._column)
        keys = nodes.node * width
        counts = np.zeros(nodes.n_nodes * width, dtype=np.int64)
        for values in nodes.values:
            counts += tally(keys + values, nodes.weights, len(counts))
        by_node = counts.reshape(nodes.n_nodes, width)
        of_first = self._column == 0
        return by_node[:, of_first].sum(axis=1), by_node

    def _without(self, nodes: _Nodes, node: Ints, value: Ints) -> Iterator[_Nodes]:
        """Yield nodes without the records of a value each, in batches that fit in memory."""
        nodes = nodes.in_order()
        sizes = np.bincount(nodes.node, minlength=nodes.n_nodes)
        each = np.maximum(sizes[node], len(self._column) * _MOST_ITEMS // _MOST_COUNTS)
        for start, stop in _batches(each):
            still = start + np.flatnonzero(~self._found[nodes.group[node[start:stop]]])
            yield nodes.without(node[still], self._column[value[still]], value[still])


def _batches(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Yield runs of neighbours with about ``_MOST_ITEMS`` together, at least one neighbour each."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _MOST_ITEMS, side="right")))
        yield start, stop
        start = stop


def _greatest(counts: Ints, how_many: int) -> Ints:
    """Return the greatest counts of every row, falling: shape (n_rows, how_many), or fewer."""
    most = min(how_many, counts.shape[1])
    if most == 1:
        return np.asarray(counts.max(axis=1, keepdims=True))
    greatest: Ints = np.sort(np.partition(counts, -most, axis=1)[:, -most:], axis=1)[:, ::-1]
    return greatest
