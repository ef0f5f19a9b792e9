"""LKC-privacy of specializations (semantics §3.6; [T] 3.2.1, Definition 3.1, and 3.3.2).

A candidate v → child(v) is valid if, for every subset of min(L, |QID|) quasi-identifier columns with v's column,
every non-empty qid group after the specialization has at least K records and, for every protected sensitive value s,
P(s | group) <= C. An unrefined column has a single value and changes no group. A group on fewer columns is a union of
groups on more columns and meets the conditions if they do. So the scan covers the subsets of L − 1 *other refined*
columns, or all of them if there are fewer.

All sums are linear in counts of (T_g entry, child); joint runs share these counts and test the same sums. Where
nobody knows more than two columns, tables of pairs of columns give the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import (
    Bools,
    SideCount,
    SideInputs,
    Violation,
    inferences,
    sides_of,
    tallies_of,
)
from anonymize.criteria.groups import GroupTest
from anonymize.criteria.views import in_rows, measures_of, views_of
from anonymize.cut import Candidate, Cut, child_counts, leaves_of
from anonymize.lkc.requirement import Entry, criteria_of
from anonymize.partition import GeneralizedTable, LocalRecords
from anonymize.qid_groups import QidGroups
from anonymize.table import CodedTable, Ints, Schema, pack, tally
from anonymize.taxonomy import Node


def coarsest_cells(schema: Schema, entries: Sequence[Entry]) -> Ints:
    """Map every cell to the first cell that is equivalent for validity: int64, shape (n_cells,).

    Equivalent cells count alike for every criterion and, toward insiders, have the same class. A single holder counts
    leaf partitions by these cells.
    """
    classes = schema.classes_of(np.arange(schema.n_cells))
    keys = classes if any(entry.insider for entry in entries) else np.zeros(schema.n_cells, dtype=np.int64)
    labels = GroupTest(schema, criteria_of(entries)).labels(np.arange(schema.n_cells))
    radices = [int(label.max(initial=0)) + 1 for label in (keys, *labels)]
    _, first, inverse = np.unique(pack([keys, *labels], radices), return_index=True, return_inverse=True)
    return first[inverse]


class PartitionTest:
    """Validity from the leaf partitions: any L."""

    def __init__(self, schema: Schema, entries: Sequence[Entry]) -> None:
        self._entries = tuple(_EntryTest(schema, entry) for entry in entries)
        self._last: _Items | None = None

    def violation(
        self,
        table: GeneralizedTable,
        candidate: Candidate,
        counts: Ints,
        n_columns: int,
        sides: SidesOfGroups | None = None,
    ) -> Violation | None:
        """Return a violation of the specialization on some ``n_columns`` columns, or None.

        counts: records per (refined entry, child) as for :func:`anonymize.partition.refine`. sides: makes the side
        counts, if a criterion takes any. An entry with groups on fewer columns is tested on these columns. Toward
        insiders, all columns of an entry are also tested, for any ``n_columns``.
        """
        items = self._items(table, candidate, counts, sides)
        tests = [test for test in self._entries if candidate.column in test.entry.scope.columns]
        for test in tests:
            found = test.violation(items, test.entry.scope.among(n_columns))
            if found:
                return found
        toward_insiders = (test.insider_violation(items) for test in tests if test.entry.insider)
        return next((found for found in toward_insiders if found), None)

    def failing(
        self,
        table: GeneralizedTable,
        candidate: Candidate,
        counts: Ints,
        most: int,
        sides: SidesOfGroups | None = None,
    ) -> Bools | None:
        """Return each (refined entry, child) in a group that the requirement forbids; None for too many records.

        Without these records, further groups may become too small. They are also removed, until all remaining groups
        are allowed (side counts: unchanged).

        counts, sides:  as in :meth:`violation`. most: maximum number of removed records. Shape as counts.
        """
        items = self._items(table, candidate, counts, sides)
        out, before = np.zeros(len(items.at), dtype=bool), -1
        while out.sum() > before:
            before = int(out.sum())
            for test in self._entries:
                if candidate.column in test.entry.scope.columns and not test.take_out(items, out, most):
                    return None
        found = np.zeros(counts.shape, dtype=bool)
        found[items.at[out], items.child[out]] = True
        return found

    def _items(
        self, table: GeneralizedTable, candidate: Candidate, counts: Ints, sides: SidesOfGroups | None
    ) -> _Items:
        """Return the last call's items for the same arrays: a candidate is tested on several n_columns."""
        if self._last is None or not self._last.are_of(table, candidate, counts):
            self._last = _Items(table, candidate, counts, sides)
        return self._last


class _Items:
    """Non-empty (refined entry of T_g, child) pairs of a candidate, weighted by their records."""

    def __init__(
        self, table: GeneralizedTable, candidate: Candidate, counts: Ints, sides: SidesOfGroups | None
    ) -> None:
        self.table = table
        self.candidate = candidate
        self.sides = sides
        self._counts = counts
        self._groups: dict[tuple[int, ...], QidGroups] = {}
        self.at, self.child = np.nonzero(counts)
        self.entries = table.entries_of(candidate)
        self.cell = table.cell[self.entries[self.at]]
        self.weights = counts[self.at, self.child].astype(np.float64)
        self.n_children = len(candidate.children)

    def are_of(self, table: GeneralizedTable, candidate: Candidate, counts: Ints) -> bool:
        """Return True if the items were made of the same objects."""
        return self.table is table and self.candidate is candidate and self._counts is counts

    def groups(self, columns: tuple[int, ...]) -> QidGroups:
        """Return the codings of the refined entries for a scope, made once."""
        if columns not in self._groups:
            partition = self.table.partition[self.entries]
            self._groups[columns] = QidGroups(self.table, self.candidate, partition, columns)
        return self._groups[columns]


class _EntryTest:
    """Test of an entry."""

    def __init__(self, schema: Schema, entry: Entry) -> None:
        self.entry = entry
        self._schema = schema
        self._test = GroupTest(schema, entry.criteria)
        self._bounds = GroupTest(schema, inferences(entry.criteria)) if entry.insider else None

    def violation(self, items: _Items, n_columns: int) -> Violation | None:
        """Rule all groups on ``n_columns`` columns of the scope."""
        labels, groups = self._test.labels(items.cell), items.groups(self.entry.scope.columns)
        places, of_entry = groups.places(items.at), groups.places(np.arange(len(items.entries)))
        for codes, n_codes in groups.of_partitions(n_columns - 1):
            keys, n_keys = (codes * items.n_children)[places] + items.child, n_codes * items.n_children
            side_counts = self._side_counts(items, codes[of_entry], n_codes) if self._test.sides else []
            found = self._test.violation(labels, keys, n_keys, items.weights, n_columns, side_counts)
            if found:
                return found
        return None

    def take_out(self, items: _Items, out: Bools, most: int) -> bool:
        """Mark the items of all forbidden groups, counting only items that are not ``out`` yet.

        Return False, with some items unmarked, as soon as the marked items have more than ``most`` records.
        """
        labels, scope = self._test.labels(items.cell), self.entry.scope
        for codes, n_codes in items.groups(scope.columns).codings(scope.size - 1):
            keys, n_keys = codes[items.at] * items.n_children + items.child, n_codes * items.n_children
            weights, allowed = np.where(out, 0, items.weights), np.ones(n_keys, dtype=bool)
            side_counts = self._side_counts(items, codes, n_codes) if self._test.sides else []
            for _, met in self._test.met(labels, keys, n_keys, weights, side_counts):
                allowed &= met
            if not allowed.all():
                out |= ~allowed[keys]
                if items.weights[out].sum() > most:
                    return False
        return True

    def insider_violation(self, items: _Items) -> Violation | None:
        """Judge the inference bounds in every (group on all columns, class value) cell after the specialization."""
        assert self._bounds is not None, "an entry for insiders"
        classes = self._schema.classes_of(items.cell)
        table, columns = items.table, self.entry.scope.columns
        known = whole_groups(table, table.partition[items.entries], columns)[items.at]
        present, keys = np.unique(np.stack([known, classes, items.child]), axis=1, return_inverse=True)
        labels, n_keys = self._bounds.labels(items.cell), present.shape[1]
        return self._bounds.violation(labels, keys.reshape(-1), n_keys, items.weights, len(columns))

    def _side_counts(self, items: _Items, codes: Ints, n_codes: int) -> list[Ints]:
        """Return the side counts of every (group, child), if any."""
        assert items.sides is not None
        return [items.sides.of(side, codes, n_codes).reshape(-1) for side in self._test.sides]


def whole_groups(table: GeneralizedTable, partition: Ints, columns: Sequence[int]) -> Ints:
    """Number the groups on all of some columns, in the order of their first leaf partitions.

    partition:  of every item. int64, the shape of ``partition``: the group of each.
    """
    present, rank = np.unique(partition, return_inverse=True)
    if len(columns) == len(table.nodes):
        return rank
    nodes: Ints = table.nodes[list(columns)][:, present]
    _, first, group = np.unique(nodes, axis=1, return_index=True, return_inverse=True)
    return _in_first_order(first, group.reshape(-1))[rank]


def in_first_order(keys: Ints) -> Ints:
    """Number different keys in the order of first appearance: int64, shape (n,)."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return _in_first_order(first, number)


def _in_first_order(first: Ints, number: Ints) -> Ints:
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[number]


class SidesOfGroups:
    """Side counts of a holder's rows for a candidate, counted from the rows because cells do not determine them."""

    def __init__(
        self, side_inputs: SideInputs, records: LocalRecords, table: GeneralizedTable, candidate: Candidate
    ) -> None:
        self._side_inputs = side_inputs
        self._latest: tuple[SideCount, Ints] | None = None
        self._rows, self._child = records.members(candidate)
        self._n_children = len(candidate.children)
        place = np.full(table.n_entries, -1, dtype=np.int64)
        entries = table.entries_of(candidate)
        self._n_entries = len(entries)
        place[entries] = np.arange(len(entries))
        self._at = place[records.entry[self._rows]]

    def of(self, side: SideCount, group: Ints, n_groups: int) -> Ints:
        """Return a side count of every (group, child): int64, shape (n_groups, n_children).

        group:  of every refined entry, -1 if its rows are not counted. Further elements are ignored.
        """
        if side.is_additive:
            return self._summed(self._of_entries(side), group, n_groups)
        own = group[self._at]
        counted = np.flatnonzero(own >= 0)
        keys = own[counted] * self._n_children + self._child[counted]
        found = self._side_inputs[side].count(self._rows[counted], keys, n_groups * self._n_children)
        return found.reshape(n_groups, self._n_children)

    def _of_entries(self, side: SideCount) -> Ints:
        """Return the side count of every (refined entry, child): int64, shape (n_entries, n_children).

        The latest result is kept for calls with further groups.
        """
        if self._latest is None or self._latest[0] != side:
            keys, shape = self._at * self._n_children + self._child, (self._n_entries, self._n_children)
            found = self._side_inputs[side].count(self._rows, keys, self._n_entries * self._n_children)
            self._latest = side, found.reshape(shape)
        return self._latest[1]

    def _summed(self, of_entries: Ints, group: Ints, n_groups: int) -> Ints:
        total = np.zeros((n_groups, self._n_children), dtype=np.int64)
        counted = np.flatnonzero(group[: self._n_entries] >= 0)
        np.add.at(total, group[counted], of_entries[counted])
        return total


_DENSE_LIMIT = 1 << 25
_NO_LEAVES: Ints = np.empty(0, dtype=np.int64)
Counts: TypeAlias = NDArray[np.int32]
"""Numbers of records, which are fewer than 2**31 in a table."""


class PairTest:
    """Validity for L <= 2 from two-dimensional tables of leaf counts, without leaf partitions.

    With L = 2 there are almost as many leaf partitions as records, but only pairs of columns are tested. Each pair's
    table is counted once. The tables of a column beside all other columns lie side by side, so that a specialization
    is tested with all its partners at once.
    """

    def __init__(self, table: CodedTable, entries: Sequence[Entry]) -> None:
        self._table = table
        self._views = views_of(table.schema, tallies_of(criteria_of(entries)))
        self._labels = [view.of_cells(table.schema)[table.cells] for view in self._views]
        measures = measures_of(self._views)
        self._entries = [(entry, Judge(entry.criteria, measures)) for entry in entries]
        self._starts = np.cumsum([0, *(column.n_leaves for column in table.schema.qid)]).tolist()
        self._tables: dict[int, list[Counts]] = {}
        self._counted: set[tuple[int, int]] = set()
        self._last: dict[int, tuple[tuple[Node, ...], Ints]] = {}

    @staticmethod
    def fits(schema: Schema, entries: Sequence[Entry]) -> bool:
        """Return True if L <= 2 everywhere, the pair tables are small, and only pairs are tested."""
        criteria = criteria_of(entries)
        leaves = sum(c.n_leaves for c in schema.qid)
        pairs = all(entry.scope.size <= 2 and not entry.insider for entry in entries)
        if not pairs or sides_of(criteria) or any(criterion.search for criterion in criteria):
            return False
        return leaves * leaves // 2 * len(tallies_of(criteria)) <= _DENSE_LIMIT

    def violation(self, cut: Cut, candidate: Candidate, n_columns: int) -> Violation | None:
        """Return a violation of the specialization on some ``n_columns`` columns, or None."""
        for entry, judge in self._entries:
            if candidate.column in entry.scope.columns:
                found = self._of_entry(entry, judge, cut, candidate, entry.scope.among(n_columns))
                if found:
                    return found
        return None

    def _of_entry(
        self, entry: Entry, judge: Judge, cut: Cut, candidate: Candidate, n_columns: int
    ) -> Violation | None:
        refined = [c for c in entry.scope.columns if c != candidate.column and cut.is_refined(c)]
        if n_columns < 2 or not refined:
            return judge.violation(self._rows(self._alone(candidate)), n_columns)
        sums, parts = self._beside(candidate, cut, refined)
        return judge.first_violation(self._rows(sums), parts, n_columns)

    def _rows(self, by_label: list[Ints]) -> Ints:
        """Return the measures of the criteria per group: shape (n_measures, n_groups)."""
        return in_rows(self._views, by_label)

    def _alone(self, candidate: Candidate) -> list[Ints]:
        """Return, per view, the counts by label and child: shape (n_labels + 1, n_children)."""
        column, table = candidate.column, self._table
        n_leaves = table.schema.qid[column].n_leaves
        found = []
        for view, labels in zip(self._views, self._labels, strict=True):
            width = view.n_labels + 1
            counts = tally(
                table.qid[column].astype(np.int64) * width + labels, table.weights, n_leaves * width
            )
            found.append(child_counts(candidate.children, counts.reshape(n_leaves, width)).T.copy())
        return found

    def _beside(self, candidate: Candidate, cut: Cut, others: Sequence[int]) -> tuple[list[Ints], Ints]:
        """Count by (child, node of another column), for all the other columns at once.

        Returns, per view, the counts by label: shape (n_labels + 1, n_groups); and the place of the other column of
        each group: shape (n_groups,).
        """
        column = candidate.column
        for other in others:
            self._count(column, other)
        leaves = np.concatenate([self._starts[other] + self._leaves(cut, other) for other in others])
        sizes = [node.n_leaves for other in others for node in cut.nodes[other]]
        firsts = np.cumsum([0, *sizes])[:-1]
        found = []
        for counts in self._tables[column]:
            of_children = child_counts(candidate.children, counts).take(leaves, axis=1)
            by_group = np.add.reduceat(of_children, firsts, axis=1).astype(np.int64)
            found.append(by_group.reshape(-1, by_group.shape[2]).T)
        parts = np.repeat(np.arange(len(others)), [len(cut.nodes[other]) for other in others])
        return found, np.tile(parts, len(candidate.children))

    def _leaves(self, cut: Cut, column: int) -> Ints:
        """Return the leaves of a column, node after node of its cut; kept while the column's nodes stay the same."""
        nodes, leaves = self._last.get(column, ((), _NO_LEAVES))
        if nodes is not cut.nodes[column]:
            nodes = cut.nodes[column]
            leaves = leaves_of(nodes)
            self._last[column] = nodes, leaves
        return leaves

    def _count(self, column: int, other: int) -> None:
        """Count (leaf, leaf of the other column, label) into the tables of both columns, once."""
        if (column, other) in self._counted:
            return
        self._counted |= {(column, other), (other, column)}
        schema, table = self._table.schema, self._table
        n_leaves, n_other = schema.qid[column].n_leaves, schema.qid[other].n_leaves
        keys = table.qid[column].astype(np.int64) * n_other + table.qid[other]
        for place, (view, labels) in enumerate(zip(self._views, self._labels, strict=True)):
            width = view.n_labels + 1
            counts = tally(keys * width + labels, table.weights, n_leaves * n_other * width)
            counts = counts.reshape(n_leaves, n_other, width)
            self._part(column, other)[place][...] = counts
            self._part(other, column)[place][...] = counts.swapaxes(0, 1)

    def _part(self, column: int, other: int) -> list[Counts]:
        """Return, per view, the part of a column's table beside the other column."""
        if column not in self._tables:
            n_leaves, n_all = self._table.schema.qid[column].n_leaves, self._starts[-1]
            shapes = [(n_leaves, n_all, view.n_labels + 1) for view in self._views]
            self._tables[column] = [np.zeros(shape, dtype=np.int32) for shape in shapes]
        own = slice(self._starts[other], self._starts[other + 1])
        return [counts[:, own] for counts in self._tables[column]]
