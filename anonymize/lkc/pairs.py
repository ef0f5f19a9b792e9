"""Validity of specializations where nobody knows more than two columns, from tables of pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import Violation, sides_of, tallies_of
from anonymize.criteria.views import in_rows, measures_of, views_of
from anonymize.cut import Candidate, Cut, child_counts
from anonymize.lkc.requirement import Entry, criteria_of
from anonymize.table import CodedTable, Ints, Schema, tally
from anonymize.taxonomy import Node

_DENSE_LIMIT = 1 << 25
_WHOLE = Node(0, 1)
"""Node of the missing second column if a column is tested alone."""


class PairTest:
    """Validity for L <= 2 from two-dimensional tables of leaf counts, without leaf partitions.

    With L = 2 there are almost as many leaf partitions as records, but only pairs of columns are tested. Each pair's
    table is counted once.
    """

    def __init__(self, table: CodedTable, entries: Sequence[Entry]) -> None:
        self._table = table
        self._views = views_of(table.schema, tallies_of(criteria_of(entries)))
        self._labels = [view.of_cells(table.schema)[table.cells] for view in self._views]
        measures = measures_of(self._views)
        self._entries = [(entry, Judge(entry.criteria, measures)) for entry in entries]
        self._tables: dict[tuple[int, int | None], list[Ints]] = {}

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
        partners: list[int | None] = [*refined] if n_columns > 1 and refined else [None]
        for other in partners:
            nodes = (_WHOLE,) if other is None else cut.nodes[other]
            found = judge.violation(self._sums(candidate, other, nodes), n_columns)
            if found:
                return found
        return None

    def _sums(self, candidate: Candidate, other: int | None, nodes: Sequence[Node]) -> Ints:
        """Sum up the measures of the criteria per (child, node of the other column): shape (n_measures, n_groups)."""
        by_label = []
        for counts in self._counted(candidate.column, other):
            by_group = child_counts(nodes, child_counts(candidate.children, counts), axis=1)
            by_label.append(by_group.reshape(-1, by_group.shape[2]).T)
        return in_rows(self._views, by_label)

    def _counted(self, column: int, other: int | None) -> list[Ints]:
        """Return, per view, the counts of (leaf, leaf of the other column, label)."""
        if (column, other) not in self._tables:
            schema, table = self._table.schema, self._table
            n_leaves = schema.qid[column].n_leaves
            n_other = 1 if other is None else schema.qid[other].n_leaves
            keys = table.qid[column].astype(np.int64) * n_other
            if other is not None:
                keys = keys + table.qid[other]
            tables = []
            for view, labels in zip(self._views, self._labels, strict=True):
                width = view.n_labels + 1
                counts = tally(keys * width + labels, table.weights, n_leaves * n_other * width)
                tables.append(counts.reshape(n_leaves, n_other, width))
            self._tables[column, other] = tables
            if other is not None:
                self._tables[other, column] = [counts.swapaxes(0, 1) for counts in tables]
        return self._tables[column, other]
