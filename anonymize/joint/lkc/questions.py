"""Candidates of a sealed run that are judged together: their tests, and the shares that the tests take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools, Criterion, Measure, SideCount
from anonymize.cut import Candidate
from anonymize.joint.engine import Engine
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.ahead import Ahead
from anonymize.joint.lkc.horizontal import Counted
from anonymize.joint.lkc.judging import RuleTests, judged_each, tests_of
from anonymize.lkc.plan import GroupPlan
from anonymize.table import Ints
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords


def bits_of(criteria: Sequence[Criterion], n_records: int) -> int:
    """Return the bits for counts of ``n_records`` records and all their forms in criteria; 0 without a criterion."""
    forms = (f for criterion in criteria for case in criterion.cases for f in case)
    return max((form.bits(n_records) + (not form.is_signed) for form in forms), default=0)


class GroupTests:
    """Tests of a validity check; the set of tests is public."""

    def __init__(self, plan: GroupPlan, n_records: int) -> None:
        self._plan = plan
        self._n_records = n_records

    @property
    def count(self) -> int:
        """Number of tests, one for every case and child."""
        at_stake = sum(int(np.count_nonzero(self._plan.at_stake(each))) for each in self._plan.criteria)
        return at_stake * self._plan.n_children

    @property
    def bits(self) -> int:
        return bits_of(self._plan.criteria, self._n_records)

    def by_child(self, sums: Words, *, leads: bool) -> Mapping[Measure, Words]:
        """Return own shares of every (group, child); the public totals are part of the leader's shares."""
        totals = self._plan.totals.astype(np.uint64)
        return self._plan.by_child(sums, totals if leads else np.zeros_like(totals))

    def tests(self, counts: Mapping[Measure, Words]) -> Iterator[RuleTests]:
        """Yield the tests with own shares; nothing for a rule without cases at stake."""
        stakes = {criterion: self._plan.at_stake(criterion) for criterion in self._plan.criteria}
        yield from tests_of(self._plan.criteria, stakes, counts, self._plan.sizes, self._n_records)


@dataclass(frozen=True)
class Question:
    """Candidate to be judged, at a party.

    missing:  refined entries whose counts are not shared yet: shape (n_entries,). ``stamps``: of all refined entries;
              see :class:`~anonymize.joint.lkc.ahead.Ahead`.
    """

    own: Counted
    tests: GroupTests
    stamps: Ints = field(repr=False)
    missing: Bools = field(repr=False)

    @property
    def candidate(self) -> Candidate:
        return self.own.plan.candidate

    @property
    def words(self) -> Ints:
        """Own numbers to share: missing counts of refined entries, then side counts at stake; flat."""
        plan, taken = self.own.plan, self.own.plan.sides_at_stake
        some: Bools = np.logical_or.reduce(taken, axis=(0, 1))
        of_sides = plan.sums_of_sides(self.own.sides, some)[taken]
        return np.concatenate([self.own.counts[self.missing, :-1].reshape(-1), of_sides])

    @property
    def sides(self) -> list[SideCount | None]:
        """Side count of every word, None for a count of a refined entry."""
        told = np.count_nonzero(self.missing) * (self.own.plan.n_children - 1)
        of_sides = np.nonzero(self.own.plan.sides_at_stake)[2].tolist()
        return [*[None] * told, *(self.own.plan.sides[i] for i in of_sides)]

    def counts(self, share: Words, ahead: Ahead) -> Words:
        """Return own shares of all refined entries: uint64, shape (n_entries, n_children - 1).

        share:  of :attr:`words`, summed over the parties.
        """
        n_children = self.own.plan.n_children
        told = share[: np.count_nonzero(self.missing) * (n_children - 1)]
        return ahead.whole(self.candidate, self.stamps, self.missing, told.reshape(-1, n_children - 1))

    def rule_tests(self, counts: Words, share: Words, *, leads: bool) -> list[RuleTests]:
        """Return the tests with own shares: ``counts`` and ``share`` as in :meth:`counts`."""
        plan, taken = self.own.plan, self.own.plan.sides_at_stake
        of_sides = np.zeros(taken.shape, dtype=np.uint64)
        of_sides[taken] = share[len(share) - np.count_nonzero(taken) :]
        sums = plan.joined(plan.sums_of_cells(counts), of_sides)
        return list(self.tests.tests(self.tests.by_child(sums, leads=leads)))


class Questions:
    """Candidates that are judged together, the first in order first."""

    def __init__(self, asked: Sequence[Question]) -> None:
        self.asked = tuple(asked)
        self._own = [question.words for question in asked]

    @property
    def words(self) -> Ints:
        """Own numbers to share, flat."""
        return np.concatenate(self._own)

    @property
    def sides(self) -> list[SideCount | None]:
        """Side count of every word; see :attr:`Question.sides`."""
        return [side for question in self.asked for side in question.sides]

    def judged(
        self, engine: Engine, share: Words, ahead: Ahead, *, leads: bool
    ) -> Rounds[tuple[list[CarriedWords], list[Words]]]:
        """Return a carried bit for each candidate, 1 if it is valid, and own shares as :meth:`Question.counts`.

        share:  of :attr:`words`, summed over the parties.
        """
        pieces = np.split(share, np.cumsum([len(own) for own in self._own])[:-1])
        each = list(zip(self.asked, pieces, strict=True))
        counts = [question.counts(piece, ahead) for question, piece in each]
        tests = [
            question.rule_tests(own, piece, leads=leads)
            for (question, piece), own in zip(each, counts, strict=True)
        ]
        met, owners = yield from judged_each(engine, tests)
        in_order = {"met": met.take(np.argsort(owners, kind="stable"))}
        bits = yield from engine.reduce(circuits.both_circuit(), in_order, np.bincount(owners).tolist())
        return [bits["met"].take([place]) for place in range(len(each))], counts
