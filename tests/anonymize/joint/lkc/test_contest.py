"""Contests that go on from turn to turn: the best of the present entries wins, and decided pairs stay decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from anonymize.joint.engine import Engine, Fields, carried
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.scores import contest
from anonymize.joint.lkc.scores.contest import Contest, Entrant
from anonymize.joint.standings import Standings
from anonymize.tds import Observer
from crypto.errors import RemoteProtocolError
from crypto.local import run_local
from crypto.rounds import Rounds
from crypto.two_party import Value
from tests.support.sessions import two_party_sessions

WIDTH = 6
TURNS = 40
GROUPS = (0, 1, 2, 3, 6, 12)


@dataclass
class Gates(Observer):
    counts: list[int] = field(default_factory=list)

    def gates(self, count: int) -> None:
        self.counts.append(count)


@dataclass
class Made:
    """An entry in the open, with a number of its own; one that changed its score keeps its name."""

    number: int
    name: int
    group: int
    score: int

    @property
    def is_valid(self) -> bool:
        return self.score > 0


Turn = tuple[list[Made], list[Made]]
"""The new entries of a turn, and all present entries in their order."""


def turns(seed: int) -> list[Turn]:
    """Random turns: entries appear, leave, and change their scores."""
    rng, made, present = np.random.default_rng(seed), 0, list[Made]()
    found = []
    for number in range(TURNS):
        new = []
        kept = [each for each in present if rng.random() > 0.1]
        for group in rng.choice(GROUPS, int(rng.integers(3)) + 8 * (number == 0)).tolist():
            new.append(Made(made, made, group, int(rng.integers(-3, 12))))
            made += 1
        for place in range(len(kept)):
            if rng.random() < 0.1:
                kept[place] = Made(made, kept[place].name, kept[place].group, int(rng.integers(-3, 12)))
                new.append(kept[place])
                made += 1
        present = sorted({each.number: each for each in kept + new}.values(), key=lambda each: each.group)
        found.append((new, present))
    return found


def fields_of(engine: Engine, new: Sequence[Made]) -> Rounds[list[Fields]]:
    """Enter scores, public here, as carried words."""
    zeros = np.zeros((len(new), 1), dtype=np.uint64)
    (losses,) = yield from engine.run_all([(circuits.enter_circuit(WIDTH), len(new), {"loss": zeros})])
    scores = np.array([[each.score] for each in new], dtype=np.int64).reshape(-1, 1)
    public = scores.astype(np.uint64) & np.uint64((1 << WIDTH) - 1)
    inputs: dict[str, Value] = {"loss": carried(losses, "loss"), "public": public}
    outputs = yield from engine.run(circuits.added_circuit(WIDTH), len(new), inputs)
    return [{name: carried(outputs, name).take([i]) for name in outputs} for i in range(len(new))]


def played(every: Sequence[Turn], observer: Observer) -> list[int | None]:
    """The number of the winner of every turn, None without a valid entry; the same at both parties."""

    def protocol(engine: Engine) -> Rounds[list[int | None]]:
        going_on = Contest(lambda bits: circuits.more_added_circuit(WIDTH, bits))
        known: dict[int, Fields] = {}
        winners: list[int | None] = []
        for new, present in every:
            entered = yield from fields_of(engine, new)
            known |= {each.number: fields for each, fields in zip(new, entered, strict=True)}
            entrants = [Entrant(each.name, each.group, known[each.number]) for each in present]
            _, best = yield from going_on.best(engine, entrants)
            winners.append(None if best is None else present[best[0]].number)
        return winners

    garbler, evaluator = two_party_sessions()
    engines = {"g": Engine(garbler, observer), "e": Engine(evaluator, Observer())}
    results, _ = run_local({name: protocol(engine) for name, engine in engines.items()})
    assert results["g"] == results["e"]
    return results["g"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_best_present_entry_wins_each_turn(seed: int) -> None:
    """The first of equal ones; none where no entry is valid."""
    every = turns(seed)
    expected = []
    for _, present in every:
        valid = [each for each in present if each.is_valid]
        expected.append(max(valid, key=lambda each: each.score).number if valid else None)
    assert played(every, Observer()) == expected


def test_decided_pairs_are_not_played_again() -> None:
    """Without the winner only the pairs are played that it was in: its group, and the groups above."""
    present = [Made(number, number, number // 2, 1 + number % 7) for number in range(32)]
    gates = Gates()
    (winner,) = played([(present, present)], gates)
    first = sum(gates.counts)
    rest = [each for each in present if each.number != winner]
    gates = Gates()
    played([(present, present), ([], rest)], gates)
    again = sum(gates.counts) - first
    pair = circuits.more_added_circuit(WIDTH, 5).and_gates
    opening = circuits.open_circuit((("slot", 5),)).and_gates
    assert again == 4 * pair + opening  # 16 groups: four pairs above the one that lost an entry


def test_slots_stay_and_are_taken_again() -> None:
    slots = contest._Slots()
    assert slots.of("abc") == [0, 1, 2]
    assert slots.of("ac") == [0, 2]
    assert slots.of("cxay") == [2, 1, 0, 3]
    assert slots.of("y") == [3]
    assert slots.of("yz") == [3, 0]


def test_a_slot_that_no_entry_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slots take two bits: bent tables could tell a fourth."""

    def bent(*_: Any) -> Rounds[tuple[bool, dict[str, int]]]:
        return False, {"slot": 3}
        yield

    monkeypatch.setattr(contest, "open_unless", bent)
    present = [Made(number, number, number, 1) for number in range(3)]
    with pytest.raises(RemoteProtocolError, match="impossible"):
        played([(present, present)], Observer())


def test_no_secret_in_the_repr() -> None:
    assert (
        repr(Standings(lambda bits: circuits.more_added_circuit(WIDTH, bits)))
        == "Standings(0 entries, <secret>)"
    )
