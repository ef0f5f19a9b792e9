"""DiffGen: differentially private data release by top-down specialization ([T] chapter 6, Algorithm 6.1).

The loop is :mod:`anonymize.tds`, answered by chance. The next specialization has the greatest *noisy* score (report
noisy max, semantics §8.2) and is always applied, h times. Then every cell of the product of the cuts gets a noisy
count. :class:`DiffGen` holds the public state: cut, candidates, account. A :class:`Holder` scores, draws and counts,
for a single table or for each way of sharing a table.

Everything public comes from the job: domains, class list, h, limits. The cut alone determines the candidates: every
node with two children, every interval with two grid cells, empty or not.

Source: [T] 6.3; corrections: semantics §8.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from anonymize.candidates import profile_length, specialization
from anonymize.cut import Candidate, Cut, child_counts, top
from anonymize.dp.accounting import Accountant, Dp, check_rows
from anonymize.dp.noise import Noise
from anonymize.dp.noisy_table import (
    CellDomain,
    NoisyTable,
    cell_counts,
    cells_after,
    domain_of,
    occupied_cells,
)
from anonymize.dp.sets import SetColumn
from anonymize.dp.sparse import filter_for, sparse_counts
from anonymize.dp.utility import utility
from anonymize.table import CodedTable, Ints, Schema, tally
from anonymize.taxonomy import Node
from anonymize.tds import Observer, Outcome, Step, Turn, at_once, run_single, specialize_top_down


@dataclass(frozen=True, slots=True)
class Place:
    """Candidate node of the cut: its column and the node."""

    column: int
    node: Node


@dataclass(frozen=True)
class DpOutcome:
    """Release of a run with its account."""

    outcome: Outcome
    table: NoisyTable
    accountant: Accountant


class Holder(Protocol):
    """Holder of the records. In a joint run each party has a holder, and all holders keep in step.

    The rate of the noise of every method determines its cost, which :class:`DiffGen` has charged before.
    """

    def enter(self, places: Sequence[Place], rate: Fraction) -> Turn[None]:
        """Score new candidates. Draw the split points of intervals first, by noisy max."""
        ...

    def pick(self, places: Sequence[Place], rate: Fraction) -> Turn[Candidate]:
        """Choose among the candidates by noisy max; ties go to the first."""
        ...

    def specialize(self, candidate: Candidate, test: Fraction | None) -> Turn[None]:
        """Follow a specialization. ``test``: ε of the test of a set-valued column's combinations."""
        ...

    def release(self, cut: Cut, rate: Fraction) -> Turn[NoisyTable]:
        """Count the cells with discrete Laplace noise."""
        ...


class DiffGen:
    """Public side of a run, as a :class:`anonymize.tds.Specializer`.

    bounded:  True if a specialization to more than ``max_cells`` cells is no candidate, as joint runs keep to the
              limit. A single holder lists cells above a threshold instead.
    """

    def __init__(
        self, schema: Schema, requirement: Dp, holder: Holder, observer: Observer, *, bounded: bool
    ) -> None:
        self._schema = schema
        self._requirement = requirement
        self._holder = holder
        self._observer = observer
        self._epsilon = requirement.step_epsilon(schema)
        per_record = requirement.of_a_record(self._epsilon)
        self._rate = utility(requirement.utility, requirement.max_rows).rate(per_record)
        self._bounded = bounded
        self._places: list[Place] = []
        self._round = 0
        self.cut = top(schema)
        self.accountant = Accountant(requirement.epsilon)

    def run(self) -> Turn[DpOutcome]:
        """Specialize h times (fewer if there is nothing left to specialize) and release the counts."""
        self._observer.opening()
        self._observer.phase("score")
        yield from self._enter([Place(column, root) for column, (root,) in enumerate(self.cut.nodes)])
        steps = yield from specialize_top_down(self, self._observer)
        self._observer.phase("count")
        spent = self.accountant.charge("counts of the cells", self.accountant.rest, self._round)
        rate = self._requirement.of_a_record(spent)
        table = yield from self._holder.release(self.cut, rate)
        return DpOutcome(Outcome(self._schema, self.cut, steps), table, self.accountant)

    def choose(self) -> Turn[Candidate | None]:
        places = tuple(place for place in self._places if self._fits(place))
        if self._round == self._requirement.specializations or not places:
            return None
        self._observer.phase("choose")
        self._round += 1
        self.accountant.charge("choice of a specialization", self._epsilon, self._round)
        return (yield from self._holder.pick(places, self._rate))

    def _fits(self, place: Place) -> bool:
        return not self._bounded or fits(self._schema, self._requirement, self.cut, place)

    def verdict(self, candidate: Candidate) -> Turn[Step]:
        return at_once(Step(candidate, applied=True))

    def name(self) -> Turn[Sequence[Candidate]]:
        """Name no candidates: occurring values stay hidden, and children do not leave separately."""
        return at_once(())

    def apply(self, candidate: Candidate) -> Turn[int]:
        self._observer.phase("score")
        last = self._round == self._requirement.specializations
        column = self._schema.qid[candidate.column]
        test = None
        if column.sets is not None and not last:
            spent = self.accountant.charge(
                f"test of the combinations of {column.name}", self._epsilon, self._round
            )
            test = self._requirement.of_a_record(spent)
        yield from self._holder.specialize(candidate, test)
        self.cut = self.cut.specialized(candidate)
        self._places.remove(Place(candidate.column, candidate.node))
        if not last:
            yield from self._enter([Place(candidate.column, child) for child in candidate.children])
        return 0

    def _enter(self, places: Sequence[Place]) -> Turn[None]:
        """Make nodes candidates if possible. Split points of intervals of the same column cost ε′ together."""
        fitting = [place for place in places if is_candidate(self._schema, self._requirement, place)]
        for column in dict.fromkeys(place.column for place in fitting):
            if self._schema.qid[column].is_numeric:
                name = self._schema.qid[column].name
                self.accountant.charge(f"split points of {name}", self._epsilon, self._round)
        yield from self._holder.enter(fitting, self._rate)
        self._places = sorted([*self._places, *fitting], key=lambda place: (place.column, place.node.first))


def is_candidate(schema: Schema, requirement: Dp, place: Place) -> bool:
    """Return True for a node with two children or more, and not too many in a set-valued column. Public."""
    column = schema.qid[place.column]
    children = profile_length(column, place.node)
    return children > 1 and (column.sets is None or children <= requirement.max_fanout)


def split_points(schema: Schema, place: Place) -> int:
    """Return the number of possible split points of an interval; 0 for other nodes. Public."""
    column = schema.qid[place.column]
    return profile_length(column, place.node) - 1 if column.is_numeric else 0


def fits(schema: Schema, requirement: Dp, cut: Cut, place: Place) -> bool:
    """Return True if the specialization of a node of the cut keeps to the limit of cells. Public."""
    n_children = len(schema.qid[place.column].children(place.node)) or 2
    return cells_after(schema, cut, place.column, n_children) <= requirement.max_cells


def barred(schema: Schema, requirement: Dp, steps: Sequence[Step]) -> dict[Place, int]:
    """Return the nodes barred by the limit of cells in a bounded run, each with the first turn of the bar.

    Public: the result follows from the job and the applied steps.
    """
    cut, found = top(schema), dict[Place, int]()
    for turn in range(1, min(len(steps) + 1, requirement.specializations) + 1):
        places = [Place(column, node) for column, nodes in enumerate(cut.nodes) for node in nodes]
        for place in places:
            if is_candidate(schema, requirement, place) and not fits(schema, requirement, cut, place):
                found.setdefault(place, turn)
        if turn <= len(steps):
            cut = cut.specialized(steps[turn - 1].candidate)
    return found


class Histograms:
    """Class counts of a holder by column: the input of all scores."""

    def __init__(self, table: CodedTable, sets: Mapping[int, SetColumn]) -> None:
        self._schema = table.schema
        self._sets = sets
        self._counts = [
            _by_set(table, i) if i in sets else table.class_histogram(i) for i in range(len(table.qid))
        ]

    def cells(self, place: Place) -> Ints:
        """Return the class counts of an interval's grid cells, shape (n_cells, n_classes)."""
        return self._counts[place.column][place.node.first : place.node.last]

    def candidate(self, place: Place, split: int) -> Candidate:
        """Return the specialization of a node; an interval is split after its first ``split`` cells."""
        return specialization(place.column, self._schema.qid[place.column], place.node, split)

    def parts(self, candidate: Candidate) -> Ints:
        """Return the class counts of the disjoint parts of a specialization, shape (n_parts, n_classes)."""
        counts = self._counts[candidate.column]
        if candidate.column in self._sets:
            return self._sets[candidate.column].profile(candidate, counts)
        return child_counts(candidate.children, counts)


def _by_set(table: CodedTable, column: int) -> Ints:
    """Return the class counts of every set of a set-valued column, shape (n_sets, n_classes)."""
    n_sets, n_classes = table.sets[column].n_sets, table.schema.n_classes
    keys = table.qid[column].astype(np.int64) * n_classes + table.axis(0)
    return tally(keys, table.weights, n_sets * n_classes).reshape(n_sets, n_classes)


class SingleHolder:
    """Single holder of a whole table, with exact noise."""

    def __init__(self, table: CodedTable, requirement: Dp, noise: Noise) -> None:
        self._table = table
        self._requirement = requirement
        self._noise = noise
        self._utility = utility(requirement.utility, requirement.max_rows)
        self._sets = {
            i: SetColumn(table.schema.qid[i], sets, tally(table.qid[i], table.weights, sets.n_sets))
            for i, sets in table.sets.items()
        }
        self._histograms = Histograms(table, self._sets)
        self._scored: dict[Place, tuple[Candidate, int]] = {}

    def enter(self, places: Sequence[Place], rate: Fraction) -> Turn[None]:
        for place in places:
            candidate = self._histograms.candidate(place, self._split(place, rate))
            self._scored[place] = candidate, self._utility.score(self._histograms.parts(candidate))
        return at_once(None)

    def _split(self, place: Place, rate: Fraction) -> int:
        """Draw the number of left cells of an interval; 0 for other nodes."""
        if not self._table.schema.qid[place.column].is_numeric:
            return 0
        return 1 + noisy_max(self._utility.split_scores(self._histograms.cells(place)), rate, self._noise)

    def pick(self, places: Sequence[Place], rate: Fraction) -> Turn[Candidate]:
        entries = [self._scored[place] for place in places]
        winner = noisy_max([score for _, score in entries], rate, self._noise)
        return at_once(entries[winner][0])

    def specialize(self, candidate: Candidate, test: Fraction | None) -> Turn[None]:
        if candidate.column in self._sets:
            self._sets[candidate.column].specialize(candidate, test, self._noise)
        return at_once(None)

    def release(self, cut: Cut, rate: Fraction) -> Turn[NoisyTable]:
        domain = domain_of(self._table.schema, cut, self._sets)
        if domain.size > self._requirement.max_cells:
            return at_once(self._sparse(domain, cut, rate))
        values = {i: np.array(c.value_of_sets, dtype=np.int64) for i, c in self._sets.items()}
        counts = cell_counts(self._table, cut, domain, values)
        return at_once(domain.table(counts + np.array(self._noise.laplace(rate, len(counts)))))

    def _sparse(self, domain: CellDomain, cut: Cut, rate: Fraction) -> NoisyTable:
        """Return the cells with noisy counts at or above a threshold, for a domain beyond the limit."""
        test = filter_for(rate, domain.size)
        values = {i: column.value_of_sets for i, column in self._sets.items()}
        occupied = occupied_cells(self._table, cut, domain, values)
        return domain.listed(sparse_counts(domain.size, occupied, test, self._noise), test.threshold)


def release_single(
    table: CodedTable,
    requirement: Dp,
    noise: Noise,
    observer: Observer | None = None,
    *,
    bounded: bool = False,
) -> DpOutcome:
    """Release a holder's table with ε-differential privacy ([T] Algorithm 6.1).

    Exactly ε-DP for adding or removing a record (``per_person`` records), with ideal coins behind ``noise``.
    ``bounded``: as in joint runs, see :class:`DiffGen`.

    Raises PrivacyError if the table has more than ``max_rows`` records: the noise relies on this bound.
    """
    check_rows(table.n_records, requirement.max_rows)
    holder = SingleHolder(table, requirement, noise)
    diffgen = DiffGen(table.schema, requirement, holder, observer or Observer(), bounded=bounded)
    return run_single(diffgen.run())


def noisy_max(scores: Sequence[int], rate: Fraction, noise: Noise) -> int:
    """Report noisy max: return the place of the greatest score plus geometric noise; ties go to the first.

    With rate ε/2Δ the result is exactly ε-DP for scores that a record changes by at most Δ; with rate ε/Δ if all
    scores also move in the same direction (McKenna, Sheldon, NeurIPS 2020; Ding et al. 2021: permute-and-flip as
    noisy max with exponential noise, here in integers). Proof: given the noise of the others, i wins iff the noise of
    i reaches some T − u_i, so with probability min(1, a^(T−u_i)). For a neighbour, T rises by at most Δ, and u_i
    falls by at most Δ, or not at all if all scores move together.
    """
    noisy = [score + g for score, g in zip(scores, noise.geometric(rate, len(scores)), strict=True)]
    return noisy.index(max(noisy))
