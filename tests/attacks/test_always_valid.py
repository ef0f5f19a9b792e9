"""A leader or deputy that makes every candidate valid, to see leaf partitions below K opened.

It adds to its own shares of what the circuits test. What is opened are the shares of the counts themselves, and every
party tests them when they are public: so at most one refinement that should not have been opened is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.criteria.criterion import RECORDS, Measure
from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc import sealed
from anonymize.joint.lkc.strict import StrictReferee
from anonymize.lkc.plan import GroupPlan
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from tests.support.horizontal import run_led, run_sealed, run_strict, small_case, small_lkc


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


@pytest.mark.some(2)
@pytest.mark.parametrize("run", [run_sealed, run_strict])
@pytest.mark.parametrize("cheats", ["leader", "deputy"])
@pytest.mark.parametrize("K", [2, 8, 20])
def test_one_of_the_pair(
    run: Any, cheats: str, K: int, opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, request = small_case()
    object.__setattr__(request, "requirement", small_lkc(2, K))
    honest, _ = run(tables, request)
    refinements, by_child = len(opened) // 3, sealed.GroupTests.by_child
    opened.clear()

    def more(tests: Any, sums: Words, *, leads: bool) -> Mapping[Measure, Words]:
        counts = dict(by_child(tests, sums, leads=leads))
        if leads == (cheats == "leader"):
            counts[RECORDS] = counts[RECORDS] + np.uint64(
                1 << 6
            )  # records of every group, as the circuit has them
        return counts

    monkeypatch.setattr(sealed.GroupTests, "by_child", more)
    with pytest.raises(RemoteProtocolError, match="do not meet the requirement") as caught:
        run(tables, request)
    assert caught.value.culprit == "p0 or p1"
    assert len(opened) <= 3 * (refinements + 1)  # told to three parties; no more than one that is false
    assert honest


def test_a_leader_in_the_clear(opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tables, request = small_case()
    object.__setattr__(request, "requirement", small_lkc(2, 8))
    monkeypatch.setattr("anonymize.lkc.plan.GroupPlan.violation", lambda plan, sums: None)
    with pytest.raises(RemoteProtocolError, match="do not meet the requirement") as caught:
        run_led(tables, request)
    assert caught.value.culprit == "p0"


@pytest.mark.parametrize("K", [1, 91])
def test_a_root_that_should_not_have_been_opened(K: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 90 records, of which some protected value is more than a tenth."""
    tables, request = small_case()
    request = replace(request, requirement=small_lkc(2, K, Fraction(1, 10 if K == 1 else 1)))
    for run in (run_led, run_sealed):
        with pytest.raises(PrivacyError):
            run(tables, request)
    monkeypatch.setattr("anonymize.joint.lkc.led.check_root", lambda *_: None)
    monkeypatch.setattr(sealed.RootTests, "met", _always)
    for run, judges in ((run_led, "p0"), (run_sealed, "p0 or p1")):
        with pytest.raises(RemoteProtocolError, match="do not meet the requirement") as caught:
            run(tables, request)
        assert caught.value.culprit == judges


def _always(tests: Any, engine: Any, share: Words) -> Rounds[bool]:
    return True
    yield


def test_a_contributor_that_shows_the_leader_one_number_and_opens_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the clear the two are sent apart: the leader compares what it judged with what is to be opened."""
    tables, request = small_case()
    sums = GroupPlan.sums

    def more(plan: Any, counts: Any, sides: Any) -> Any:
        """Of each group one record more in the first child than there is."""
        return sums(plan, counts, sides) + (np.arange(plan.n_groups) == 0).reshape(-1, 1, 1)

    monkeypatch.setattr(GroupPlan, "sums", more)
    with pytest.raises(RemoteProtocolError, match="the counts differ from the judged counts") as caught:
        run_led(tables, request)
    assert caught.value.culprit == "p1 or p2"


@pytest.mark.parametrize("cheats", ["p0", "p1", "p2"])
@pytest.mark.parametrize("when", ["judged", "opened"])
def test_whoever_has_other_counts_judged_than_opened(
    cheats: str, when: str, opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strict: the two are shared apart, and compared inside before anything is opened."""
    tables, request = small_case()
    judge, share_told = StrictReferee._judge, StrictReferee._share_told

    def other_checks(referee: Any, checks: Any) -> Any:
        if referee._roster.me == cheats:
            checks = [dataclasses.replace(check, own=check.own + 20) for check in checks]
        return judge(referee, checks)

    def other_counts(referee: Any, counts: Any, totals: Any) -> Any:
        false = referee._roster.me == cheats and totals is not None
        return share_told(referee, counts + false, totals)

    if when == "judged":
        monkeypatch.setattr(StrictReferee, "_judge", other_checks)
    else:
        monkeypatch.setattr(StrictReferee, "_share_told", other_counts)
    with pytest.raises(
        RemoteProtocolError, match="the counts to be opened differ from the judged counts"
    ) as caught:
        run_strict(tables, request)
    assert caught.value.step == "strict/same"
    assert opened == []
