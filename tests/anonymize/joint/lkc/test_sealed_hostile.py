"""Sealed horizontal LKC against parties that deviate: the run ends, and names who may have done it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from anonymize.joint.messages import encode_candidate
from anonymize.table import joined
from crypto.errors import RemoteProtocolError
from crypto.local import Message
from tests.support.horizontal import NO_SPLIT, Revealed, flat_case, run_sealed, small_case
from tests.support.scores import PUBLISHED
from tests.support.tamper import AHEAD, first_harmed, vouched


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("sealed/root", "p0", lambda p: b"\2"),
        ("sealed/candidate", "p1", lambda p: p[:-1]),
        ("sealed/candidate", "p1", lambda p: b"\xff" * 4 + p[4:]),
        ("sealed/candidate", "p1", lambda p: b"\1" + p[1:]),
        ("sealed/candidate", "p1", lambda p: b""),
        ("sealed/candidate", "p1", lambda p: p[:4] + b"\x63" + p[5:]),
        ("sealed/valid", "p1", lambda p: b""),
        ("sealed/valid", "p1", lambda p: b"\2" + p[1:]),
        ("sealed/valid", "p1", lambda p: bytes([p[0] ^ 1]) + p[1:]),
        ("sealed/valid", "p1", lambda p: p + b"\0"),
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
    tables, request = small_case()
    _, honest = run_sealed(tables, request)
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed(tables, request, tamper=vouched(first_harmed(step, sender, harm), honest))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


@pytest.mark.some(7)
@pytest.mark.parametrize("sender", ["p0", "p1"])
@pytest.mark.parametrize("step", ["sealed/root", "sealed/candidate", "sealed/valid"])
@pytest.mark.parametrize("place", [0, -1])
def test_a_pair_that_tells_two_things_is_found_out(step: str, sender: str, place: int) -> None:
    """One of the pair says to a party what the other one does not say: well-formed or not."""
    tables, request = small_case()
    tells = (sender == "p1") == (step in AHEAD)

    def flipped(payload: bytes) -> bytes:
        """Another digest; or what is told, as it could be told."""
        changed = bytearray(payload)
        changed[0 if step == "sealed/root" else place] ^= 1
        other = bytes(5 if step == "sealed/valid" else 4) + encode_candidate(None)
        return other if tells and step in AHEAD else bytes(changed)

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


FALSE_TURNS: dict[str, tuple[int, Any]] = {
    "nothing was passed over": (0, lambda p: b"\0" + p[1:]),
    "too many were passed over": (0, lambda p: bytes([p[0] + 1]) + p[1:]),
    "later, one was": (1, lambda p: b"\1" + p[1:]),
    "none is left": (0, lambda p: p[:4] + encode_candidate(None)),
    "all were passed over": (0, lambda p: b"\3" + p[1:4] + encode_candidate(None)),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("lie", list(FALSE_TURNS))
def test_turns_out_of_the_public_order_are_refused(lie: str, revealed: Revealed) -> None:
    """Goal general: who is outside the pair knows the order, and so what may have been passed over."""
    tables, request = flat_case()
    results, honest = run_sealed(tables, request)
    assert results["p2"].outcome.applied
    assert NO_SPLIT in revealed[2]
    when, change = FALSE_TURNS[lie]
    turn = -1

    def tamper(message: Message) -> bytes:
        nonlocal turn
        told = (message.step, message.sender) == ("sealed/candidate", "p1")
        turn += told
        lies = told and turn == when
        return change(message.payload) if lies else message.payload  # type: ignore[no-any-return]

    with pytest.raises(RemoteProtocolError, match="not next") as caught:
        run_sealed(tables, request, tamper=vouched(tamper, honest))
    assert (caught.value.culprit, caught.value.step) == ("p1", "sealed/candidate")
    assert turn == when  # found out at once


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_a_candidate_that_was_discarded_does_not_come_again(goal: Any) -> None:
    """It still is a node of the cut; repeated for ever, it would keep the others from ending."""
    tables, request = small_case()
    request = dataclasses.replace(request, goal=PUBLISHED[goal])
    results, honest = run_sealed(tables, request)
    steps = results["p0"].outcome.steps
    place = next(i for i, step in enumerate(steps[:-1]) if not step.applied)
    again = bytes(4) + encode_candidate(steps[place].candidate)
    turn = -1

    def tamper(message: Message) -> bytes:
        nonlocal turn
        told = (message.step, message.sender) == ("sealed/candidate", "p1")
        turn += told
        return again if told and turn == place + 1 else message.payload

    with pytest.raises(RemoteProtocolError, match="not next") as caught:
        run_sealed(tables, request, tamper=vouched(tamper, honest))
    assert (caught.value.culprit, caught.value.step) == ("p1", "sealed/candidate")
