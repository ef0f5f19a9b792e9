"""Released table of a differentially private run: cells with signed noisy counts.

A cell is a generalized value of every quasi-identifier and a class value. Every cell of the product is released,
occupied or not; beyond the public limit, only cells with a noisy count at or above a public threshold. So the set of
rows reveals nothing exact about the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from operator import add, mul
from typing import Protocol, TypeAlias

import numpy as np

from anonymize.cut import Cut
from anonymize.errors import PrivacyError
from anonymize.release import LabelledColumn, Release
from anonymize.table import CodedTable, Ints, QidColumn, Schema, pack, tally
from anonymize.taxonomy import Node


@dataclass(frozen=True)
class NoisyTable:
    """Released cells.

    cells:      a row per cell: the generalized columns, then the class; rows in the public order of the domain.
    counts:     noisy counts, possibly negative: int64, shape (n_rows,).
    n_cells:    cells in the domain: the number of rows, unless there is a threshold.
    threshold:  least listed noisy count, or None if all cells are listed.
    """

    cells: Release
    counts: Ints = field(repr=False)
    n_cells: int
    threshold: int | None = None


class Values(Protocol):
    """Generalized values of a column, in public order."""

    @property
    def size(self) -> int: ...

    def label(self, value: int) -> str: ...


@dataclass(frozen=True)
class CutValues:
    """Values of a categorical or numeric column: the nodes of its cut."""

    column: QidColumn
    nodes: tuple[Node, ...]

    @property
    def size(self) -> int:
        return len(self.nodes)

    def label(self, value: int) -> str:
        return self.column.label(self.nodes[value])


@dataclass(frozen=True)
class CellDomain:
    """Product of the columns' values and the class values, in C order."""

    schema: Schema
    columns: tuple[Values, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (*(values.size for values in self.columns), self.schema.n_classes)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def table(self, counts: Ints) -> NoisyTable:
        """Return all cells with the given noisy counts, shape (size,)."""
        positions = np.unravel_index(np.arange(self.size), self.shape)
        labels = [tuple(map(values.label, range(values.size))) for values in self.columns]
        return NoisyTable(self._release(labels, positions), counts, self.size)

    def listed(self, noisy: Mapping[int, int], threshold: int) -> NoisyTable:
        """Return only the cells of ``noisy``, by number."""
        places = [self._position(cell) for cell in noisy]
        labels, positions = [], []
        for i, values in enumerate(self.columns):
            distinct = sorted({place[i] for place in places})
            number = {value: code for code, value in enumerate(distinct)}
            labels.append(tuple(map(values.label, distinct)))
            positions.append(np.array([number[place[i]] for place in places], dtype=np.int64))
        positions.append(np.array([place[-1] for place in places], dtype=np.int64))
        counts = np.array(list(noisy.values()), dtype=np.int64)
        return NoisyTable(self._release(labels, positions), counts, self.size, threshold)

    def number(self, place: Sequence[int]) -> int:
        """Number of the cell at a place, of any magnitude."""
        number = 0
        for position, size in zip(place, self.shape, strict=True):
            number = number * size + position
        return number

    def _position(self, cell: int) -> list[int]:
        place = []
        for size in reversed(self.shape):
            cell, position = divmod(cell, size)
            place.append(position)
        return place[::-1]

    def _release(self, labels: Sequence[tuple[str, ...]], positions: Sequence[Ints]) -> Release:
        names = [column.name for column in self.schema.qid]
        columns = {n: LabelledColumn(t, p) for n, t, p in zip(names, labels, positions, strict=False)}
        assert self.schema.class_name is not None
        columns[self.schema.class_name] = LabelledColumn(self.schema.classes, positions[-1])
        return Release(columns)


def cut_domain(schema: Schema, cut: Cut) -> CellDomain:
    """Return the cells of a cut without set-valued columns."""
    columns = zip(schema.qid, cut.nodes, strict=True)
    return CellDomain(schema, tuple(CutValues(column, nodes) for column, nodes in columns))


def domain_of(schema: Schema, cut: Cut, sets: Mapping[int, Values]) -> CellDomain:
    """Return the cells of a cut with the values of its set-valued columns."""
    plain = cut_domain(schema, cut).columns
    return CellDomain(schema, tuple(sets.get(i, values) for i, values in enumerate(plain)))


def cell_counts(table: CodedTable, cut: Cut, domain: CellDomain, values: Mapping[int, Ints]) -> Ints:
    """Count the records of every cell: int64, shape (domain.size,). ``values``: of all sets of set-valued columns."""
    numbers = np.zeros(len(table.weights), dtype=np.int64)
    for i, (codes, size) in enumerate(zip(table.qid, domain.shape, strict=False)):
        numbers = numbers * size + (values[i] if i in values else cut.positions(i))[codes]
    return tally(numbers * domain.shape[-1] + table.axis(0), table.weights, domain.size)


def occupied_cells(
    table: CodedTable, cut: Cut, domain: CellDomain, values: Mapping[int, Sequence[int]]
) -> dict[int, int]:
    """Return the records of every occupied cell, by its number, for domains of any size."""
    columns, names = [], []
    for i, codes in enumerate(table.qid):
        of_code = values[i] if i in values else cut.positions(i).tolist()
        distinct = sorted(set(of_code))
        place = {value: code for code, value in enumerate(distinct)}
        columns.append(np.array([place[value] for value in of_code])[codes])
        names.append(distinct)
    keys = pack([*columns, table.axis(0)], [*map(len, names), domain.shape[-1]])
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    records = tally(inverse, table.weights, len(first)).tolist()
    rows = zip(*(column[first].tolist() for column in (*columns, table.axis(0))), strict=True)
    named = ([*(n[c] for n, c in zip(names, row, strict=False)), row[-1]] for row in rows)
    return {domain.number(place): count for place, count in zip(named, records, strict=True)}


# ---- sizes that follow from the job alone


def cells_after(schema: Schema, cut: Cut, column: int, n_children: int) -> int:
    """Return the number of cells after the specialization of a node of a column. Not for set-valued columns."""
    sizes = [len(nodes) + (n_children - 1) * (i == column) for i, nodes in enumerate(cut.nodes)]
    return prod(sizes) * schema.n_classes


def most_cells(schema: Schema, specializations: int) -> int:
    """Return the most cells after at most ``specializations`` steps, for any data."""
    return _extreme_cells(schema, specializations, max)


def least_cells(schema: Schema, specializations: int) -> int:
    """Return the fewest cells after ``specializations`` steps, or after as many as possible."""
    return _extreme_cells(schema, specializations, min)


Extreme: TypeAlias = Callable[[Iterable[int]], int]


def _extreme_cells(schema: Schema, h: int, extreme: Extreme) -> int:
    best = {0: 1}
    for column in schema.qid:
        best = _joined(best, _extreme_cut(column, column.root, h, extreme), h, extreme, mul)
    return best[max(best)] * schema.n_classes if extreme is min else max(best.values()) * schema.n_classes


def _extreme_cut(column: QidColumn, node: Node, h: int, extreme: Extreme) -> dict[int, int]:
    """Return the size of the largest or smallest cut below a node, by number of specializations."""
    if column.is_numeric:
        return {j: j + 1 for j in range(min(h, node.last - node.first - 1) + 1)}
    children = column.children(node)
    if len(children) < 2 or h == 0:
        return {0: 1}
    below = {0: 0}
    for child in children:
        below = _joined(below, _extreme_cut(column, child, h - 1, extreme), h - 1, extreme, add)
    return {0: 1} | {j + 1: size for j, size in below.items()}


def _joined(
    one: Mapping[int, int],
    other: Mapping[int, int],
    h: int,
    extreme: Extreme,
    join: Callable[[int, int], int],
) -> dict[int, int]:
    """Share specializations out between two parts."""
    found: dict[int, int] = {}
    for i, x in one.items():
        for j, y in other.items():
            if i + j <= h:
                joined = join(x, y)
                found[i + j] = extreme((found.get(i + j, joined), joined))
    return found


def check_cells(schema: Schema, specializations: int, max_cells: int) -> None:
    """Refuse a joint job that cannot keep to its limit, before any spending. Raises PrivacyError."""
    least = least_cells(schema, specializations)
    if least > max_cells:
        fitting = [h for h in range(1, specializations) if least_cells(schema, h) <= max_cells]
        fewer = f", or specializations to at most {fitting[-1]}" if fitting else ""
        raise PrivacyError(
            "too-many-cells",
            f"{specializations} specializations make {least} cells or more, above max_cells = {max_cells}",
            remedy=f"raise max_cells to {least} or more{fewer}",
        )


# ---- what a reader may do with the counts: post-processing costs no privacy


def norm_sub(counts: Ints) -> Ints:
    """Return the non-negative integers with the same sum that are closest to the counts (Norm-Sub; Wang et al., NDSS
    2020).

    The same amount is subtracted from every count that stays positive. The remainder is subtracted, 1 each, from the
    smallest of these counts, last ones first on ties. All 0 if the sum is not positive.
    """
    total = int(counts.sum())
    if total <= 0 or len(counts) == 0:
        return np.zeros_like(counts)
    ordered = np.sort(counts)[::-1]
    sums = np.cumsum(ordered)
    kept = int(np.flatnonzero(ordered * np.arange(1, len(ordered) + 1) > sums - total)[-1]) + 1
    excess = int(sums[kept - 1]) - total  # taken off ``kept`` counts in equal parts
    share, remainder = divmod(excess, kept)
    chosen = np.argsort(-counts, kind="stable")[:kept]
    reduced = np.zeros_like(counts)
    reduced[chosen] = counts[chosen] - share
    reduced[chosen[kept - remainder :]] -= 1
    return reduced


def as_records(table: NoisyTable) -> Release:
    """Return each row as often as its count, after Norm-Sub."""
    rows = np.repeat(np.arange(len(table.counts)), norm_sub(table.counts))
    columns = {n: LabelledColumn(c.labels, c.codes[rows]) for n, c in table.cells.columns.items()}
    return Release(columns)
