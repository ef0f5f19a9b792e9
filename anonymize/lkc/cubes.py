"""Validity of specializations from cubes: the counts of leaves of as many columns as somebody knows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import Violation, sides_of, tallies_of
from anonymize.criteria.views import in_rows, measures_of, views_of
from anonymize.cut import Candidate, Cut, child_counts
from anonymize.lkc.requirement import Entry, criteria_of
from anonymize.table import CodedTable, Codes, Ints, narrowest, tally

_MOST_CELLS = 1 << 27
"""Of all cubes together."""
_MOST_BYTES = 1 << 28
"""Of the cubes that are kept; others are counted anew for every test."""
_FEW_CELLS = 1 << 16
_CELLS_A_ROW = 4
"""A cube may have so many cells for each row of the table, or else few: to read it is not more than to group rows."""


class CubeTest:
    """Validity from tables of leaf counts, one for every few columns: no leaf partitions needed.

    Leaf partitions become almost as many as the records, while all that is ever tested are groups on a few columns. A
    cube is counted once, when it is first asked for. If all its cells are allowed it is *settled* and never looked at
    again: whatever the cut, groups are unions of cells.
    """

    def __init__(self, table: CodedTable, entries: Sequence[Entry]) -> None:
        self._table = table
        self._leaves = [column.n_leaves for column in table.schema.qid]
        self._views = views_of(table.schema, tallies_of(criteria_of(entries)))
        self._widths = [view.n_labels + 1 for view in self._views]
        self._labels = [
            view.of_cells(table.schema).astype(narrowest(width))[table.cells]
            for view, width in zip(self._views, self._widths, strict=True)
        ]
        self._weights = None if (table.weights == 1).all() else table.weights
        measures = measures_of(self._views)
        self._entries = [(entry, Judge(entry.criteria, measures)) for entry in entries]
        self._cubes: dict[tuple[int, ...], list[Codes] | None] = {}
        self._n_bytes = 0
        self._occurring: dict[tuple[int, int], Ints] = {}

    @staticmethod
    def fits(table: CodedTable, entries: Sequence[Entry]) -> bool:
        """Return whether nothing but groups on a few columns is tested, and the cubes are small."""
        criteria = criteria_of(entries)
        if sides_of(criteria) or any(c.search for c in criteria) or any(entry.insider for entry in entries):
            return False
        width = len(tallies_of(criteria))
        most = max(_CELLS_A_ROW * len(table.cells), _FEW_CELLS)
        n_cells = [_cells_of(table, entry) for entry in entries]
        in_all = sum(together for _, together in n_cells)
        return in_all * width <= _MOST_CELLS and all(largest * width <= most for largest, _ in n_cells)

    def violation(self, cut: Cut, candidate: Candidate, n_columns: int) -> Violation | None:
        """Return a violation of the specialization on some ``n_columns`` columns, or None.

        Groups are looked at in the order of :class:`anonymize.lkc.validity.PartitionTest`, so it is the same one.
        """
        for entry, judge in self._entries:
            if candidate.column in entry.scope.columns:
                n_known = entry.scope.among(n_columns)
                for others in self._subsets(entry, cut, candidate, n_known - 1):
                    found = self._of_groups(judge, cut, candidate, others, n_known)
                    if found:
                        return found
        return None

    def _subsets(
        self, entry: Entry, cut: Cut, candidate: Candidate, n_others: int
    ) -> Iterator[tuple[int, ...]]:
        """Of the columns that tell records of the candidate's node apart, the finest first."""
        refined = [c for c in entry.scope.columns if c != candidate.column and cut.is_refined(c)]
        held = {column: self._n_held(cut, candidate, column) for column in refined} if n_others else {}
        telling = sorted((c for c in held if held[c] > 1), key=lambda column: -held[column])
        return combinations(telling, min(n_others, len(telling)))

    def _n_held(self, cut: Cut, candidate: Candidate, other: int) -> int:
        """How many nodes of another column the records of the candidate's node have."""
        together = self._together(candidate.column, other)
        return int(
            np.count_nonzero(child_counts(cut.nodes[other], together[candidate.node.leaves].sum(axis=0)))
        )

    def _together(self, column: int, other: int) -> Ints:
        """Rows by (leaf, leaf of the other column)."""
        if (column, other) not in self._occurring:
            shape = self._leaves[column], self._leaves[other]
            n_rows = tally(self._packed((column, other), narrowest(math.prod(shape))), None, math.prod(shape))
            self._occurring[column, other] = n_rows.reshape(shape)
            self._occurring[other, column] = n_rows.reshape(shape).T
        return self._occurring[column, other]

    def _of_groups(
        self, judge: Judge, cut: Cut, candidate: Candidate, others: tuple[int, ...], n_columns: int
    ) -> Violation | None:
        """Rule all groups on the candidate's column and the others."""
        columns = tuple(sorted((candidate.column, *others)))
        cube = self._cube(columns)
        if cube is None:
            return None
        sums = [_generalized(counts, columns, cut, candidate).reshape(len(counts), -1) for counts in cube]
        return judge.violation(in_rows(self._views, sums), n_columns)

    def _cube(self, columns: tuple[int, ...]) -> list[Codes] | None:
        """Per view counts of (label, leaf of every column); None: settled."""
        if columns in self._cubes:
            return self._cubes[columns]
        counted = self._tallied(columns)
        cube = [counts.astype(narrowest(int(counts.max()) + 1)) for counts in counted]
        ruled = in_rows(self._views, [counts.reshape(len(counts), -1) for counts in counted])
        settled = all(judge.violation(ruled, len(columns)) is None for _, judge in self._entries)
        n_bytes = 0 if settled else sum(counts.nbytes for counts in cube)
        if self._n_bytes + n_bytes <= _MOST_BYTES:
            self._n_bytes += n_bytes
            self._cubes[columns] = None if settled else cube
        return None if settled else cube

    def _tallied(self, columns: tuple[int, ...]) -> list[Ints]:
        """Per view count the records by (label, leaf of every column)."""
        shape = [self._leaves[column] for column in columns]
        n_cells = math.prod(shape)
        keys = self._packed(columns, narrowest(n_cells * max(self._widths)))
        counted = []
        for labels, width in zip(self._labels, self._widths, strict=True):
            own: Codes = np.add(keys, np.multiply(labels, n_cells, dtype=keys.dtype)) if width > 1 else keys
            counted.append(tally(own, self._weights, n_cells * width).reshape(width, *shape))
        return counted

    def _packed(self, columns: tuple[int, ...], dtype: np.dtype[np.unsignedinteger]) -> Codes:
        """The leaves of a row as one number; in few bytes, as this takes as long as what is written."""
        keys: Codes = np.zeros(len(self._table.cells), dtype)
        stride = math.prod(self._leaves[column] for column in columns)
        for column in columns:
            if self._leaves[column] > 1:  # or all codes are 0, and the type may not hold the stride
                stride //= self._leaves[column]
                keys += np.multiply(self._table.qid[column], stride, dtype=dtype, casting="unsafe")
        return keys


def _generalized(counts: Codes, columns: tuple[int, ...], cut: Cut, candidate: Candidate) -> Ints:
    """Counts of leaves by (label, leaf of every column) added up by child of the candidate and node of the cut."""
    place = 1 + columns.index(candidate.column)
    sums = _by_child(candidate, counts, place)
    for axis, column in enumerate(columns, 1):
        if axis != place and len(cut.nodes[column]) < sums.shape[axis]:
            sums = child_counts(cut.nodes[column], sums, axis)
    return sums


def _by_child(candidate: Candidate, counts: Codes, axis: int) -> Ints:
    """As :func:`anonymize.cut.child_counts`: child by child, faster along an early axis."""
    parts = (
        counts[(slice(None),) * axis + (slice(child.first, child.last),)]
        if not child.without
        else counts.take(child.leaves, axis)
        for child in candidate.children
    )
    return np.stack([part.sum(axis, dtype=np.int64) for part in parts], axis)


def _cells_of(table: CodedTable, entry: Entry) -> tuple[int, int]:
    """The cells of the largest cube of an entry, and of all its cubes together."""
    leaves = sorted(table.schema.qid[column].n_leaves for column in entry.scope.columns)
    size = entry.scope.size
    together = [1] + [0] * size
    for n_leaves in leaves:
        for n_columns in range(size, 0, -1):
            together[n_columns] += together[n_columns - 1] * n_leaves
    return math.prod(leaves[len(leaves) - size :]), together[size]
