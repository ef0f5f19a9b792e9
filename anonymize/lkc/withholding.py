"""Records that spoil it for all: which rows one holder leaves out so that more of the others can be specialized.

A column may stay at its root because of a few odd records. Rows are chosen before anything is published, by a public
rule (semantics §10.9): the run is made; of every value that could still be specialized and was not, those records are
found that stand, in the final table, in groups that must not be made; the value is taken whose specialization lowers
the generalization loss most for each record left out, among those that the limit still allows; its records are left
out; and the run is made again. Of all these runs the one that loses least of the whole table stays, a record that is
left out being lost altogether: so none goes where that leaves the cut as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from anonymize.candidates import propose, prospects
from anonymize.criteria.criterion import Beside
from anonymize.cut import Candidate, Cut
from anonymize.errors import PrivacyError
from anonymize.lkc.requirement import Entry, Requirement, given, whole_table
from anonymize.lkc.single import Partitions, anonymize_alone
from anonymize.scores.score import Score
from anonymize.table import CodedTable, Ints, tally
from anonymize.tds import Outcome

Part = Callable[[Ints], tuple[CodedTable, Beside]]
"""Of some rows of a table, by number: the table that they make by themselves, and what side counts are made of."""


def withheld_rows(table: CodedTable, requirement: Requirement, goal: Score, most: int, part: Part) -> Ints:
    """The rows to leave out: their numbers, ascending; they stand for at most ``most`` records.

    part:  as a run would be given the table if it had only these rows, in their order.

    Raises PrivacyError if even the whole table violates the requirement, or is too large: as the run without them.
    """
    everything, left = np.arange(len(table.cells)), most
    trial = best = _trial(everything, requirement, goal, part)
    while (found := trial.best(left)) is not None:
        left -= found.records
        try:
            trial = _trial(np.delete(trial.kept, found.rows), requirement, goal, part)
        except PrivacyError:  # what is left has too much of a protected value
            break
        best = min(best, trial, key=lambda each: each.lost_of(table))  # of equal ones the one with more rows
    return np.setdiff1d(everything, best.kept)


def _trial(kept: Ints, requirement: Requirement, goal: Score, part: Part) -> _Trial:
    table, beside = part(kept)
    outcome = anonymize_alone(table, requirement, goal, beside=beside)
    asked = requirement.entries(table.schema)
    totals = whole_table(table, asked, beside)[: table.schema.n_cells]
    return _Trial(goal, kept, table, outcome, given(asked, table.schema, totals), beside)


@dataclass(frozen=True)
class _Option:
    """Rows of a trial that must go for a specialization to be allowed, and what that is worth for each record."""

    rows: Ints = field(repr=False)
    records: int
    worth: Fraction


@dataclass(frozen=True)
class _Trial:
    """A run on some rows of a table.

    kept:  their numbers. table, beside: of these rows alone.
    """

    goal: Score
    kept: Ints = field(repr=False)
    table: CodedTable = field(repr=False)
    outcome: Outcome
    entries: tuple[Entry, ...]
    beside: Beside = field(repr=False)

    def lost_of(self, whole: CodedTable) -> Fraction:
        """Generalization loss, the mean over columns, of all records together; 1 for each that was left out."""
        gone = whole.n_records - self.table.n_records
        return self._lost(self.outcome.cut, range(len(self.table.qid))) + gone

    def best(self, most: int) -> _Option | None:
        """What is worth most, of equal ones the first; None: nothing for at most ``most`` records."""
        if most < 1:
            return None
        partitions = Partitions(self.table, self.entries, self.beside, all_cells=False)
        for applied in self.outcome.applied:
            partitions.apply(applied)
        options = [self._option(partitions, candidate, most) for candidate in self._candidates()]
        return max((o for o in options if o is not None), key=lambda option: option.worth, default=None)

    def _candidates(self) -> Iterator[Candidate]:
        """What could still be specialized and was not: discarded, or no candidate as a child would be too small."""
        for column, nodes in enumerate(self.outcome.cut.nodes):
            described, histogram = self.table.schema.qid[column], self.table.class_histogram(column)
            for node in nodes:
                for way in prospects(column, described, node, each_child=self.goal.needs_class):
                    proposal = propose(way, way.profile(histogram), self.goal.merit)
                    if proposal is not None:
                        yield proposal.candidate

    def _option(self, partitions: Partitions, candidate: Candidate, most: int) -> _Option | None:
        rows = partitions.failing(candidate, most)
        if rows is None or len(rows) == 0:
            return None
        before, after = self.outcome.cut, self.outcome.cut.specialized(candidate)
        columns = range(candidate.column, candidate.column + 1)
        records = int(self.table.weights[rows].sum())
        return _Option(rows, records, (self._lost(before, columns) - self._lost(after, columns)) / records)

    def _lost(self, cut: Cut, columns: range) -> Fraction:
        """The part of some columns in the loss under a cut, of all records of the table together."""
        n_leaves = [self.table.schema.qid[i].n_leaves for i in columns]
        spread = (
            Fraction(self._spread(cut, i), n - 1) for i, n in zip(columns, n_leaves, strict=True) if n > 1
        )
        return sum(spread, Fraction(0)) / len(self.table.qid)

    def _spread(self, cut: Cut, column: int) -> int:
        """Over all records, the leaves that a published value stands for, but one."""
        positions = cut.positions(column)
        records = tally(self.table.qid[column], self.table.weights, len(positions))
        return int((records * (np.bincount(positions)[positions] - 1)).sum())
