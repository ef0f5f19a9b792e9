"""Links: order, parts, limits, ends, and every envelope that does not belong exactly here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import party.net.link
from crypto.errors import RemoteProtocolError
from jobs.errors import MAX_SHARED_CHARS, JobFailed, PartyError, Problem, TransportError
from party.net.control import PIECE_BYTES, Envelope
from party.net.link import ABORT, END, HELLO, MAX_MESSAGE_BYTES, Link
from party.net.waiting import stopped
from party.owner.audit import HEAD_BYTES
from tests.support.duplex import (
    KEY,
    MemoryDuplex,
    ScriptedDuplex,
    finished,
    linked,
    pair,
    pumping,
    run,
    said,
    says,
)
from tests.support.examples import examples


def hearing(
    envelopes: Sequence[Envelope],
    *,
    gone: bool = True,
    greeted: bool = False,
    max_bytes: int = MAX_MESSAGE_BYTES,
) -> tuple[Link, ScriptedDuplex]:
    """Our end of a link whose peer says these envelopes."""
    duplex = ScriptedDuplex(envelopes, gone=gone)
    return Link("a", "b", KEY, duplex, greeted=greeted, max_bytes=max_bytes), duplex


def broken_by(envelopes: Sequence[Envelope], **how: Any) -> Exception:
    """Return the error that breaks the link, while somebody waits for step x."""

    async def scenario() -> None:
        link, _ = hearing(envelopes, **how)
        await pumping(link, work=_receive_all(link))

    with pytest.raises((RemoteProtocolError, PartyError)) as caught:
        run(scenario())
    return caught.value


async def _receive_all(link: Link) -> None:
    while True:
        await link.receive("x")


@settings(max_examples=examples(40), deadline=None)
@given(
    sent=st.lists(st.tuples(st.sampled_from(["x", "y"]), st.binary(max_size=40)), max_size=10),
    back=st.lists(st.tuples(st.sampled_from(["x", "y"]), st.binary(max_size=40)), max_size=10),
    piece=st.integers(1, 15),
)
def test_messages_arrive_whole_and_in_order_in_both_directions(
    sent: list[tuple[str, bytes]], back: list[tuple[str, bytes]], piece: int
) -> None:
    async def talk(link: Link, out: list[tuple[str, bytes]], into: list[tuple[str, bytes]]) -> list[bytes]:
        async def send() -> None:
            for step, payload in out:
                await link.send(step, payload)

        async def receive() -> list[bytes]:
            return [await link.receive(step) for step, _ in into]

        received = (await asyncio.gather(send(), receive()))[1]
        await finished(link)
        return received

    async def scenario() -> None:
        one, other = linked(piece_bytes=piece)
        got = await pumping(one, other, work=_both(talk(one, sent, back), talk(other, back, sent)))
        assert got == [[p for _, p in back], [p for _, p in sent]]
        assert one.traffic.bytes_sent == other.traffic.bytes_received == sum(len(p) for _, p in sent)
        assert one.traffic.messages_sent == len(sent)

    run(scenario())


async def _both(*work: Any) -> list[Any]:
    return list(await asyncio.gather(*work))


def test_a_large_message_goes_in_parts() -> None:
    seen: list[Envelope] = []
    payload = bytes(range(256)) * (PIECE_BYTES // 256 * 2 + 1)

    def watch(envelope: Envelope) -> list[Envelope]:
        seen.append(envelope)
        return [envelope]

    async def scenario() -> None:
        one, other = linked(on_way=watch)

        async def talk() -> bytes:
            await one.send("x", payload)
            received = await other.receive("x")
            await asyncio.gather(finished(one), finished(other))
            return received

        assert await pumping(one, other, work=talk()) == payload

    run(scenario())
    assert [e.step for e in seen] == [HELLO, "x", "x", "x", END]
    assert [e.last for e in seen] == [True, False, False, True, True]
    assert [e.sequence for e in seen] == list(range(5))
    assert all(len(e.payload) <= PIECE_BYTES for e in seen)
    assert {(e.job, e.run, e.sender, e.recipient) for e in seen} == {(KEY.job, KEY.run, "a", "b")}


def test_a_stream_is_closed_when_both_sides_ended() -> None:
    async def scenario() -> tuple[MemoryDuplex, MemoryDuplex]:
        ours, theirs = pair()
        one = Link("a", "b", KEY, ours, greeted=False)
        other = Link("b", "a", KEY, theirs, greeted=False)
        await asyncio.gather(one.run(), other.run(), finished(one), finished(other))
        return ours, theirs

    assert all(end.closed for end in run(scenario()))


def test_a_broken_link_can_still_say_why() -> None:
    """Its stream stays open until the reason is out; who owns it closes it."""

    async def scenario() -> ScriptedDuplex:
        link, duplex = hearing([said(0, HELLO), said(7, "x")], gone=False)
        with pytest.raises(RemoteProtocolError):
            await link.run()
        assert not duplex.closed
        await link.abort(Problem("peer-protocol", "out of sequence", "b"))
        return duplex

    assert run(scenario()).heard[-1].step == ABORT


@dataclass
class _SlowDuplex(ScriptedDuplex):
    """End whose writes take a while. A write that is cancelled breaks the stream, as with gRPC."""

    takes_s: float = 0.05
    broken: bool = False

    async def write(self, envelope: Envelope) -> None:
        if self.broken:
            raise TransportError("peer-lost", "a write was cancelled")
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            self.broken = True
            raise
        await super().write(envelope)


def test_a_broken_link_cancels_no_write() -> None:
    """The peer stops while we write: our own reason goes out behind the write."""

    async def scenario() -> ScriptedDuplex:
        duplex = _SlowDuplex([*says(), said(1, ABORT, Problem("cancelled", "over").for_others().encode())])
        link = Link("a", "b", KEY, duplex, greeted=False)
        await link.send("x", b"1")
        with pytest.raises(JobFailed):
            await link.run()
        await link.abort(Problem("cancelled", "over here, too"))
        return duplex

    assert [envelope.step for envelope in run(scenario()).heard] == [HELLO, ABORT]


def test_a_write_that_never_ends_holds_up_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party.net.link, "_WRITE_S", 0.05)

    async def scenario() -> _SlowDuplex:
        duplex = _SlowDuplex([*says(), said(1, ABORT, b"{}")], takes_s=3600)
        with pytest.raises(JobFailed):
            await Link("a", "b", KEY, duplex, greeted=False).run()
        return duplex

    assert run(scenario()).broken


def test_a_hello_read_by_the_server_is_not_awaited_again() -> None:
    async def scenario() -> bytes:
        link, _ = hearing(says(("x", b"1"))[1:], greeted=True, gone=False)
        return await pumping(link, work=link.receive("x"))

    assert run(scenario()) == b"1"


# ---- what does not belong here


GOOD = said(1, "x", b"1")


@pytest.mark.parametrize(
    "envelope",
    [
        replace(GOOD, job=b"k" * 32),
        replace(GOOD, run=b"s" * 16),
        replace(GOOD, job=b""),
        replace(GOOD, run=b""),
    ],
)
def test_an_envelope_of_another_job_or_run(envelope: Envelope) -> None:
    error = broken_by([said(0, HELLO), envelope])
    assert isinstance(error, PartyError)
    assert (error.problem.error_id, error.problem.party) == ("job-hash-mismatch", "b")


@pytest.mark.parametrize(
    ("envelopes", "reason"),
    [
        ([said(0, HELLO), replace(GOOD, sender="c")], "and its stream have different names"),
        ([said(0, HELLO), replace(GOOD, recipient="c")], "and its stream have different names"),
        ([said(0, HELLO), replace(GOOD, sender="a", recipient="b")], "and its stream have different names"),
        ([said(0, HELLO), replace(GOOD, sequence=2)], "out of sequence"),
        ([said(0, HELLO), GOOD, GOOD], "out of sequence"),
        ([said(0, HELLO), GOOD, said(3, "x")], "out of sequence"),
        ([said(0, HELLO), said(2, "x"), said(1, "x")], "out of sequence"),
        ([said(1, HELLO)], "out of sequence"),
        ([said(0, "x")], "begins with one hello"),
        ([said(0, HELLO), said(1, HELLO)], "begins with one hello"),
        ([said(0, END)], "begins with one hello"),
        ([said(0, HELLO), said(1, "x", b"1", last=False), said(2, "y")], "stops half-way"),
        ([said(0, HELLO), said(1, "x", b"1", last=False), said(2, END)], "stops half-way"),
        ([said(0, HELLO, b"1", last=False), said(1, "x")], "stops half-way"),
        ([said(0, HELLO), said(1, "x" * 81)], "an unknown name of a step"),
        ([said(0, HELLO), said(1, "x\n")], "an unknown name of a step"),
        ([said(0, HELLO), said(1, "y", b"1")], "a message of step y"),
        ([said(0, HELLO), said(1, END)], "the end of the stream where a message is due"),
    ],
)
def test_envelopes_that_break_the_rules_name_the_culprit(envelopes: list[Envelope], reason: str) -> None:
    error = broken_by(envelopes, gone=False)
    assert isinstance(error, RemoteProtocolError)
    assert error.culprit == "b"
    assert reason in error.reason
    assert len(str(error)) < 300
    assert str(error).isprintable()


def test_a_part_without_content_is_refused_unless_it_is_the_last() -> None:
    error = broken_by([said(0, HELLO), said(1, "x", b"", last=False)], gone=False)
    assert isinstance(error, RemoteProtocolError)
    assert (error.culprit, error.reason) == ("b", "a part without content before the last part")


def test_a_message_has_a_greatest_size() -> None:
    parts = [said(0, HELLO), said(1, "x", b"12345", last=False), said(2, "x", b"678901", last=False)]
    error = broken_by(parts, gone=False, max_bytes=10)
    assert isinstance(error, RemoteProtocolError)
    assert error.reason == "more than 10 bytes (`limits.message_mb`)"


@pytest.mark.parametrize(
    "envelopes", [[], [said(0, HELLO)], says(("x", b"1")), [said(0, HELLO), said(1, "x", b"1", last=False)]]
)
def test_a_stream_without_an_end_means_that_the_peer_is_gone(envelopes: list[Envelope]) -> None:
    error = broken_by(envelopes)
    assert isinstance(error, TransportError)
    assert (error.problem.error_id, error.problem.party) == ("peer-lost", "b")


@pytest.mark.parametrize("step", ["x", "y"])
def test_what_arrived_before_a_link_broke_is_taken_first(step: str) -> None:
    async def scenario() -> None:
        link, _ = hearing(says(("x", b"1"), (step, b"2")))
        with pytest.raises(TransportError):
            await link.run()
        assert [await link.take() for _ in range(2)] == [("x", b"1"), (step, b"2")]
        for _ in range(2):
            with pytest.raises(TransportError):
                await link.take()

    run(scenario())


# ---- aborts


def test_an_abort_tells_the_peer_why_past_everything_queued() -> None:
    problem = Problem("data-empty", "no rows", "a", "load", private="secret")

    async def scenario() -> None:
        one, other = linked()
        await one.send("x", bytes(3 * PIECE_BYTES))  # nobody takes it; the abort comes in its middle
        await one.abort(problem)
        await pumping(other, work=_receive_all(other))

    with pytest.raises(JobFailed) as caught:
        run(scenario())
    assert caught.value.problem.shared() == problem.shared() | {"party": "a", "hops": 1}
    assert caught.value.problem.private == ""


def test_who_stops_before_it_said_hello_says_that_first() -> None:
    """Else its peer's server would take the reason for a stream that breaks the protocol."""

    async def scenario() -> list[str]:
        end = ScriptedDuplex([], gone=False)
        link = Link("a", "b", KEY, end, greeted=False)
        await link.abort(Problem("peer-unreachable", "c is not there", party="c"))
        pump = asyncio.create_task(link.run())
        await asyncio.sleep(0)
        await stopped(pump)
        assert [each.sequence for each in end.heard] == [0, 1]
        return [each.step for each in end.heard]

    assert run(scenario()) == [HELLO, ABORT]


@pytest.mark.parametrize("at", [1, 2])
def test_an_abort_may_interrupt_a_message(at: int) -> None:
    reason = json.dumps({"error": "busy", "message": "later", "party": "c"}).encode()
    parts = [said(0, HELLO), said(1, "x", b"1", last=False)][:at]
    error = broken_by([*parts, said(at, ABORT, reason)])
    assert isinstance(error, JobFailed)
    assert (error.problem.error_id, error.problem.party, error.problem.about) == ("busy", "b", "c")


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xff", b"[]", b"3", b'"x"', b"null", json.dumps({"error": "no such id"}).encode(), b"[" * 10**5],
)
def test_an_abort_without_a_reason_is_the_peers_fault(payload: bytes) -> None:
    error = broken_by([said(0, HELLO), said(1, ABORT, payload)])
    assert isinstance(error, JobFailed)
    assert (error.problem.error_id, error.problem.party) == ("peer-protocol", "b")


def test_what_an_abort_says_is_bounded() -> None:
    payload = json.dumps({"error": "busy", "message": "x" * 10_000}).encode()
    error = broken_by([said(0, HELLO), said(1, ABORT, payload)])
    assert isinstance(error, JobFailed)
    assert len(error.problem.message) == MAX_SHARED_CHARS


@pytest.mark.parametrize(
    ("told", "head"),
    [
        ("ab" * HEAD_BYTES, b"\xab" * HEAD_BYTES),
        ("AB" * HEAD_BYTES, None),
        ("ab" * (HEAD_BYTES - 1), None),
        ("ab" * (HEAD_BYTES + 1), None),
        ("ab" * HEAD_BYTES + "\n", None),
        ("ａ" * 2 * HEAD_BYTES, None),
        ("", None),
        (None, None),
        (7, None),
        (["ab"] * HEAD_BYTES, None),
        ({"ab": "ab"}, None),
        ("ab" * 10**5, None),
    ],
)
def test_a_head_in_an_abort_is_a_head_or_nothing(told: Any, head: bytes | None) -> None:
    reason = json.dumps({"error": "busy", "message": "later", "audit_head": told}).encode()

    async def scenario() -> tuple[Link, Exception]:
        link = Link("a", "b", KEY, ScriptedDuplex([said(0, HELLO), said(1, ABORT, reason)]), greeted=False)
        with pytest.raises(JobFailed) as caught:
            await link.run()
        return link, caught.value

    link, error = run(scenario())
    assert isinstance(error, JobFailed)
    assert (error.problem.error_id, error.problem.message) == ("busy", "later")
    assert link.head == head


def test_an_abort_brings_the_head_of_an_audit() -> None:
    async def scenario() -> bytes | None:
        one, other = linked()
        await one.abort(Problem("data-empty", "no rows", "a", "load"), b"h" * HEAD_BYTES)
        with pytest.raises(JobFailed):
            await pumping(other, work=_receive_all(other))
        return other.head

    assert run(scenario()) == b"h" * HEAD_BYTES


# ---- back-pressure


def test_reading_pauses_while_too_much_lies_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party.net.link, "_AHEAD_BYTES", 100)

    async def scenario() -> None:
        link, duplex = hearing(says(*[("x", bytes(60))] * 10), gone=False)

        async def slowly() -> None:
            await asyncio.sleep(0.02)
            left = len(list(duplex._next))
            assert left == 8  # two messages were read, and a hello
            assert await link.receive("x") == bytes(60)

        await pumping(link, work=slowly())

    run(scenario())


def test_reading_pauses_while_too_many_messages_lie_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages without payload count, too."""
    monkeypatch.setattr(party.net.link, "_AHEAD_MESSAGES", 3)

    async def scenario() -> None:
        link, duplex = hearing(says(*[("x", b"")] * 10), gone=False)

        async def slowly() -> None:
            await asyncio.sleep(0.02)
            assert len(list(duplex._next)) == 6  # four messages were read, and a hello

        await pumping(link, work=slowly())

    run(scenario())


def test_a_sender_waits_for_a_slow_network() -> None:
    async def scenario() -> None:
        link, _ = hearing(says(), gone=False)  # not pumped: the network takes nothing
        sends = asyncio.create_task(link.send("x", bytes(20 * PIECE_BYTES)))
        await asyncio.sleep(0.02)
        assert not sends.done()
        sends.cancel()
        await asyncio.gather(sends, return_exceptions=True)

    run(scenario())
