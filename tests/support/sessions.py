"""Sessions without their base transfers: the seeds as they would have come out of them."""

from __future__ import annotations

import numpy as np

from crypto.blocks import bits_of, random_blocks
from crypto.ot.code import LENGTH
from crypto.ot.extension import OtReceiver, OtSender
from crypto.ot.wide import WideReceiver, WideSender
from crypto.rng import uniform_words
from crypto.two_party import EvaluatorSession, GarblerSession
from tests.support.rng import SeededRng

OPENING_BYTES = 4128
"""The receiver's part of the trees, in the first message of a session."""


def ot_sessions(seed: object = 0, sender: str = "s", receiver: str = "r") -> tuple[OtSender, OtReceiver]:
    """Return both ends of a session; the trees are there."""
    rng = SeededRng((seed, "session"))
    delta = random_blocks(rng, 1)[0] | np.array([1, 0], dtype=np.uint64)
    zero, one = random_blocks(rng, 2 * 128).reshape(128, 2, 2).swapaxes(0, 1)
    chosen = np.where(bits_of(delta)[:, np.newaxis] == 1, one, zero)
    key = rng.bytes(16)
    ends = OtSender(receiver, delta, chosen, key), OtReceiver(sender, (zero, one), key)
    ends[0].open(ends[1].opening(), "opening")
    return ends


def two_party_sessions(seed: object = 0) -> tuple[GarblerSession, EvaluatorSession]:
    sender, receiver = ot_sessions(seed, "g", "e")
    return GarblerSession(sender, SeededRng((seed, "g"))), EvaluatorSession(receiver, SeededRng((seed, "e")))


def transfer_bytes(count: int) -> int:
    """Return the bytes that a receiver sends for ``count`` transfers: choices of 32 groups and two words of
    coins, and a check.
    """
    total = 0
    for start in range(0, count, 65_536):
        words = -(-min(count - start, 65_536) // 64) + 2
        total += 32 * 8 * (words + words % 2) + 48
    return total


def wide_sessions(seed: object = 0, capacity: int = 200) -> tuple[WideSender, WideReceiver]:
    rng = SeededRng((seed, "wide"))
    delta = uniform_words(rng, LENGTH // 64)
    zero, one = random_blocks(rng, LENGTH), random_blocks(rng, LENGTH)
    chosen = np.where(bits_of(delta)[:, np.newaxis] == 1, one, zero)
    key = rng.bytes(16)
    return WideSender("r", delta, chosen, key, capacity), WideReceiver("s", (zero, one), key, capacity)
