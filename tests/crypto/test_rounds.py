"""Protocols side by side."""

from __future__ import annotations

import pytest

from crypto.local import run_local
from crypto.rounds import Rounds, exchange, receive, send, side_by_side


def saying(peer: str, words: list[bytes]) -> Rounds[int]:
    yield from send("begin", {peer: b"!"})
    for word in words:
        yield from send("word", {peer: word})
    return len(words)


def hearing(peer: str, count: int) -> Rounds[bytes]:
    heard = yield from receive("begin", peer)
    for _ in range(count):
        heard += yield from receive("word", peer)
    return heard


def test_they_end_with_their_own_outputs_in_rounds_that_they_share() -> None:
    """Both directions with one peer, one with another; of different lengths."""
    outputs, transcript = run_local(
        {
            "a": side_by_side([saying("b", [b"x"] * 3), hearing("b", 1), hearing("c", 2)]),
            "b": side_by_side([hearing("a", 3), saying("a", [b"y"])]),
            "c": side_by_side([saying("a", [b"z", b"zz"])]),
        }
    )
    assert outputs == {"a": [3, b"!y", b"!zzz"], "b": [b"!xxx", 1], "c": [2]}
    assert transcript.steps == ("begin", "word")
    assert transcript.rounds == 3  # a sends its second word when it has heard the first ones of b and c


def test_none_and_those_that_say_nothing_end_at_once() -> None:
    def silent() -> Rounds[int]:
        return 7
        yield

    outputs, transcript = run_local({"a": side_by_side([silent(), silent()]), "b": side_by_side([])})
    assert outputs == {"a": [7, 7], "b": []}
    assert not transcript.messages


def test_those_that_are_not_at_one_step_are_our_fault() -> None:
    with pytest.raises(ValueError, match="unpack"):
        next(side_by_side([exchange("x", "b", b""), exchange("y", "c", b"")]))
