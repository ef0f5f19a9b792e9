"""The one loop of top-down specialization: whom it asks what, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from anonymize.cut import Candidate
from anonymize.table import Schema
from anonymize.taxonomy import Node
from anonymize.tds import Observer, Outcome, Step, Turn, at_once, run_single, specialize_top_down


def candidate(number: int) -> Candidate:
    return Candidate(number, Node(0, 2), (Node(0, 1), Node(1, 2)))


class Scripted:
    """Answers with these verdicts, one candidate after the other; notes what it is asked."""

    def __init__(self, *verdicts: bool, names: Sequence[Sequence[Candidate]] = ()) -> None:
        self._verdicts = verdicts
        self._names = iter(names)
        self._n = 0
        self.asked: list[tuple[str, int]] = []

    def choose(self) -> Turn[Candidate | None]:
        self._n += 1
        return at_once(candidate(self._n) if self._n <= len(self._verdicts) else None)

    def verdict(self, chosen: Candidate) -> Turn[Step]:
        self.asked.append(("verdict", chosen.column))
        return at_once(Step(chosen, self._verdicts[chosen.column - 1]))

    def apply(self, chosen: Candidate) -> Turn[int]:
        self.asked.append(("apply", chosen.column))
        return at_once(10 * chosen.column)

    def name(self) -> Turn[Sequence[Candidate]]:
        self.asked.append(("name", self._n))
        return at_once(next(self._names, ()))


class Noting(Observer):
    def __init__(self) -> None:
        self.seen: list[tuple[int, Step]] = []

    def turn(self, iteration: int, step: Step) -> None:
        self.seen.append((iteration, step))


def test_what_is_valid_is_applied_and_the_rest_is_discarded() -> None:
    specializer, observer = Scripted(True, False, True), Noting()
    steps = run_single(specialize_top_down(specializer, observer))
    assert specializer.asked == [
        ("verdict", 1),
        ("apply", 1),
        ("verdict", 2),
        ("verdict", 3),
        ("apply", 3),
        ("name", 4),
    ]
    assert [(step.candidate.column, step.applied, step.score) for step in steps] == [
        (1, True, 10),
        (2, False, 0),
        (3, True, 30),
    ]
    assert observer.seen == list(enumerate(steps, 1))


def test_a_table_that_cannot_be_specialized() -> None:
    specializer, observer = Scripted(), Noting()
    assert run_single(specialize_top_down(specializer, observer)) == ()
    assert (specializer.asked, observer.seen) == ([("name", 1)], [])


def test_an_observer_is_told_of_a_turn_when_it_is_done() -> None:
    """Progress that is shown, and costs that are counted, are those of turns that happened."""
    specializer = Scripted(True)

    class Checking(Observer):
        def turn(self, iteration: int, step: Step) -> None:
            assert specializer.asked[-1] == ("apply", step.candidate.column)

    assert len(run_single(specialize_top_down(specializer, Checking()))) == 1


class Talking(Scripted):
    """Asks the others about everything."""

    def choose(self) -> Turn[Candidate | None]:
        found = yield "choose"
        return found  # type: ignore[no-any-return]

    def verdict(self, chosen: Candidate) -> Turn[Step]:
        applied = yield ("valid?", chosen.column)
        return Step(chosen, applied)

    def apply(self, chosen: Candidate) -> Turn[int]:
        yield ("apply", chosen.column)
        return 0

    def name(self) -> Turn[Sequence[Candidate]]:
        found = yield "name"
        return found  # type: ignore[no-any-return]


def driven(turn: Turn[Any], answers: list[Any]) -> tuple[list[Any], Any]:
    """Return the questions, answered in order, and the returned value."""
    asked, answer = [], None
    while True:
        try:
            asked.append(turn.send(answer))
        except StopIteration as stop:
            return asked, stop.value
        answer = answers.pop(0)


def test_messages_pass_through_the_loop() -> None:
    answers = [candidate(1), True, None, None, [candidate(7)], candidate(2), False, None, []]
    asked, steps = driven(specialize_top_down(Talking(), Observer()), answers)
    first = ["choose", ("valid?", 1), ("apply", 1), "choose", "name"]
    assert asked == [*first, "choose", ("valid?", 2), "choose", "name"]
    told = [(step.candidate.column, step.applied, step.naming) for step in steps]
    assert told == [(1, True, False), (7, True, True), (2, False, False)]


def test_what_is_named_when_no_candidate_is_left_counts_as_turns() -> None:
    specializer, observer = Scripted(True, names=[[candidate(8), candidate(9)], [candidate(10)]]), Noting()
    steps = run_single(specialize_top_down(specializer, observer))
    assert specializer.asked == [("verdict", 1), ("apply", 1), ("name", 2), ("name", 3), ("name", 4)]
    assert [(step.candidate.column, step.naming, step.score) for step in steps] == [
        (1, False, 10),
        (8, True, 0),
        (9, True, 0),
        (10, True, 0),
    ]
    assert observer.seen == list(enumerate(steps, start=1))


def test_a_single_holder_waits_for_nobody() -> None:
    with pytest.raises(RuntimeError, match="nobody to wait for"):
        run_single(specialize_top_down(Talking(), Observer()))


def test_an_outcome_lists_what_was_applied() -> None:
    steps = tuple(Step(candidate(i), applied) for i, applied in enumerate((True, False, True)))
    outcome = Outcome(Schema((), None, ("",)), None, steps)  # type: ignore[arg-type]
    assert [c.column for c in outcome.applied] == [0, 2]
