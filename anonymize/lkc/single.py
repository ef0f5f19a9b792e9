"""LKC-privacy of a holder's table ([T] Algorithm 3.1): the reference for every joint run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.candidates import Prospects, propose
from anonymize.criteria.criterion import SideInputs, Violation, sides_of
from anonymize.cut import Candidate, Order, top
from anonymize.lkc.requirement import (
    Entry,
    Requirement,
    criteria_of,
    met_by_the_whole,
    most_columns,
    terms_of,
)
from anonymize.lkc.validity import PairTest, PartitionTest, SidesOfGroups, coarsest_cells
from anonymize.naming import Naming, all_in_one, named_by
from anonymize.partition import GeneralizedTable, LocalRecords, Refinement, fully_generalized, refine
from anonymize.scores.score import NOTHING, Score, Wanted
from anonymize.table import CodedTable, Ints
from anonymize.taxonomy import Node
from anonymize.tds import Observer, Outcome, Step, Turn, at_once, run_single, specialize_top_down


def anonymize_single(
    table: CodedTable,
    requirement: Requirement,
    goal: Score,
    observer: Observer | None = None,
    *,
    side_inputs: SideInputs | None = None,
) -> Outcome:
    """Anonymize a holder's table to LKC-privacy ([T] Algorithm 3.1).

    beside:  data per row for the side counts of the requirement.

    Raises PrivacyError if the fully generalized table violates the requirement or is too large for exact integer
    arithmetic.
    """
    entries = met_by_the_whole(table, requirement, side_inputs or {})
    holder = SingleHolder(table, entries, goal, side_inputs or {})
    steps = run_single(specialize_top_down(holder, observer or Observer()))
    return Outcome(table.schema, holder.cut, steps)


class SingleHolder:
    """Single holder of a whole table, as a :class:`anonymize.tds.Specializer`."""

    def __init__(
        self, table: CodedTable, entries: Sequence[Entry], goal: Score, side_inputs: SideInputs
    ) -> None:
        self._schema = table.schema
        self._goal = goal
        self._n_columns = most_columns(entries)
        self.cut = top(self._schema)
        self._histograms = [table.class_histogram(c) for c in range(len(self._schema.qid))]
        pairs = PairTest(table, entries) if PairTest.fits(self._schema, entries) else None
        self._partitions = (
            Partitions(table, entries, side_inputs, all_cells=goal.wants_sums)
            if pairs is None or goal.follows_partitions
            else None
        )
        self._test = self._partitions if pairs is None else pairs
        self._followed = (
            goal.followed(self._schema, self._partitions.generalized, terms_of(self._schema, entries))
            if self._partitions
            else NOTHING
        )
        self._candidates = goal.pool(self._followed)
        self._prospects = Prospects(self._schema, each_child=goal.needs_class)
        self._naming = Naming(self._schema)
        self._open: dict[Order, Candidate] = {}
        for column, (root,) in enumerate(self.cut.nodes):
            self._propose(column, root)

    def choose(self) -> Turn[Candidate | None]:
        asked = self._followed.wants(self._open.values())
        for wanted, counts in zip(asked, self._counted(asked), strict=True):
            self._candidates.told(wanted, wanted.of(counts))
        candidate = self._candidates.pop()
        if candidate is not None:
            del self._open[candidate.order]
        return at_once(candidate)

    def _counted(self, asked: Sequence[Wanted]) -> Sequence[Ints]:
        if not asked:
            return ()
        assert self._partitions is not None, "a score that wants sums follows the partitions"
        return self._partitions.counts_of_each([(wanted.candidate, wanted.entries) for wanted in asked])

    def verdict(self, candidate: Candidate) -> Turn[Step]:
        violation = self._violation(candidate, self._n_columns)
        if violation is not None:
            violation = self._narrowed(candidate, violation)
            self._prospects.discard(candidate)
        return at_once(Step(candidate, violation is None, violation=violation))

    def apply(self, candidate: Candidate) -> Turn[int]:
        return at_once(self._replace(candidate))

    def name(self) -> Turn[Sequence[Candidate]]:
        unnamed = self._naming.due(self.cut, self._size)
        places = [all_in_one(each.sizes(self._histograms[each.column])) for each in unnamed]
        made = [named.candidate for named in named_by(unnamed, places)]
        for candidate in made:
            self._replace(candidate)
        return at_once(made)

    def _size(self, column: int, node: Node) -> int:
        return int(self._histograms[column][node.leaves].sum())

    def _replace(self, candidate: Candidate) -> int:
        """Refine the table; return the score."""
        score = self._followed.follow(*self._partitions.apply(candidate)) if self._partitions else 0
        self.cut = self.cut.specialized(candidate)
        self._candidates.drop(candidate)
        self._open = {order: other for order, other in self._open.items() if not other.is_beside(candidate)}
        for child in candidate.children:
            self._propose(candidate.column, child)
        return score

    def _propose(self, column: int, node: Node) -> None:
        """Enter the specializations of a node that are candidates."""
        for prospect in self._prospects.of(column, node):
            proposal = propose(prospect, prospect.profile(self._histograms[column]), self._goal.merit)
            if proposal is not None and self._candidates.add(proposal):
                self._open[proposal.candidate.order] = proposal.candidate

    def _violation(self, candidate: Candidate, n_columns: int) -> Violation | None:
        assert self._test is not None
        return self._test.violation(self.cut, candidate, n_columns)

    def _narrowed(self, candidate: Candidate, violation: Violation) -> Violation:
        """Find the fewest columns on which the specialization is not allowed, so that a user can act."""
        for n_columns in range(1, self._n_columns):
            found = self._violation(candidate, n_columns)
            if found:
                return found
        return violation


class Partitions:
    """Leaf partitions of a single holder, counted by the coarsest cells for validity or by ``all_cells``."""

    def __init__(
        self, table: CodedTable, entries: Sequence[Entry], side_inputs: SideInputs, *, all_cells: bool
    ) -> None:
        cells = table.cells if all_cells else coarsest_cells(table.schema, entries)[table.cells]
        counts = np.bincount(cells, table.weights, minlength=table.schema.n_cells).astype(np.int64)
        self.generalized = fully_generalized(len(table.schema.qid), counts)
        self._records = LocalRecords(table, cells, self.generalized)
        self._test = PartitionTest(table.schema, entries)
        self._side_inputs = side_inputs if sides_of(criteria_of(entries)) else None
        self._counted: tuple[Candidate, Ints] | None = None

    def violation(self, _cut: object, candidate: Candidate, n_columns: int) -> Violation | None:
        counts, sides = self.counts(candidate), self._sides(candidate)
        return self._test.violation(self.generalized, candidate, counts, n_columns, sides)

    def failing(self, candidate: Candidate, most: int) -> Ints | None:
        """Return the rows in groups forbidden by the requirement; None for more than ``most`` records."""
        counts, sides = self.counts(candidate), self._sides(candidate)
        found = self._test.failing(self.generalized, candidate, counts, most, sides)
        if found is None:
            return None
        entries = self.generalized.entries_of(candidate)
        rows, child = self._records.members(candidate)
        return rows[found[np.searchsorted(entries, self._records.entry[rows]), child]]

    def _sides(self, candidate: Candidate) -> SidesOfGroups | None:
        """Return the maker of side counts, where a criterion takes any."""
        if self._side_inputs is None:
            return None
        return SidesOfGroups(self._side_inputs, self._records, self.generalized, candidate)

    def apply(self, candidate: Candidate) -> tuple[GeneralizedTable, Refinement]:
        """Specialize; return T_g before, and the refinement."""
        before = self.generalized
        refinement = refine(before, candidate, self.counts(candidate))
        self._records.follow(candidate, refinement)
        self.generalized = refinement.table
        return before, refinement

    def counts(self, candidate: Candidate) -> Ints:
        """Count the records per (refined entry, child), once per candidate."""
        if self._counted is None or self._counted[0] is not candidate:
            entries = self.generalized.entries_of(candidate)
            self._counted = candidate, self._records.counts(candidate, entries)
        return self._counted[1]

    def counts_of_each(self, asked: Sequence[tuple[Candidate, Ints]]) -> list[Ints]:
        """Count the records per (given entry, child) for several candidates with their entries."""
        return self._records.counts_of_each(asked)
