"""Cost of the look-ups of a run, by its messages: rounds and bytes as their docstrings say."""

from __future__ import annotations

from collections.abc import Sequence

from crypto.local import Message, Transcript
from tests.support.sessions import transfer_bytes

OPEN, LEVEL, LEAVES = "look_up/open", "point_function/level", "point_function/leaves"


def look_up_rounds(transcript: Transcript, n: int) -> int:
    """One for every opening, and where there are others than the pair one more: the deputy's choices then wait for
    what these share. For every batch of unit vectors its levels and 2; and 1 before the first."""
    opened, made = _counts(transcript), _batches(transcript)
    return len(opened) * min(n - 1, 2) + sum(2 + max(bits - 7, 7) for bits, _ in made) + bool(made)


def look_up_bytes(transcript: Transcript) -> int:
    """Sent by both of the pair."""
    opened, made = _counts(transcript), _batches(transcript)
    total = sum(2 * (16 + 4 * count) for count in opened)
    for bits, count in made:
        total += 2 * (24 + transfer_bytes(bits * count) + 16 * count * (bits + 1)) + 4 * bits * count
    return total + bool(made) * (24 + transfer_bytes(128))


def _counts(transcript: Transcript) -> list[int]:
    """Indices of every opening."""
    return [(len(m.payload) - 16) // 4 for m in _first(transcript.messages, OPEN)]


def _batches(transcript: Transcript) -> list[tuple[int, int]]:
    """Bits and number of the unit vectors of every batch; the leader's message has the points, the other's none."""
    leaves = [m for m in transcript.messages if m.step == LEAVES]
    made = []
    for one, other in zip(leaves[::2], leaves[1::2], strict=True):
        short, long = sorted((len(one.payload), len(other.payload)))
        made.append(((long - short) // (short // 4), short // 16))
    return made


def _first(messages: Sequence[Message], step: str) -> list[Message]:
    """Of messages that two parties send each other at the same step those of one of them."""
    found = [m for m in messages if m.step == step]
    return [m for m in found if m.sender == found[0].sender]
