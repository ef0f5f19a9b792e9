"""The in-process driver."""

from __future__ import annotations

import pytest

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import run_local
from crypto.rounds import Round, Rounds, exchange, receive, send


def ping(peer: str, payload: bytes, times: int = 1) -> Rounds[list[bytes]]:
    got = []
    for _ in range(times):
        got.append((yield from exchange("ping", peer, payload)))
    return got


def test_outputs_and_transcript() -> None:
    outputs, transcript = run_local({"a": ping("b", b"from a", 2), "b": ping("a", b"from b", 2)})
    assert outputs == {"a": [b"from b"] * 2, "b": [b"from a"] * 2}
    assert transcript.rounds == 2
    assert transcript.bytes_sent("a") == 12
    assert [m.payload for m in transcript.view("a")] == [b"from b"] * 2


def test_pipelined_sends_count_one_round() -> None:
    def sender() -> Rounds[None]:
        for i in range(5):
            yield from send("chunk", {"b": bytes([i])})

    def receive_all() -> Rounds[list[int]]:
        got = []
        for _ in range(5):
            got.append((yield from receive("chunk", "a"))[0])
        return got

    outputs, transcript = run_local({"a": sender(), "b": receive_all()})
    assert outputs["b"] == [0, 1, 2, 3, 4]
    assert transcript.rounds == 1


def test_waiting_for_each_other_is_an_error_not_a_hang() -> None:
    with pytest.raises(LocalProtocolError, match="every party waits: a at x for b, b at y for a"):
        run_local({"a": receive("x", "b"), "b": receive("y", "a")})


def test_a_dropped_message_is_an_error_not_a_hang() -> None:
    with pytest.raises(LocalProtocolError, match="every party waits"):
        run_local({"a": ping("b", b"1"), "b": ping("a", b"2")}, tamper=lambda m: None)


def test_a_wrong_step_names_the_culprit() -> None:
    with pytest.raises(RemoteProtocolError, match="a message of step y") as caught:
        run_local({"a": receive("x", "b"), "b": send("y", {"a": b""})})
    assert (caught.value.culprit, caught.value.step) == ("b", "x")


def test_an_unread_message_is_an_error() -> None:
    def silent() -> Rounds[None]:
        return None
        yield Round("never")

    with pytest.raises(RemoteProtocolError, match="never awaits"):
        run_local({"a": send("x", {"b": b"?"}), "b": silent()})


def test_unknown_recipients_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match="not its peer"):
        run_local({"a": send("x", {"nobody": b""})})


def test_an_error_of_one_party_closes_the_others() -> None:
    closed = []

    def fails() -> Rounds[None]:
        yield from send("x", {"b": b""})
        raise ValueError("bug")

    def waits() -> Rounds[None]:
        try:
            yield from receive("x", "a")
            yield from receive("x", "a")
        finally:
            closed.append("b")

    with pytest.raises(ValueError, match="bug"):
        run_local({"a": fails(), "b": waits()})
    assert closed == ["b"]
