"""A leader or deputy that makes every candidate valid, to see leaf partitions below K opened.

It adds to its own shares of what the circuits test. What is opened are the shares of the counts themselves, and every
party tests them when they are public: so at most one refinement that should not have been opened is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from anonymize.criteria.criterion import RECORDS, Measure
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc import sealed
from anonymize.joint.lkc.led import LeaderReferee
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from tests.support.entries import lkc
from tests.support.horizontal import run_led, run_sealed, small_case


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The counts of leaf partitions that a contributor sees opened."""
    seen: list[Any] = []
    reveal = RevealLedger.reveal

    def watching(ledger: RevealLedger, name: str, value: Any, *rest: Any) -> Any:
        if name == "partition_counts":
            seen.append(value)
        return reveal(ledger, name, value, *rest)

    monkeypatch.setattr(RevealLedger, "reveal", watching)
    return seen


@pytest.mark.parametrize("cheats", ["leader", "deputy"])
@pytest.mark.parametrize("K", [2, 8, 20])
def test_one_of_the_pair(cheats: str, K: int, opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tables, request = small_case()
    object.__setattr__(request, "requirement", lkc(2, K))
    honest, _ = run_sealed(tables, request)
    refinements, by_child = len(opened) // 3, sealed._Tests.by_child
    opened.clear()

    def more(tests: Any, sums: Words, *, leads: bool) -> Mapping[Measure, Words]:
        counts = dict(by_child(tests, sums, leads=leads))
        if leads == (cheats == "leader"):
            counts[RECORDS] = counts[RECORDS] + np.uint64(
                1 << 6
            )  # records of every group, as the circuit has them
        return counts

    monkeypatch.setattr(sealed._Tests, "by_child", more)
    with pytest.raises(RemoteProtocolError, match="do not meet the requirement") as caught:
        run_sealed(tables, request)
    assert caught.value.culprit == "p0 or p1"
    assert len(opened) <= 3 * (refinements + 1)  # told to three parties; no more than one that is false
    assert honest


def test_a_leader_in_the_clear(opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tables, request = small_case()
    object.__setattr__(request, "requirement", lkc(2, 8))
    monkeypatch.setattr("anonymize.lkc.plan.GroupPlan.violation", lambda plan, sums: None)
    with pytest.raises(RemoteProtocolError, match="do not meet the requirement") as caught:
        run_led(tables, request)
    assert caught.value.culprit == "p0"


def test_a_contributor_that_shows_the_leader_one_number_and_opens_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the clear the two are sent apart: the leader compares what it judged with what is to be opened."""
    tables, request = small_case()
    is_valid = LeaderReferee.is_valid

    def more(referee: Any, plan: Any, counts: Any, beside: Any) -> Any:
        shown = counts.copy()
        shown[0, 0] += referee._roster.me == "p2"
        return is_valid(referee, plan, shown, beside)

    monkeypatch.setattr(LeaderReferee, "is_valid", more)
    with pytest.raises(RemoteProtocolError, match="other counts than were judged") as caught:
        run_led(tables, request)
    assert caught.value.culprit == "p1 or p2"
