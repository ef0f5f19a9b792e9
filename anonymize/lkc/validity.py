"""LKC-privacy of specializations (semantics §3.6; [T] 3.2.1, Definition 3.1, and 3.3.2).

A candidate v → child(v) is valid if, for every subset of min(L, |QID|) quasi-identifier columns with v's column,
every non-empty qid group after the specialization has at least K records and, for every protected sensitive value s,
P(s | group) <= C. An unrefined column has a single value and changes no group. A group on fewer columns is a union of
groups on more columns and meets the conditions if they do. So the scan covers the subsets of L − 1 *other refined*
columns, or all of them if there are fewer.

All sums are linear in counts of (T_g entry, child); joint runs share these counts and test the same sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.criteria.criterion import Bools, Violation, inferences
from anonymize.criteria.groups import GroupTest
from anonymize.cut import Candidate
from anonymize.lkc.requirement import Entry, criteria_of
from anonymize.lkc.sides import SidesOfGroups
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import QidGroups
from anonymize.table import Ints, Schema, pack


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
