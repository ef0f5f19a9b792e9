"""Horizontal LKC with a leader: the same result as a single holder, its cost, and exactly the listed reveals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import ALLOWED, RevealLedger
from anonymize.joint.lkc import led
from anonymize.joint.lkc.led import MOST_ASKED
from anonymize.joint.lkc.request import JointOutcome
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_counts
from anonymize.table import MAX_RECORDS, joined
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message
from tests.support import jobs
from tests.support.examples import examples
from tests.support.horizontal import choices, greatest_tables, run_led, small_case
from tests.support.tables import Case, cases, dealt
from tests.support.vectors import Golden


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = data.draw(st.integers(3, 5))
    tables = dealt(data, whole, n)
    how: dict[str, Any] = {
        "sums": data.draw(st.sampled_from(["masked", "ring"])),
        "leader": data.draw(st.integers(0, n - 1)),
    }
    request = jobs.request_of(bundle)
    try:
        outcome, release = jobs.run_single(bundle, whole)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates K or C"):
            run_led(tables, request, **how)
        return
    results, _ = run_led(tables, request, **how)
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
        joint = release_of_counts(request.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == jobs.multiset(release)
        assert result.ledger.reveals == results["p0"].ledger.reveals
    _check_ledger(results["p0"])


def _check_ledger(result: JointOutcome) -> None:
    """Exactly the rows of the list (semantics §4) for `leader`, as often as the turns make them."""
    reveals = result.ledger.reveals
    listed = {(a.name, a.to) for a in ALLOWED["horizontal/leader"]}
    tested = [step for step in result.outcome.steps if not step.naming]
    applied = sum(step.applied for step in tested)
    names = [r.name for r in reveals]
    asked, ends = names.count("only_child"), choices(result) - len(tested)
    assert {(r.name, r.to) for r in reveals} <= listed
    questions = [r.shape[0] for r in reveals if r.name == "asked"]
    assert all(n <= MOST_ASKED for n in questions)
    assert {name: names.count(name) for name, _ in listed} == {
        "earlier_run": 0,  # told where a run is charged, before it begins
        "root_totals": 1,
        "root_check": 1,
        "root_counts": 1,
        "candidate_counts": 1
        + applied
        + asked
        + (ends - 1),  # of what is named there are new candidates, too
        "candidate": len(tested) + ends,
        "only_child": asked,
        "asked": len(questions),
        "group_counts": sum(n > 0 for n in questions),
        "valid": len(tested),
        "partition_counts": applied,
    }
    assert applied + ends <= len(questions) <= len(tested) + ends
    assert max(r.iteration for r in reveals) == len(tested) + ends


def test_rounds_and_bytes_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, request = small_case()
    for most in (1, 2, led.MOST_ASKED):
        monkeypatch.setattr(led, "MOST_ASKED", most)
        results, transcript = run_led(tables, request)
        steps = results["p0"].outcome.steps
        applied = sum(step.applied for step in steps)
        assert 0 < applied < len(steps)
        shapes = [(r.name, int(np.prod(r.shape))) for r in results["p0"].ledger.reveals]
        questions = [n for name, n in shapes if name == "asked"]
        waits = sum(n > 0 for n in questions)
        assert waits == (len(steps) if most == 1 else waits) <= len(steps)
        assert transcript.rounds == 5 + 4 * applied + 2 * (waits - applied)
        to_leader = ("root_totals", "candidate_counts", "group_counts", "partition_counts")
        assert transcript.bytes_sent("p1") == 48 * 2 + 8 * sum(n for name, n in shapes if name in to_leader)
        opened = sum(n for name, n in shapes if name in ("root_counts", "partition_counts"))
        told = 1 + len(questions) + 20 * (sum(questions) + len(steps))
        assert transcript.bytes_sent("p0") == 48 * 2 + 2 * (8 * opened + told)


def test_what_is_asked_early_is_coarser_than_what_is_asked_in_time() -> None:
    """Asked one by one, the leader gets the groups of a candidate when its turn comes: of a table that is as it was,
    or finer. Either way the same turns are taken, and the same counts are opened.
    """
    tables, request = small_case()
    runs = []
    for most in (1, led.MOST_ASKED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(led, "MOST_ASKED", most)
            runs.append(run_led(tables, request)[0]["p1"])
    assert jobs.turns(runs[0].outcome) == jobs.turns(runs[1].outcome)
    opened = [
        [r for r in run.ledger.reveals if r.name in ("valid", "candidate", "partition_counts")]
        for run in runs
    ]
    assert opened[0] == opened[1]


def test_golden_transcripts(golden: Golden) -> None:
    tables, request = small_case()
    for kind in ("masked", "ring"):
        golden.check("led", kind, run_led(tables, request, sums=kind)[1].digest())  # type: ignore[arg-type]


def test_two_parties_are_refused() -> None:
    tables, request = small_case()
    with pytest.raises(LocalProtocolError, match="needs 3 or more"):
        run_led(tables[:2], request)


@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("horizontal/root", "p0", lambda p: b"\2"),
        ("horizontal/root", "p0", lambda p: b""),
        ("horizontal/root", "p0", lambda p: p[:-1]),
        ("horizontal/root", "p0", lambda p: b"\0" + p[1:]),
        ("horizontal/open", "p0", lambda p: p[:-1]),
        ("horizontal/asked", "p0", lambda p: p[:-1]),
        ("horizontal/asked", "p0", lambda p: b"\x07" + p[1:]),
        ("horizontal/asked", "p0", lambda p: p[:4] + b"\x63" + p[5:]),
        ("horizontal/asked", "p0", lambda p: p[:12] + b"\x63" + p[13:]),
        ("horizontal/asked", "p0", lambda p: p[:20] * 2),
        ("horizontal/asked", "p0", lambda p: p[:20] * 9),
        ("horizontal/asked", "p0", lambda p: b"\xff" * 4 + bytes(16)),
        ("horizontal/verdicts", "p0", lambda p: b""),
        ("horizontal/verdicts", "p0", lambda p: b"\xff" + p[1:]),
        ("horizontal/verdicts", "p0", lambda p: p[:-1]),
        ("horizontal/verdicts", "p0", lambda p: p + p[1:21]),
        ("secure_sum/masked", "p2", lambda p: p + b"\0" * 8),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any) -> None:
    tables, request = small_case()

    def tamper(message: Message) -> bytes | None:
        hit = message.step == step and message.sender == sender
        return harm(message.payload) if hit else message.payload  # type: ignore[no-any-return]

    with pytest.raises(RemoteProtocolError) as caught:
        run_led(tables, request, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (sender, step)


def test_impossible_counts_name_all_who_may_have_caused_them() -> None:
    """Counts that no table can have are found out before they are used; the leader's or a bad summand's."""
    tables, request = small_case()

    def tamper(message: Message) -> bytes | None:
        if message.step == "horizontal/open":
            return b"\xff" * len(message.payload)
        return message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        run_led(tables, request, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p0 or p2", "horizontal/open")


@pytest.mark.parametrize("harm", [lambda p: b"\xff" * len(p), lambda p: b"\0" * 7 + b"\x40" + p[8:]])
def test_counts_of_a_candidate_that_cannot_be_are_not_scored(harm: Any) -> None:
    """The leader knows what they add up to: the class counts of the node, which are public."""
    tables, request = small_case()
    sums = 0

    def tamper(message: Message) -> bytes | None:
        nonlocal sums
        sums += message.step == "secure_sum/masked" and message.sender == "p2"
        is_profile = message.step == "secure_sum/masked" and message.sender == "p2" and sums == 2
        return harm(message.payload) if is_profile else message.payload  # type: ignore[no-any-return]

    with pytest.raises(RemoteProtocolError, match="counts of a candidate contradict") as caught:
        run_led(tables, request, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p1 or p2", "horizontal/candidate")


def test_the_greatest_table() -> None:
    """2^31 - 1 records, all of them in one cell."""
    tables, request = greatest_tables()
    results, _ = run_led(tables, request)
    outcome = anonymize_single(joined(tables), request.requirement, request.goal)
    assert outcome.applied
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
        assert result.generalized.n_records == MAX_RECORDS


def test_an_unlisted_reveal_stops_the_run() -> None:
    ledger = RevealLedger("horizontal/leader")
    with pytest.raises(LocalProtocolError, match="not on the mode's list"):
        ledger.reveal("group_counts", 1, "all")
