"""Sealed horizontal LKC against parties that deviate: the run ends, and names who may have done it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.joint.messages import encode_candidate
from anonymize.table import CodedTable, joined
from crypto.errors import RemoteProtocolError
from crypto.local import Message
from tests.support.horizontal import run_sealed, small_case, small_lkc
from tests.support.scores import PUBLISHED
from tests.support.tamper import AHEAD, first_harmed, vouched

ADDED = JointAdded(per_class=1)


def _word(place: int, value: int) -> Any:
    """Put a number in a payload of numbers."""
    return lambda p: p[: 8 * place] + value.to_bytes(8, "little") + p[8 * (place + 1) :]


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("sealed/root", "p0", lambda p: b"\2"),
        ("sealed/split", "p1", lambda p: p[:-8]),
        ("sealed/split", "p1", lambda p: b""),
        ("sealed/split", "p1", _word(0, 2)),  # fixed children
        ("sealed/split", "p1", _word(1, 8)),  # seven options
        ("sealed/split", "p1", _word(2, 2)),  # the place of the first of two
        ("sealed/split", "p1", lambda p: p[:16] + bytes(16)),
        ("sealed/valid", "p1", lambda p: b""),
        ("sealed/valid", "p1", lambda p: p + bytes(8)),
        ("sealed/valid", "p1", _word(0, 3)),  # of two candidates
        ("shares/open", "p0", lambda p: p[:-1]),
        ("shares/open", "p1", lambda p: p + b"\0"),
        ("shares/share", "p2", lambda p: p[:-1]),
        ("shares/seed", "p2", lambda p: p[:-1]),
        ("two_party/choices", "p1", lambda p: p[:-1]),
        ("two_party/choices", "p1", lambda p: bytes([p[0] ^ 1]) + p[1:]),
        ("two_party/tables", "p0", lambda p: p[:-1]),
        ("two_party/outputs", "p1", lambda p: p[:-1] + bytes([p[-1] ^ 1])),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any) -> None:
    _expect_culprit(small_case(), step, sender, harm)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("step", "harm"),
    [
        ("sealed/candidate", lambda p: p[:-1]),
        ("sealed/candidate", lambda p: bytes([p[0] ^ 1]) + p[1:]),
        ("sealed/candidate", lambda p: b"\x63" + p[1:]),
        ("sealed/candidate", lambda p: b""),
        ("sealed/candidate", lambda p: p[:4] + b"\x63" + p[5:]),
        ("sealed/split", lambda p: p + bytes(8)),
        ("sealed/valid", lambda p: b""),
        ("sealed/valid", lambda p: b"\2" + p[1:]),
        ("sealed/valid", lambda p: bytes([p[0] ^ 1]) + p[1:]),
        ("sealed/valid", lambda p: p + b"\0"),
    ],
)
def test_hostile_messages_about_candidates_opened_one_by_one(step: str, harm: Any) -> None:
    tables, request = small_case()
    _expect_culprit((tables, dataclasses.replace(request, goal=ADDED)), step, "p1", harm)


def _expect_culprit(case: tuple[list[CodedTable], Request], step: str, sender: str, harm: Any) -> None:
    _, honest = run_sealed(*case)
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed(*case, tamper=vouched(first_harmed(step, sender, harm), honest))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


@pytest.mark.some(7)
@pytest.mark.parametrize("sender", ["p0", "p1"])
@pytest.mark.parametrize("step", ["sealed/root", "sealed/split", "sealed/candidate", "sealed/valid"])
@pytest.mark.parametrize("place", [0, -1])
def test_a_pair_that_tells_two_things_is_found_out(step: str, sender: str, place: int) -> None:
    """One of the pair says to a party what the other one does not say: well-formed or not."""
    tables, request = small_case()
    one_by_one = step == "sealed/candidate"
    request = dataclasses.replace(request, goal=ADDED if one_by_one else request.goal)
    tells = (sender == "p1") == (step in AHEAD)

    def flipped(payload: bytes) -> bytes:
        """Another digest; or what is told, as it could be told."""
        if tells and step in ("sealed/split", "sealed/candidate"):
            return encode_candidate(None) if one_by_one else bytes(len(payload))
        changed = bytearray(payload)
        changed[0 if tells else place] ^= 1
        return bytes(changed)

    with pytest.raises(RemoteProtocolError, match="leader and deputy tell different things") as caught:
        run_sealed(tables, request, tamper=first_harmed(step, sender, flipped))
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", step)


@pytest.mark.parametrize("harm", [lambda p: b"", lambda p: p[:-1], lambda p: p + b"0"])
def test_a_digest_of_another_length(harm: Any) -> None:
    tables, request = small_case()
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed(tables, request, tamper=first_harmed("sealed/root", "p1", harm))
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", "sealed/root")


def _words(payload: bytes) -> Any:
    return np.frombuffer(payload, "<u4")


def test_false_openings_name_all_who_may_have_caused_them() -> None:
    """A sum does not tell if a share was wrong when opened or when it was given."""
    tables, request = small_case()
    two = [tables[0], joined(tables[1:])]
    for parties, step, sender in (
        (tables, "shares/open", "p0"),
        (tables, "shares/open", "p1"),
        (tables, "shares/share", "p2"),
        (two, "shares/open", "p1"),
        (two, "shares/open", "p0"),
    ):
        seen = 0

        def tamper(message: Message, step: str = step, sender: str = sender) -> bytes:
            nonlocal seen
            if (message.step, message.sender) != (step, sender):
                return message.payload
            seen += 1
            if step == "shares/share" and seen != 2:  # the first one is for the root check, the second opened
                return message.payload
            return (_words(message.payload) - np.uint32(1 << 20)).tobytes()

        with pytest.raises(RemoteProtocolError) as caught:
            run_sealed(parties, request, tamper=tamper)
        assert caught.value.step == "shares/open"
        suspects = caught.value.culprit.split(" or ")
        assert sender in suspects
        assert len(suspects) == len(parties) - 1


def test_a_last_child_with_less_than_our_own_is_refused() -> None:
    """The pair opens a refinement in which the first child has everything: the last one, never sent, contradicts."""
    tables, request = small_case()
    _, transcript = run_sealed(tables, request)
    opened = [
        [m for m in transcript.messages if (m.step, m.sender, m.recipient) == ("shares/open", sender, "p2")]
        for sender in ("p0", "p1")
    ]
    values = [_words(one.payload) + _words(other.payload) for one, other in zip(*opened, strict=True)]
    delta = values[0] - values[1]
    seen: dict[tuple[str, str], int] = {}

    def tamper(message: Message) -> bytes:
        if message.step != "shares/open":
            return message.payload
        place = (message.sender, message.recipient)
        seen[place] = seen.get(place, 0) + 1
        lies = seen[place] == 2 and place in {("p0", "p1"), ("p0", "p2"), ("p1", "p0")}
        return (_words(message.payload) + delta).tobytes() if lies else message.payload

    with pytest.raises(RemoteProtocolError, match="contradict") as caught:
        run_sealed(tables, request, tamper=tamper)
    assert caught.value.step == "shares/open"
    assert " or " in caught.value.culprit


def test_a_candidate_that_was_discarded_does_not_come_again() -> None:
    """It still is a node of the cut; repeated for ever, it would keep the others from ending."""
    tables, request = small_case()
    request = dataclasses.replace(request, goal=ADDED, requirement=small_lkc(2, 8))
    results, honest = run_sealed(tables, request)
    steps = results["p0"].outcome.steps
    place = next(i for i, step in enumerate(steps[:-1]) if not step.applied)
    again, turn = encode_candidate(steps[place].candidate), 0

    def tamper(message: Message) -> bytes:
        """With the verdict, or after the next applied candidate."""
        nonlocal turn
        if message.sender != "p1" or message.step not in ("sealed/candidate", "sealed/valid"):
            return message.payload
        told = message.step == "sealed/candidate" or len(message.payload) > 1
        turn += told
        return message.payload[:-20] + again if told and turn == place + 2 else message.payload

    with pytest.raises(RemoteProtocolError, match="not next") as caught:
        run_sealed(tables, request, tamper=vouched(tamper, honest))
    assert (caught.value.culprit, caught.value.step) == ("p1", "sealed/candidate")


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_an_order_told_wrongly_ends_the_run(goal: Any) -> None:
    """Both of the pair tell another party that the first valid candidate was discarded: its counts do not fit."""
    tables, request = small_case()
    request = dataclasses.replace(request, goal=PUBLISHED[goal])
    results, honest = run_sealed(tables, request)
    assert results["p0"].outcome.steps[0].applied
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed(tables, request, tamper=vouched(first_harmed("sealed/valid", "p1", _word(0, 1)), honest))
    assert {"p0", "p1"} & set(caught.value.culprit.split(" or "))
