"""Validity of specializations where nobody knows more than two columns, from tables of pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import Violation, sides_of, tallies_of
from anonymize.criteria.views import in_rows, measures_of, views_of
from anonymize.cut import Candidate, Cut, child_counts, leaves_of
from anonymize.lkc.requirement import Entry, criteria_of
from anonymize.table import CodedTable, Ints, Schema, tally
from anonymize.taxonomy import Node

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
