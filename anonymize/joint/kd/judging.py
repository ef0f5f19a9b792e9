"""Tests of the sides of cuts, from public counts, and the pair's verdicts on shared counts.

A group has many tests on the same few numbers, and most tests only compare with 0. So each number is compared with 0
once on both sides of a cut, and all such rules are judged from the bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools, Criterion, Form, Measure, Rule, Tally, alike
from anonymize.criteria.size import Size
from anonymize.joint.engine import Engine, carried, in_rows, low_bits
from anonymize.joint.kd import circuits
from anonymize.joint.zeros import ZeroForms
from anonymize.kd.fronts import Front
from anonymize.table import Ints
from crypto.blocks import WORD_BITS
from crypto.circuit import Circuit, Held
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.shares import width_for
from crypto.two_party import CarriedWords, expect_outcome

_WIDTH_STEP, _ZEROS_STEP = 4, 2
"""Steps of bit widths: numbers with similar widths go through the same circuit."""


@dataclass(frozen=True)
class OpenGroups:
    """Public knowledge of the groups of a front.

    totals:  counts of the groups: int64, shape (n_measures, n_groups).
    stakes:  by criterion, the cases that a side could break, shape (n_groups, n_cases) each.

    Both are public.
    """

    totals: Ints = field(repr=False)
    stakes: Mapping[Criterion, Bools] = field(repr=False)

    @property
    def of_one_candidate(self) -> int:
        """Tests of a side of a cut in every group, at least 1."""
        return max(sum(int(stake.sum()) for stake in self.stakes.values()), 1)


@dataclass(frozen=True)
class _Alike:
    """Criteria with equal rules on values: their tests can go through the same circuit."""

    rule: Rule
    criteria: tuple[Criterion, ...]
    forms: tuple[Form, ...]

    def circuit(self, width: int, n_values: int) -> Circuit:
        return circuits.sides_circuit(self.rule, width, n_values)

    def inputs(self, width: int, left: Words, whole: Words) -> dict[str, Words]:
        """Return own shares of the rule's values on the left, and the group's values: (n_tests, n_values) each."""
        return {self.rule.entry: low_bits(left, width), "whole": low_bits(whole, width)}

    def width(self, n_records: int) -> int:
        """Return the bits of the tested values in a group of ``n_records`` records, rounded up."""
        return _rounded(max(form.bits(n_records) for form in self.forms) + 1, _WIDTH_STEP)


def _rounded(bits: int, step: int) -> int:
    return min(-(-bits // step) * step, WORD_BITS)


class SideTests:
    """Tests of a requirement, and their verdicts."""

    def __init__(self, criteria: Sequence[Criterion], measures: Sequence[Measure], least: int) -> None:
        """``measures``: of every row of counts. ``least``: K."""
        sized = any(isinstance(criterion, Size) for criterion in criteria)
        self._criteria = tuple(criteria) if sized else (Size(1), *criteria)
        self._measures = measures
        self._least = least
        self._zeros = ZeroForms(self._criteria, measures)
        self._valued = [
            _Alike(rule, tuple(own), tuple({form: None for c in own for case in c.cases for form in case}))
            for (rule, _), own in alike(self._criteria).items()
            if not rule.of_zeros
        ]

    def of(self, totals: Ints) -> OpenGroups:
        """Return the public knowledge of groups; ``totals``: as in :class:`OpenGroups`. A side's size is always
        tested.
        """
        tallies = {m: counts for m, counts in self._by_measure(totals).items() if isinstance(m, Tally)}
        stakes: dict[Criterion, Bools] = {}
        for criterion in self._criteria:
            if isinstance(criterion, Size):
                stakes[criterion] = np.ones((totals.shape[1], len(criterion.cases)), dtype=bool)
            else:
                stakes[criterion] = criterion.at_stake(tallies, self._least)
        return OpenGroups(totals, stakes)

    def share_bits(self, n_records: int) -> int:
        """Return the largest share width of counts and forms in groups of ``n_records`` records."""
        widest = max(self._zeros.bits(n_records), *(alike.width(n_records) for alike in self._valued))
        return width_for((1 << widest) - 1)

    def first(self, engine: Engine, front: Front, left: Words, groups: OpenGroups) -> Rounds[Words]:
        """Open the number of the first valid candidate of every group, from 1, or 0: shape (n_groups,).

        left: own shares of the counts left of every candidate, shape (n_measures, n_groups, n_candidates).
        """
        present = front.at > 0
        met, owner = [], []
        for own, width, slots, values, whole in self._rows(front, present, left, groups):
            circuit, inputs = own.circuit(width, values.shape[1]), own.inputs(width, values, whole)
            met.append(carried((yield from engine.run(circuit, len(values), inputs)), "met"))
            owner.append(slots)
        by_zeros, slots_of_zeros = yield from self._met_by_zeros(engine, front, left, groups)
        owners = np.concatenate([*owner, *slots_of_zeros])
        in_order = CarriedWords.concatenate([*met, *by_zeros]).take(np.argsort(owners, kind="stable"))
        there, sizes = np.unique(owners, return_counts=True)
        by_slot = yield from engine.all_of_each(in_order, sizes)
        n_groups, width = present.shape
        place = np.zeros(present.size, dtype=np.int64)
        place[there] = np.arange(len(there))
        outputs = yield from engine.run(
            circuits.first_circuit(width),
            n_groups,
            {"met": by_slot.take(place), "present": present.astype(np.uint64)},
        )
        first = outputs["first"]
        assert isinstance(first, np.ndarray)
        for number in np.unique(first).tolist():
            expect_outcome(number, width + 1, engine.peer)
        return first.reshape(-1)

    def _by_measure(self, counts: NDArray[Any]) -> dict[Measure, NDArray[Any]]:
        return dict(zip(self._measures, counts, strict=True))

    def _rows(
        self, front: Front, present: Bools, left: Words, groups: OpenGroups
    ) -> Iterator[tuple[_Alike, int, Ints, Words, Words]]:
        """Yield the rules on values with each test's candidate, own shares on the left, and the group's values."""
        for own in self._valued:
            widths = np.array([own.width(n) for n in front.sizes.tolist()])
            for width in np.unique(widths).tolist():
                here = present & (widths == width)[:, None]
                whole, stakes = groups.totals.astype(np.uint64), groups.stakes
                parts = [p for c in own.criteria for p in self._tests_of(c, here, left, whole, stakes[c])]
                if parts:
                    slots, values, of_groups = (np.concatenate(each) for each in zip(*parts, strict=True))
                    yield own, width, slots, values, of_groups

    def _tests_of(
        self, criterion: Criterion, present: Bools, left: Words, whole: Words, stakes: Bools
    ) -> Iterator[tuple[Ints, Words, Words]]:
        """Yield the tests of a criterion, case by case: slots, values on the left, and the group's values."""
        shares, totals = self._by_measure(left), self._by_measure(whole)
        for forms, stake in zip(criterion.cases, stakes.T, strict=True):
            group, place = np.nonzero(present & stake[:, None])
            if len(group):
                values = np.stack([_of(form, shares)[group, place] for form in forms], axis=1)
                of_group = np.stack([_of(form, totals)[group] for form in forms], axis=1)
                yield group * present.shape[1] + place, values, of_group

    def _met_by_zeros(
        self, engine: Engine, front: Front, left: Words, groups: OpenGroups
    ) -> Rounds[tuple[list[CarriedWords], list[Ints]]]:
        """Judge the rules on zeros alone. Return bits, and the candidate of each bit."""
        present, stakes = front.at > 0, [groups.stakes[criterion] for criterion in self._zeros.criteria]
        wanted = self._zeros.wanted(stakes, present)
        met: list[CarriedWords] = []
        owner: list[Ints] = []
        if not wanted.any():
            return met, owner
        none, all_ = yield from self._ends(engine, front.sizes, wanted, left, groups.totals)
        for tests in self._zeros.tests(stakes, present, wanted):
            there, counts = np.unique(tests.slots, return_counts=True)
            items, of_row = in_rows(counts, circuits.TESTS_AT_ONCE)
            taken = tests.taken[np.argsort(tests.slots, kind="stable")][items].reshape(-1)
            circuit = circuits.zeros_circuit(tests.rule, tests.taken.shape[1])
            inputs = {"none": none.take(taken), "all": all_.take(taken)}
            met.append(carried((yield from engine.run(circuit, len(of_row), inputs)), "met"))
            owner.append(there[of_row])
        return met, owner

    def _ends(
        self, engine: Engine, sizes: Ints, wanted: Bools, left: Words, whole: Ints
    ) -> Rounds[tuple[CarriedWords, CarriedWords]]:
        """Compute, for all wanted candidates in order, if a number is 0 left of the candidate, and if it is 0 right
        of it.

        wanted:  shape (n_forms, n_groups, n_candidates). whole: the counts of the groups.
        """
        values = self._zeros.numbers(wanted, left)
        totals = np.broadcast_to(whole.astype(np.uint64)[:, :, None], left.shape)
        of_groups = self._zeros.numbers(wanted, totals)
        by_group = np.array([_rounded(self._zeros.bits(n), _ZEROS_STEP) for n in sizes.tolist()])
        widths = np.broadcast_to(by_group[None, :, None], wanted.shape)[wanted]
        found: list[tuple[CarriedWords, CarriedWords]] = []
        order = np.argsort(widths, kind="stable")
        each_width, counts = np.unique(widths, return_counts=True)
        for width, some in zip(each_width.tolist(), np.split(order, np.cumsum(counts)[:-1]), strict=True):
            inputs = _ends_of(engine, values[some], of_groups[some], width)
            outputs = yield from engine.run(circuits.ends_circuit(width), len(some), inputs)
            found.append((carried(outputs, "none"), carried(outputs, "all")))
        none, all_ = (CarriedWords.concatenate(parts) for parts in zip(*found, strict=True))
        back = np.argsort(order)
        return none.take(back), all_.take(back)


def _ends_of(engine: Engine, share: Words, whole: Words, width: int) -> dict[str, Words]:
    """Return the own input of ends: the own share if the number left, or right, of a cut is 0."""
    if engine.role is Held.EVALUATOR:
        return {Held.EVALUATOR.value: low_bits((np.uint64(0) - share).reshape(-1, 1), width)}
    return {Held.GARBLER.value: low_bits(np.stack([share, share - whole], axis=1), width)}


def _of(form: Form, counts: Mapping[Measure, NDArray[Any]]) -> NDArray[Any]:
    return form.of({measure: counts[measure] for measure, _ in form.terms})
