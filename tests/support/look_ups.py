"""Cost of the look-ups of a run, by its messages: rounds and bytes as their docstrings say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crypto.encoding import Words
from crypto.local import Message, Transcript
from tests.support.sessions import OPENING_BYTES, transfer_bytes

OPEN, SIGN = "look_up/open", "look_up/sign"
LEVEL, LEAVES = "point_function/level", "point_function/leaves"
_DIGEST_BYTES = 16


def point_bytes(bits: int) -> int:
    """Bytes of the products that the garbler sends for a point: each modulo what is left above its bit."""
    return sum(-(-above // 8) for above in range(bits))


def label_product_bytes(transcript: Transcript) -> int:
    """Bytes of products of carried bits: what both tell, and the choices of the garbler right before, whose length
    test_label_products compares with the docstring.
    """
    total, before = 0, dict[str, list[Message]]()
    for message in transcript.messages:
        earlier = before.setdefault(message.sender, [])
        if message.step == "label_products/told":
            total += 2 * len(message.payload)
            if earlier[-1].step == "ot/extend":  # the first piece of a call
                total += sum(len(each.payload) for each in earlier[-2:])
        earlier.append(message)
    return total


def vector_bytes(bits: int) -> int:
    """Bytes of corrections for a vector, sent by each party: levels, and leaves of 2 and of 16 bytes."""
    return 16 * (bits - 4) + 2 + 16


def look_up_rounds(transcript: Transcript, n: int) -> int:
    """Two for every opening, and where there are others than the pair one more: the deputy's choices then wait for
    what these share. For every batch of unit vectors its levels and 2; and 1 before the first."""
    opened, made = _counts(transcript), _makings(transcript)
    return len(opened) * (1 + min(n - 1, 2)) + sum(2 + max(*counts, 11) - 7 for counts in made) + bool(made)


def look_up_bytes(transcript: Transcript) -> int:
    """Sent by both of the pair."""
    opened, made = _counts(transcript), _makings(transcript)
    total = sum(2 * opening_bytes(count) for count in opened)
    total += sum(len(m.payload) for m in transcript.messages if m.step == SIGN)
    for counts in made:
        total += 2 * (24 + transfer_bytes(sum((bits + 1) * count for bits, count in counts.items())))
        total += sum(
            (2 * vector_bytes(bits) + 30 + point_bytes(bits)) * count for bits, count in counts.items()
        )
    return total + bool(made) * (24 + transfer_bytes(128) + OPENING_BYTES)


def _counts(transcript: Transcript) -> list[int]:
    """Indices of every opening."""
    return [count_of(m) for m in _first(transcript.messages, OPEN)]


def opening_bytes(count: int) -> int:
    """Bytes of an opening of a number of indices: a digest, four bytes an index, a bit an index."""
    return _DIGEST_BYTES + 4 * count + -(-count // 8)


def count_of(message: Message) -> int:
    """Indices of an opening."""
    return (len(message.payload) - _DIGEST_BYTES) * 8 // 33


def indices_of(message: Message) -> Words:
    """Shares of x − r in an opening."""
    words = message.payload[_DIGEST_BYTES : _DIGEST_BYTES + 4 * count_of(message)]
    return np.frombuffer(words, "<u4").astype(np.uint64)


def _makings(transcript: Transcript) -> list[dict[int, int]]:
    """Numbers of the unit vectors of every making, by bits. A level tells how many vectors have it.

    The shorter message of a pair is without what one party alone sends. Three levels have a low tree, the fourth its
    leaves of two bytes.
    """
    made, grown = [], list[int]()
    sent = [m for m in transcript.messages if m.step in (LEVEL, LEAVES)]
    for one, other in zip(sent[::2], sent[1::2], strict=True):
        assert one.step == other.step
        length = min(len(one.payload), len(other.payload))
        if one.step == LEVEL:
            grown.append(length)
            continue
        count = length // 16
        beside = [16 * count] * 3 + [2 * count] + [0] * len(grown)
        high = [(n - more) // 16 for n, more in zip(grown, beside, strict=False)]
        of_bits = zip(range(7, 7 + len(high) + 1), [count, *high], [*high, 0], strict=True)
        made.append({bits: n - deeper for bits, n, deeper in of_bits if n > deeper})
        grown = []
    return made


def _first(messages: Sequence[Message], *steps: str) -> list[Message]:
    """Of messages that two parties send each other at the same steps those of one of them."""
    found = [m for m in messages if m.step in steps]
    return [m for m in found if m.sender == found[0].sender]
