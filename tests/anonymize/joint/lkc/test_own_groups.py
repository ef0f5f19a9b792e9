"""A party is told of its own records before groups are opened; nothing is opened where it does not consent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.size import Size
from anonymize.errors import PrivacyError
from anonymize.joint.lkc.request import JointOutcome
from anonymize.joint.pair import Pair
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.release import release_of_rows
from anonymize.table import CodedTable, Ints, joined
from anonymize.tds import Observer
from anonymize.verification.tables import verify_lkc
from crypto.errors import RemoteProtocolError
from crypto.local import Message, Transcript
from crypto.rounds import Rounds
from tests.support import jobs
from tests.support.entries import claim
from tests.support.examples import examples
from tests.support.horizontal import run_led, run_sealed, run_strict, small_case
from tests.support.tables import Case, cases
from tests.support.tamper import first_harmed

Run = Callable[..., tuple[dict[str, JointOutcome], Transcript]]
RUNS: dict[str, Run] = {"sealed": run_sealed, "leader": run_led, "strict": run_strict}


class Refused(Exception):
    """A party does not consent."""


class Owner(Observer):
    """Notes what it is told, and refuses the opening with this number."""

    def __init__(self, refuses: int | None = None) -> None:
        self.told: list[Ints] = []
        self._refuses = refuses

    def opening_groups(self, own: Ints) -> None:
        self.told.append(own)
        if len(self.told) - 1 == self._refuses:
            raise Refused


def owners(tables: list[CodedTable]) -> dict[str, Owner]:
    return {f"p{i}": Owner() for i in range(len(tables))}


@pytest.mark.some(1)
@pytest.mark.parametrize("mode", RUNS)
@settings(max_examples=examples(30), deadline=None)
@given(case=cases(), data=st.data())
def test_the_least_that_is_told_is_what_the_result_comes_to(
    mode: str, case: Case, data: st.DataObject
) -> None:
    """Told of all groups in time, and of no other: what is left to others is private with just that K.

    Seen by the independent verifier in the party's own rows as they are generalized in the end.
    """
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    owner = np.array([data.draw(st.integers(0, 2)) for _ in range(whole.n_records)])
    tables = jobs.split_among(whole, owner, 3)
    asked = owners(tables)
    try:
        results, _ = RUNS[mode](tables, jobs.request_of(bundle), observers=asked)
    except PrivacyError:
        assert all(len(each.told) == 1 for each in asked.values())
        return
    (entry,) = jobs.request_of(bundle).requirement.entries(whole.schema)
    names = [column.name for column in whole.schema.qid]
    for (party, result), table in zip(results.items(), tables, strict=True):
        told = np.concatenate(asked[party].told)
        opened = sum(step.applied and not step.naming for step in result.outcome.steps)
        assert len(asked[party].told) == 1 + opened
        assert told[0] == table.n_records
        if table.n_records:
            rows, least = release_of_rows(table, result.outcome.cut), int(told[told > 0].min())
            known = entry.scope.max_known
            assert verify_lkc(rows, claim(names, known, least)) is None
            assert verify_lkc(rows, claim(names, known, least + 1)) is not None


def refusing(mode: str, party: str, turn: int, **how: Any) -> list[Message]:
    """Run the small case with a party that refuses an opening; return what was sent until then."""
    tables, request = small_case()
    sent: list[Message] = []

    def noting(message: Message) -> bytes:
        sent.append(message)
        return message.payload

    with pytest.raises(Refused):
        RUNS[mode](tables, request, observers={party: Owner(turn)}, tamper=noting, **how)
    return sent


@pytest.mark.parametrize(("mode", "consents"), [("sealed", 2), ("strict", 0)])
@pytest.mark.parametrize("turn", [1, 2])
def test_nothing_is_opened_without_a_contributors_consent(mode: str, consents: int, turn: int) -> None:
    """The pair opens as many refinements as before, and the root.

    It has its shares by then; strict, it has those that were judged, and none of what it would open.
    """
    sent = refusing(mode, "p2", turn)
    for sender in ("p0", "p1"):
        opened = [m for m in sent if (m.step, m.sender, m.recipient) == ("shares/open", sender, "p2")]
        assert len(opened) == turn
    assert sum(m.step == "sealed/consent" for m in sent) == consents * (turn - 1)


@pytest.mark.parametrize(("hasty", "other"), [("p0", "p1"), ("p1", "p0")])
def test_one_of_the_pair_that_does_not_wait_for_consent_hears_nothing(
    hasty: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own shares alone tell nothing, and the other keeps those it has."""
    honest = Pair.hear_consent

    def at_once(pair: Pair, step: str) -> Rounds[None]:
        if pair.roster.me != hasty:
            yield from honest(pair, step)

    monkeypatch.setattr(Pair, "hear_consent", at_once)
    sent = refusing("sealed", "p2", 1)
    opened = [m for m in sent if (m.step, m.sender) == ("shares/open", other)]
    assert {message.recipient for message in opened} == {hasty, "p2"}
    assert len(opened) == 2  # the root, to each of them


@pytest.mark.parametrize("party", ["p0", "p1"])
def test_one_of_the_pair_does_not_open_its_shares(party: str) -> None:
    sent = refusing("sealed", party, 1)
    assert {m.recipient for m in sent if (m.step, m.sender) == ("shares/open", party)} == {
        p for p in ("p0", "p1", "p2") if p != party
    }
    assert sum((m.step, m.sender, m.recipient) == ("shares/open", party, "p2") for m in sent) == 1


@pytest.mark.parametrize("party", ["p0", "p1", "p2"])
def test_in_the_clear_the_leader_tells_nothing(party: str) -> None:
    """Contributors are asked before they put anything in; the leader is asked before it tells."""
    sent = refusing("leader", party, 1)
    assert not [
        m for m in sent if m.step == "horizontal/open"
    ]  # the root is told with the outcome of its check


@pytest.mark.parametrize("mode", RUNS)
@pytest.mark.parametrize("party", ["p0", "p1", "p2"])
def test_of_a_root_that_is_refused_nothing_is_told(mode: str, party: str) -> None:
    sent = refusing(mode, party, 0)
    steps = {message.step for message in sent if message.sender == party}
    assert not steps & {"shares/share", "shares/open", "secure_sum/masked", "horizontal/open"}
    assert not {"sealed/root", "horizontal/root"} & {message.step for message in sent}


def test_two_parties_need_no_message_of_consent() -> None:
    tables, request = small_case()
    two = [tables[0], joined(tables[1:])]
    _, transcript = run_sealed(two, request)
    assert not [m for m in transcript.messages if m.step == "sealed/consent"]
    with pytest.raises(Refused):
        run_sealed(two, request, observers={"p1": Owner(1)})


def test_consents_are_the_same_whatever_the_owner_asks_for() -> None:
    """Messages do not show which policies there are."""
    tables, request = small_case()
    _, unasked = run_sealed(tables, request)
    _, asked = run_sealed(tables, request, observers=owners(tables))
    assert asked.digest() == unasked.digest()


def test_where_nothing_is_tested_shares_come_after_consent() -> None:
    """K = 1, nothing protected: the counts to be opened are shared with the consent, not before."""
    tables, request = small_case()
    bare = dataclasses.replace(request, requirement=AskedList((Ask(2, (Size(1),)),)))
    sent: list[Message] = []

    def noting(message: Message) -> bytes:
        sent.append(message)
        return message.payload

    with pytest.raises(Refused):
        run_sealed(tables, bare, observers={"p2": Owner(1)}, tamper=noting)
    shared = [m for m in sent if (m.step, m.sender) == ("shares/share", "p2")]
    # For the root check, for the root, for the scores of the first candidates, and in case one is tested.
    assert len(shared) == 4


def test_a_consent_that_says_anything_is_refused() -> None:
    tables, request = small_case()
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed(tables, request, tamper=first_harmed("sealed/consent", "p2", lambda p: b"\1"))
    assert (caught.value.culprit, caught.value.step) == ("p2", "sealed/consent")
