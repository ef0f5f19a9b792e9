"""Insecure ideal twins: the same signatures as the protocols, with a trusted party that trusts everyone.

What uses a building block is tested with the twin in its place, as the hybrid model does it: the sender's
secrets travel in the clear and the functionality is evaluated literally.
"""

from __future__ import annotations

import numpy as np

from crypto.blocks import Blocks, decode_blocks, encode_blocks, random_blocks
from crypto.ot.extension import Bits
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send


class IdealOtSender:
    """A session that keeps nothing but the peer, the offset and the coins."""

    def __init__(self, peer: str, rng: Rng) -> None:
        self.peer = peer
        self.delta = random_blocks(rng, 1)[0] | np.array([1, 0], dtype=np.uint64)
        self.rng = rng


class IdealOtReceiver:
    def __init__(self, peer: str) -> None:
        self.peer = peer


def setup_sender(me: str, peer: str, rng: Rng) -> Rounds[IdealOtSender]:
    return IdealOtSender(peer, rng)
    yield


def setup_receiver(me: str, peer: str, rng: Rng) -> Rounds[IdealOtReceiver]:
    return IdealOtReceiver(peer)
    yield


def correlated_send(sender: IdealOtSender, count: int) -> Rounds[Blocks]:
    q = random_blocks(sender.rng, count)
    yield from chosen_send(sender, (q, q ^ sender.delta))
    return q


def random_send(sender: IdealOtSender, count: int) -> Rounds[tuple[Blocks, Blocks]]:
    pairs = random_blocks(sender.rng, count), random_blocks(sender.rng, count)
    yield from chosen_send(sender, pairs)
    return pairs


def chosen_send(sender: IdealOtSender, message_pairs: tuple[Blocks, Blocks]) -> Rounds[None]:
    yield from send("ideal/ot", {sender.peer: encode_blocks(np.concatenate(message_pairs))})


def chosen_receive(receiver: IdealOtReceiver, choice_bits: Bits) -> Rounds[Blocks]:
    payload = yield from receive("ideal/ot", receiver.peer)
    count = len(choice_bits)
    zero, one = decode_blocks(payload, 2 * count, receiver.peer, "ideal/ot").reshape(2, count, 2)
    return np.where(choice_bits[:, np.newaxis] == 1, one, zero)


correlated_receive = random_receive = chosen_receive
