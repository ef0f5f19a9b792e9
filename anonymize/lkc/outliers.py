"""Suppression of records: a holder leaves rows out so that more of the remaining records can be specialized.

A few odd records may keep a column at its root. Rows are chosen before any publication, by a public rule (semantics
§10.9). After a run, for each value that could still be specialized, the rule finds the records in groups of the final
table that the specialization must not make. Among the values with few enough records, it takes the value that lowers
the generalization loss most per record, leaves the records out, and repeats the run. The run with the least loss on
the whole table is kept. A suppressed record counts as lost altogether, so no record is suppressed without a change of
the cut.

Stages limit the number of records, equally for every limit. The runs for a greater limit begin with the runs for a
smaller limit, so a greater limit never makes a worse table. A stage has few runs, so their number is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from anonymize.candidates import propose, prospects
from anonymize.criteria.criterion import SideInputs
from anonymize.cut import Candidate, Cut
from anonymize.errors import PrivacyError
from anonymize.lkc.requirement import Entry, Requirement, given, whole_table
from anonymize.lkc.single import Partitions, anonymize_single
from anonymize.scores.score import Score
from anonymize.table import CodedTable, Ints, tally
from anonymize.tds import Observer, Outcome

Part = Callable[[Ints], tuple[CodedTable, SideInputs]]
"""Function from row numbers of a table to the table of these rows and the data for their side counts."""


STAGES = tuple(Fraction(1, n) for n in (1000, 500, 200, 100, 50, 20, 10, 5, 2))
"""Largest share of suppressed records in each stage. Every stage starts with all rows."""
RUNS_OF_A_STAGE = 8
"""Most new sets of suppressed rows in a stage."""


def most_runs(most: int, n_records: int) -> int:
    """Return the most possible runs if at most ``most`` records may be suppressed, including the run on all rows."""
    return 1 + RUNS_OF_A_STAGE * len(_stages(most, n_records))


def _stages(most: int, n_records: int) -> list[int]:
    """Return the record limit of each stage: all below ``most``, and the first that reaches it."""
    sizes = sorted({int(share * n_records) for share in STAGES} - {0})
    return [size for i, size in enumerate(sizes) if i == 0 or sizes[i - 1] < most] if most > 0 else []


def outlier_rows(
    table: CodedTable,
    requirement: Requirement,
    goal: Score,
    most: int,
    part: Part,
    observer: Observer | None = None,
) -> Ints:
    """Return the rows to suppress: their numbers, ascending. The rows have at most ``most`` records.

    part:      returns the input of a run with only the given rows, in their order.
    observer:  receives every run.

    Raises PrivacyError if the whole table violates the requirement or is too large.
    """
    everything, told = np.arange(len(table.cells)), observer or Observer()
    n_runs, losses = most_runs(most, table.n_records), []
    first = _Trial.of(everything, requirement, goal, part)
    for number, trial in enumerate(_tried(first, most, part), start=1):
        told.trial(number, n_runs)
        losses.append((trial.lost_of(table), trial.kept))
    _, kept = min(losses, key=lambda each: each[0])  # on ties the trial with more rows
    return np.setdiff1d(everything, kept)


def _tried(first: _Trial, most: int, part: Part) -> Iterator[_Trial]:
    """Yield a run on all rows, then the runs of every stage, each on fewer rows, without repetitions."""
    yield first
    n_records, known = first.table.n_records, dict[bytes, Outcome]()
    for size in _stages(most, n_records):
        trial, n_new = first, 0
        while n_new < RUNS_OF_A_STAGE:
            gone = n_records - trial.table.n_records
            found = trial.best(size - gone)
            if found is None:
                break
            if gone + found.records > most:
                return
            kept = np.delete(trial.kept, found.rows)
            key = np.packbits(np.isin(first.kept, kept, assume_unique=True)).tobytes()
            try:
                trial = trial.of(kept, trial.requirement, trial.goal, part, known.get(key))
            except PrivacyError:  # the remaining rows violate the requirement
                break
            if key not in known:
                known[key] = trial.outcome
                n_new += 1
                yield trial


@dataclass(frozen=True)
class _Option:
    """Rows of a trial to suppress for an allowed specialization, and the saved loss per record."""

    rows: Ints = field(repr=False)
    records: int = field(repr=False)
    worth: Fraction = field(repr=False)


@dataclass(frozen=True)
class _Trial:
    """Run on some rows of a table.

    kept:  numbers of the rows. table, beside: of these rows alone.
    """

    requirement: Requirement
    goal: Score
    kept: Ints = field(repr=False)
    table: CodedTable = field(repr=False)
    outcome: Outcome
    entries: tuple[Entry, ...]
    side_inputs: SideInputs = field(repr=False)

    @classmethod
    def of(
        cls, kept: Ints, requirement: Requirement, goal: Score, part: Part, known: Outcome | None = None
    ) -> _Trial:
        """Make the run. known: the outcome, if the run was made before. Raises PrivacyError."""
        table, side_inputs = part(kept)
        outcome = known or anonymize_single(table, requirement, goal, side_inputs=side_inputs)
        asked = requirement.entries(table.schema)
        totals = whole_table(table, asked, side_inputs)[: table.schema.n_cells]
        return cls(requirement, goal, kept, table, outcome, given(asked, table.schema, totals), side_inputs)

    def lost_of(self, whole: CodedTable) -> Fraction:
        """Return the generalization loss, the mean over columns, summed over records; 1 per suppressed record."""
        gone = whole.n_records - self.table.n_records
        return self._lost(self.outcome.cut, range(len(self.table.qid))) + gone

    def best(self, most: int) -> _Option | None:
        """Return the best option, of equal options the first; None if no option has at most ``most`` records."""
        if most < 1:
            return None
        partitions = Partitions(self.table, self.entries, self.side_inputs, all_cells=False)
        for applied in self.outcome.applied:
            partitions.apply(applied)
        options = [self._option(partitions, candidate, most) for candidate in self._candidates()]
        return max((o for o in options if o is not None), key=lambda option: option.worth, default=None)

    def _candidates(self) -> Iterator[Candidate]:
        """Yield the possible specializations that were not applied: discarded, or with a child that is too small."""
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
        """Return the part of some columns in the loss under a cut, summed over all records of the table."""
        n_leaves = [self.table.schema.qid[i].n_leaves for i in columns]
        spread = (
            Fraction(self._spread(cut, i), n - 1) for i, n in zip(columns, n_leaves, strict=True) if n > 1
        )
        return sum(spread, Fraction(0)) / len(self.table.qid)

    def _spread(self, cut: Cut, column: int) -> int:
        """Return the number of leaves of a published value less 1, summed over all records."""
        positions = cut.positions(column)
        records = tally(self.table.qid[column], self.table.weights, len(positions))
        return int((records * (np.bincount(positions)[positions] - 1)).sum())
