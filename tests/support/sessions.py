"""Sessions without their base transfers: the seeds as they would have come out of them."""

from __future__ import annotations

import numpy as np

from crypto.blocks import bits_of, random_blocks
from crypto.ot.extension import OtReceiver, OtSender
from crypto.two_party import EvaluatorSession, GarblerSession
from tests.support.rng import SeededRng


def ot_sessions(seed: object = 0, sender: str = "s", receiver: str = "r") -> tuple[OtSender, OtReceiver]:
    rng = SeededRng((seed, "session"))
    delta = random_blocks(rng, 1)[0] | np.array([1, 0], dtype=np.uint64)
    pairs = tuple((rng.bytes(16), rng.bytes(16)) for _ in range(128))
    chosen = tuple(pair[bit] for pair, bit in zip(pairs, bits_of(delta), strict=True))
    key = rng.bytes(16)
    return OtSender(receiver, delta, chosen, key), OtReceiver(sender, pairs, key)


def two_party_sessions(seed: object = 0) -> tuple[GarblerSession, EvaluatorSession]:
    sender, receiver = ot_sessions(seed, "g", "e")
    return GarblerSession(sender, SeededRng((seed, "g"))), EvaluatorSession(receiver, SeededRng((seed, "e")))
