"""What sealed horizontal LKC sends and evaluates."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from anonymize.joint.lkc import sealed
from anonymize.tds import Observer
from crypto.shares import ShareSession
from tests.support import jobs
from tests.support.computations import Computed
from tests.support.horizontal import expect_bytes_of_the_pair, run_sealed, small_case, small_lkc


def test_bytes_of_those_outside_the_pair(computed: list[Computed], monkeypatch: pytest.MonkeyPatch) -> None:
    """A contributor sends its seed and shares, wide enough for the number of records; the pair what it opens."""
    shared: list[int] = []
    original = sealed.share_vector

    def recording(session: ShareSession, values: Any, counted: Any = None) -> Any:
        if session.me == "p2":
            shared.append(values.nbytes)
        return original(session, values, counted)

    monkeypatch.setattr(sealed, "share_vector", recording)
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
    candidates, bits = names.count("candidate"), names.count("root_check") + names.count("valid")
    assert to_p2 == {"p0": 4 * counts + 24 * candidates + bits, "p1": 4 * counts + 16 * (candidates + bits)}


class Gates(Observer):
    """Counts AND gates."""

    total = 0

    def gates(self, count: int) -> None:
        self.total += count


def test_cost_does_not_depend_on_the_number_of_records() -> None:
    """Every record ten times with K ten times as large: the same turns, gates within 30 %."""
    tables, request = small_case()
    totals, turns = [], []
    for factor in (500, 5000):  # 45,000 and 450,000 records
        gates = Gates()
        larger = [dataclasses.replace(table, weights=factor * table.weights) for table in tables]
        scaled = dataclasses.replace(request, requirement=small_lkc(2, factor * 2))
        results, _ = run_sealed(larger, scaled, observer=gates)
        totals.append(gates.total)
        turns.append(jobs.turns(results["p0"].outcome))
    assert turns[0] == turns[1]
    assert totals[0] < totals[1] < 1.3 * totals[0]


def test_a_party_outside_the_pair_sends_its_shares_and_empty_consents_and_nothing_else() -> None:
    tables, request = small_case()
    _, transcript = run_sealed(tables, request)
    own = [m for m in transcript.messages if m.sender == "p2"]
    consents = {("sealed/consent", "p0"), ("sealed/consent", "p1")}
    assert {(m.step, m.recipient) for m in own} == {("shares/seed", "p1"), ("shares/share", "p0"), *consents}
    assert {m.payload for m in own if m.step == "sealed/consent"} == {b""}
