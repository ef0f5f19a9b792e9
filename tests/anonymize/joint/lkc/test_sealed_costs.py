"""Traffic and gates of sealed horizontal LKC."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from anonymize.criteria.distinct import DistinctValues
from anonymize.criteria.persons import Persons, counted_persons
from anonymize.criteria.size import Size
from anonymize.joint import pair
from anonymize.joint.lkc import sealed
from anonymize.joint.lkc.scores.rows import score_of
from anonymize.joint.lkc.sealed import anonymize_sealed
from anonymize.joint.roster import Roster
from anonymize.lkc.requirement import Ask, AskedList, criteria_of
from anonymize.tds import Observer
from crypto.circuit import Held
from crypto.local import run_local
from crypto.shares import ShareSession
from tests.support import jobs
from tests.support.computations import Computed
from tests.support.horizontal import expect_bytes_of_the_pair, run_sealed, small_case, small_lkc
from tests.support.rng import SeededRng


def test_bytes_of_those_outside_the_pair(computed: list[Computed], monkeypatch: pytest.MonkeyPatch) -> None:
    """A contributor sends its seed and shares, wide enough for the number of records; the pair what it opens."""
    shared: list[int] = []
    original = sealed.share_vector

    def recording(session: ShareSession, values: Any, counted: Any = None) -> Any:
        if session.me == "p2":
            shared.append(values.nbytes)
        return original(session, values, counted)

    monkeypatch.setattr(sealed, "share_vector", recording)
    monkeypatch.setattr(pair, "share_vector", recording)
    tables, request = small_case()
    results, transcript = run_sealed(tables, request)
    expect_bytes_of_the_pair(transcript, computed, results["p0"])
    assert transcript.bytes_sent("p2") == 16 + sum(shared)
    reveals = results["p0"].ledger.reveals
    names = [r.name for r in reveals]
    counts = sum(int(np.prod(r.shape)) for r in reveals if r.name in ("root_counts", "partition_counts"))
    to_p2 = {
        who: sum(len(m.payload) for m in transcript.view("p2") if m.sender == who) for who in ("p0", "p1")
    }
    opened = sum(r.shape[0] for r in reveals if r.name == "split")
    verdicts = sum(m.step == "sealed/valid" for m in transcript.view("p2")) // 2
    assert to_p2 == {
        "p0": 4 * counts + 1 + 16 * (names.count("split") + verdicts),
        "p1": 4 * counts + 16 + 8 * (opened + verdicts),
    }


class Gates(Observer):
    """Counts AND gates."""

    total = 0

    def gates(self, count: int) -> None:
        self.total += count


def test_cost_does_not_depend_on_the_number_of_records() -> None:
    """Every record five times with K five times as large: the same turns, gates within 30 %."""
    tables, request = small_case()
    totals, turns = [], []
    for factor in (500, 2500):  # 45,000 and 225,000 records
        gates = Gates()
        larger = [dataclasses.replace(table, weights=factor * table.weights) for table in tables]
        scaled = dataclasses.replace(request, requirement=small_lkc(2, factor * 2))
        results, _ = run_sealed(larger, scaled, observer=gates)
        totals.append(gates.total)
        turns.append(jobs.turns(results["p0"].outcome))
    assert turns[0] == turns[1]
    assert totals[0] < totals[1] < 1.3 * totals[0]


@pytest.mark.some(1)
@pytest.mark.parametrize(("score", "expected"), [("infogain", 11_642), ("tdr", 61_010), ("added", 6_395)])
def test_gates_of_scores(score: str, expected: int) -> None:
    """Of 45,000 records in three hands: a circuit that grows, or a count that goes through a wider one, shows."""
    tables, request = small_case()
    gates = Gates()
    larger = [dataclasses.replace(table, weights=500 * table.weights) for table in tables]
    scaled = dataclasses.replace(request, requirement=small_lkc(2, 1000), goal=score_of(score, None))
    run_sealed(larger, scaled, observer=gates)
    assert gates.total == expected


def test_a_party_outside_the_pair_sends_its_shares_and_empty_consents_and_nothing_else() -> None:
    tables, request = small_case()
    _, transcript = run_sealed(tables, request)
    own = [m for m in transcript.messages if m.sender == "p2"]
    consents = {("sealed/consent", "p0"), ("sealed/consent", "p1")}
    assert {(m.step, m.recipient) for m in own} == {("shares/seed", "p1"), ("shares/share", "p0"), *consents}
    assert {m.payload for m in own if m.step == "sealed/consent"} == {b""}


def cost_of_tests(computed: list[Computed]) -> Counter[tuple[str, ...]]:
    """By circuit how many instances of it a run evaluated, of those that test groups."""
    found = Counter[tuple[str, ...]]()
    for entry in computed:
        kind, *numbers = entry.circuit.name.split("/")
        if entry.role is Held.GARBLER and kind in ("size", "sign", "zero", "by-zeros"):
            found[kind, *numbers] += entry.batch
    return found


@pytest.mark.more
def test_what_distinct_costs(computed: list[Computed], monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside K, of every group and child where one value too few could be K records: a zero test for each value,
    a count, a comparison, a bit to join."""
    monkeypatch.setattr(
        sealed, "MOST_TESTS", 0
    )  # one candidate at a time, so that the same groups are tested
    tables, request = small_case()
    (column,) = request.schema.sensitive
    asked = {
        "K": (Size(4),),
        "2": (Size(4), DistinctValues(((column.name, 2),))),
        "3": (Size(4), DistinctValues(((column.name, 3),))),
    }
    turns, gates, tests = {}, {}, {}
    for name, demands in asked.items():
        computed.clear()
        requirement = AskedList((Ask(2, demands),))
        results, _ = run_sealed(tables, dataclasses.replace(request, requirement=requirement))
        turns[name] = jobs.turns(results["p0"].outcome)
        garbled = [entry for entry in computed if entry.role is Held.GARBLER]
        gates[name] = sum(
            e.batch * e.circuit.and_gates for e in garbled if not e.circuit.name.startswith("root")
        )
        tests[name] = cost_of_tests(computed)
    assert turns["K"] == turns["2"] == turns["3"]  # so that the difference is what testing costs
    width, n_values = 7, 3
    for least, of_one, n_at_stake in (("2", 21, 26), ("3", 23, 28)):
        joined = "by-zeros", "distinct", str(n_values), str(n_values), least
        assert tests["K"]["size", str(width), "4"] == 28
        zeros = {("zero", str(width)): n_values * n_at_stake}
        assert tests[least] - tests["K"] == Counter({joined: n_at_stake, **zeros})
        assert gates[least] - gates["K"] == n_at_stake * of_one
        assert n_values * (width - 1) < of_one <= n_values * (width - 1 + 2)


@pytest.mark.more
@pytest.mark.parametrize("per_person", [1, 3])
def test_what_people_cost(computed: list[Computed], per_person: int) -> None:
    """One more test of size for every group and child; each holder shares its people of all children, not all but
    one, since those of the last do not follow from the others."""
    tables, request = small_case()
    rows = [np.repeat(np.arange(len(table.weights)), table.weights) for table in tables]
    units = [
        dataclasses.replace(table.some(own), weights=np.ones(len(own), dtype=np.int64))
        for table, own in zip(tables, rows, strict=True)
    ]
    names, tests, turns = ("p0", "p1", "p2"), {}, {}
    for demand in (Size(4), Persons(4)):
        computed.clear()
        requirement = AskedList((Ask(2, (demand,)),))
        criteria = criteria_of(requirement.entries(request.schema))
        people = [np.arange(len(unit.weights)) // per_person for unit in units]
        results, _ = run_local(
            {
                me: anonymize_sealed(
                    Roster(me, names, "p0", "p1"),
                    unit,
                    dataclasses.replace(request, requirement=requirement),
                    SeededRng(me),
                    mode="horizontal/sealed",
                    side_inputs=counted_persons(criteria, who),
                )
                for me, unit, who in zip(names, units, people, strict=True)
            }
        )
        tests[demand.setting] = cost_of_tests(computed)
        turns[demand.setting] = jobs.turns(results["p0"].outcome)
    kinds = {("size", "7", "4"), ("size", "3", "4")}  # groups of up to 7 records have counts of 3 bits
    assert all({("size", "7", "4")} <= set(tests[asked]) <= kinds for asked in ("K=4", "K=4 people"))
    if per_person == 1:  # the same groups are tested
        assert turns["K=4"] == turns["K=4 people"]
        assert tests["K=4 people"].total() == 2 * tests["K=4"].total()
    else:
        assert turns["K=4"] != turns["K=4 people"]
