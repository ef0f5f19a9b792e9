"""Sealed kd against parties that deviate: the run ends, and names who may have done it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from anonymize.joint.kd.judging import SideTests
from anonymize.joint.lkc import root
from anonymize.lkc.requirement import AskedList
from anonymize.table import CodedTable, joined
from crypto.errors import RemoteProtocolError
from crypto.local import Message
from tests.support import jobs
from tests.support.entries import lkc
from tests.support.kd import loaded, run_sealed_kd, wide_case
from tests.support.tamper import first_harmed, vouched


@pytest.fixture(scope="module")
def small() -> tuple[list[CodedTable], AskedList]:
    whole, requirement = loaded(wide_case(90))
    return jobs.split_among(whole, np.arange(whole.n_records) % 3, 3), requirement


def word(value: int) -> bytes:
    return value.to_bytes(8, "little")


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("kd/root", "p0", lambda p: b"\2"),
        ("kd/root", "p0", lambda p: b""),
        ("kd/taken", "p0", lambda p: p[:-1]),
        ("kd/taken", "p0", lambda p: p + word(0)),
        ("kd/taken", "p0", lambda p: word(9)),
        ("kd/taken", "p0", lambda p: b"\xff" * 8),
        ("kd/consent", "p2", lambda p: b"\0"),
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
def test_hostile_messages_name_the_culprit(
    step: str, sender: str, harm: Any, small: tuple[list[CodedTable], AskedList]
) -> None:
    _, honest = run_sealed_kd(*small)
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed_kd(*small, tamper=vouched(first_harmed(step, sender, harm), honest))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


@pytest.mark.parametrize("sender", ["p0", "p1"])
@pytest.mark.parametrize("step", ["kd/root", "kd/taken"])
def test_a_pair_that_tells_two_things_is_found_out(
    step: str, sender: str, small: tuple[list[CodedTable], AskedList]
) -> None:
    with pytest.raises(RemoteProtocolError, match="leader and deputy tell different things") as caught:
        run_sealed_kd(*small, tamper=first_harmed(step, sender, lambda p: bytes([p[0] ^ 1]) + p[1:]))
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", step)


def nth_harmed(step: str, sender: str, number: int, harm: Any) -> Any:
    """Harm one message of a step by a sender, counted from 0."""
    seen: list[Message] = []

    def tamper(message: Message) -> bytes:
        if (message.step, message.sender) != (step, sender):
            return message.payload
        seen.append(message)
        payload: bytes = harm(message.payload) if len(seen) == number + 1 else message.payload
        return payload

    return tamper


def test_other_cells_than_were_judged_are_not_opened(small: tuple[list[CodedTable], AskedList]) -> None:
    """A contributor moves one record to another cell of its group: sums stay, tallies do not."""
    _, honest = run_sealed_kd(*small)
    last = sum((m.step, m.sender) == ("shares/share", "p2") for m in honest.messages) - 1
    opened: Counter[str] = Counter()

    def moved(payload: bytes) -> bytes:
        words = np.frombuffer(payload, "<u4").copy()
        words[:2] += np.array([1, -1]).astype(np.uint32)
        return words.tobytes()

    harmed = nth_harmed("shares/share", "p2", last, moved)

    def tamper(message: Message) -> bytes:
        opened[message.recipient] += message.step == "shares/open"
        payload: bytes = harmed(message)
        return payload

    with pytest.raises(
        RemoteProtocolError, match="other records are to be opened than were judged"
    ) as caught:
        run_sealed_kd(*small, tamper=tamper)
    assert set(caught.value.culprit.split(" or ")) <= {"p0", "p1", "p2"}
    everything = sum((m.step, m.recipient) == ("shares/open", "p2") for m in honest.messages)
    assert opened["p2"] <= everything - 2  # all but the cells


@pytest.mark.parametrize("number", [1, 3])
def test_counts_that_cannot_be_are_refused(number: int, small: tuple[list[CodedTable], AskedList]) -> None:
    """More on the left of a cut than the group has: the right-hand side contradicts."""
    tables, requirement = small
    two = [tables[0], joined(tables[1:])]

    def more(payload: bytes) -> bytes:
        kind = "<u2" if number else "<u4"
        return (np.frombuffer(payload, kind) + np.array(1 << 12).astype(kind)).tobytes()

    for parties, sender in ((tables, "p1"), (two, "p1"), (two, "p0")):
        # Of the leader's and deputy's openings every recipient gets its own copy: those to the first one are harmed.
        copies = len(parties) - 1
        with pytest.raises(RemoteProtocolError, match="contradict") as caught:
            run_sealed_kd(
                parties, requirement, tamper=nth_harmed("shares/open", sender, number * copies, more)
            )
        assert caught.value.step == "shares/open"


def test_a_pair_that_says_that_all_is_valid_is_found_out(
    small: tuple[list[CodedTable], AskedList], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first opening of groups that are not allowed."""
    fronts = [0]

    def lying(tests: Any, engine: Any, front: Any, left: Any, groups: Any) -> Any:
        fronts[0] += 1
        return np.ones(front.n_groups, dtype=np.uint64)
        yield

    monkeypatch.setattr(SideTests, "first", lying)
    with pytest.raises(RemoteProtocolError, match="as the requirement does not allow") as caught:
        run_sealed_kd(*small)
    assert caught.value.culprit == "p0 or p2"  # as p1 says, who is honest as far as it knows
    assert fronts[0] >= 2


def test_a_pair_that_passes_a_valid_candidate_over_is_found_out_in_the_end(
    small: tuple[list[CodedTable], AskedList], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the table shows it: no final box crosses the candidate. A pair that says of all that none is valid leaves
    one group, and of that nothing can be seen.
    """
    first, fronts = SideTests.first, [0]

    def lying(tests: Any, engine: Any, front: Any, left: Any, groups: Any) -> Any:
        found = yield from first(tests, engine, front, left, groups)
        fronts[0] += 1
        return found + np.uint64(1) if front.n_groups == 1 and fronts[0] <= 2 else found

    monkeypatch.setattr(SideTests, "first", lying)
    with pytest.raises(RemoteProtocolError, match="as the requirement does not allow") as caught:
        run_sealed_kd(*small)
    assert caught.value.culprit == "p0 or p2"  # as p1 says, who is honest as far as it knows
    assert fronts[0] > 4


def test_a_root_that_should_not_have_been_opened(
    small: tuple[list[CodedTable], AskedList], monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(tests: Any, engine: Any, share: Any) -> Any:
        return True
        yield

    monkeypatch.setattr(root.RootTests, "met", always)
    with pytest.raises(RemoteProtocolError, match="counts were opened that do not meet") as caught:
        run_sealed_kd(small[0], lkc(4, 91))
    assert caught.value.culprit == "p0 or p1"
