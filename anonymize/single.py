"""LKC-privacy of one holder's table ([T] Algorithm 3.1): the reference for every joint run."""

from __future__ import annotations

import numpy as np

from anonymize.candidates import CandidatePool, GroupSizes, profile, propose
from anonymize.cut import Candidate, top
from anonymize.partition import GeneralizedTable, LocalRecords, Refinement, fully_generalized, refine
from anonymize.privacy import (
    Lkc,
    PairTest,
    PartitionTest,
    Violation,
    check_root,
    check_sizes,
    coarsest_cells,
    requirement_unmet,
)
from anonymize.score import Goal
from anonymize.table import CodedTable, Ints
from anonymize.taxonomy import Node
from anonymize.tds import Observer, Outcome, Step, Turn, at_once, run_alone, specialize_top_down


def anonymize_alone(
    table: CodedTable, requirement: Lkc, goal: Goal, observer: Observer | None = None
) -> Outcome:
    """Anonymize one holder's table to LKC-privacy ([T] Algorithm 3.1).

    Raises PrivacyError if even the fully generalized table violates the requirement, or if the table is too
    large for exact integer arithmetic.
    """
    schema = table.schema
    check_sizes(schema, table.n_records)
    cell_counts = np.bincount(table.cells, table.weights, minlength=schema.n_cells).astype(np.int64)
    violation = check_root(schema, requirement, cell_counts)
    if violation:
        raise requirement_unmet(violation)
    holder = SingleHolder(table, requirement, goal)
    steps = run_alone(specialize_top_down(holder, observer or Observer()))
    return Outcome(schema, holder.cut, steps)


class SingleHolder:
    """The one holder of a whole table, as a :class:`anonymize.tds.Specializer`."""

    def __init__(self, table: CodedTable, requirement: Lkc, goal: Goal) -> None:
        self._schema = table.schema
        self._goal: Goal = goal
        self._n_columns = min(requirement.max_known, len(self._schema.qid))
        self.cut = top(self._schema)
        self._histograms = [table.class_histogram(c) for c in range(len(self._schema.qid))]
        pairs = PairTest(table, requirement) if PairTest.fits(self._schema, requirement) else None
        self._partitions = _Partitions(table, requirement) if pairs is None or goal == "general" else None
        self._test = self._partitions if pairs is None else pairs
        self._candidates = CandidatePool(goal)
        self._sizes = (
            GroupSizes(self._schema, self._partitions.generalized)
            if self._partitions is not None and goal == "general"
            else None
        )
        for column, (root,) in enumerate(self.cut.nodes):
            self._propose(column, root)

    def choose(self) -> Turn[Candidate | None]:
        return at_once(self._candidates.pop(self._sizes))

    def verdict(self, candidate: Candidate) -> Turn[Step]:
        score = self._sizes.score(candidate) if self._sizes is not None else 0
        violation = self._violation(candidate, self._n_columns)
        if violation is not None:
            violation = self._narrowed(candidate, violation)
        return at_once(Step(candidate, violation is None, score, violation))

    def apply(self, candidate: Candidate) -> Turn[None]:
        if self._partitions is not None:
            change = self._partitions.apply(candidate)
            if self._sizes is not None:
                self._sizes.follow(*change)
        self.cut = self.cut.specialized(candidate)
        for child in candidate.children:
            self._propose(candidate.column, child)
        return at_once(None)

    def _propose(self, column: int, node: Node) -> None:
        """Enter the specialization of a node, if it is a candidate."""
        described = self._schema.qid[column]
        counts = profile(described, node, self._histograms[column])
        proposal = propose(column, described, node, counts, self._goal)
        if proposal is not None:
            self._candidates.add(proposal)

    def _violation(self, candidate: Candidate, n_columns: int) -> Violation | None:
        assert self._test is not None
        return self._test.violation(self.cut, candidate, n_columns)

    def _narrowed(self, candidate: Candidate, violation: Violation) -> Violation:
        """Find the fewest columns on which the specialization is not allowed: what a user can act on."""
        for n_columns in range(1, self._n_columns):
            found = self._violation(candidate, n_columns)
            if found:
                return found
        return violation


class _Partitions:
    """The leaf partitions of a single holder, counted by what validity tells apart."""

    def __init__(self, table: CodedTable, requirement: Lkc) -> None:
        cells = coarsest_cells(table.schema, requirement)[table.cells]
        counts = np.bincount(cells, table.weights, minlength=table.schema.n_cells).astype(np.int64)
        self.generalized = fully_generalized(len(table.schema.qid), counts)
        self._records = LocalRecords(table, cells, self.generalized)
        self._test = PartitionTest(table.schema, requirement)
        self._counted: tuple[Candidate, Ints] | None = None

    def violation(self, _cut: object, candidate: Candidate, n_columns: int) -> Violation | None:
        return self._test.violation(self.generalized, candidate, self._counts(candidate), n_columns)

    def apply(self, candidate: Candidate) -> tuple[GeneralizedTable, Refinement]:
        """Specialize; return T_g before, and the refinement."""
        before = self.generalized
        refinement = refine(before, candidate, self._counts(candidate))
        self._records.follow(candidate, refinement)
        self.generalized = refinement.table
        return before, refinement

    def _counts(self, candidate: Candidate) -> Ints:
        """Records per (refined entry, child), counted once per candidate."""
        if self._counted is None or self._counted[0] is not candidate:
            entries = self.generalized.entries_of(candidate)
            self._counted = candidate, self._records.counts(candidate, entries)
        return self._counted[1]
