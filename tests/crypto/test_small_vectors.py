"""Small unit vectors: output, law of the messages, pads that only one receiver knows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from crypto import small_vectors
from crypto.blocks import Blocks, random_blocks
from crypto.encoding import Words
from crypto.small_vectors import SENT_BYTES, SmallReceiver, SmallSender
from tests.support.chi_square import chi_square
from tests.support.rng import SeededRng
from tests.support.slow_hash import tmmo
from tests.support.statistics import BYTE_LIMIT

KEY = bytes(range(16))
OFFSET = np.array([0x1234567890ABCDE1, 0xFEDCBA0987654321], dtype=np.uint64)


def bits_of(numbers: np.ndarray) -> Words:
    return (numbers >> np.arange(4)[:, None] & 1).astype(np.uint64)


def transferred(x: Words, seed: object = 0) -> tuple[Blocks, Blocks]:
    """Blocks of correlated transfers with choices x: of the sender, of the receiver."""
    q = random_blocks(SeededRng(seed), x.size).reshape(*x.shape, 2)
    return q, q ^ x[..., None] * OFFSET


def both(x: np.ndarray, y: np.ndarray, seed: object = 0) -> tuple[SmallSender, SmallReceiver]:
    """Both sides, with shares x of the receiver and y of the sender of each point."""
    q, t = transferred(bits_of(x), seed)
    sender, receiver = SmallSender(KEY, bits_of(y), q, OFFSET), SmallReceiver(KEY, bits_of(x), t)
    assert (len(sender.sent), receiver.sent) == (receiver.expected, b"")
    receiver.take(sender.sent)
    return sender, receiver


def test_the_shares_are_those_of_the_unit_vector_of_every_point() -> None:
    x, y = np.array(list(product(range(16), repeat=2))).T
    sender, receiver = both(x, y)
    assert len(sender.sent) == SENT_BYTES * 256
    assert (sender.vectors ^ receiver.vectors).tolist() == [1 << a for a in (x ^ y).tolist()]


def test_either_share_and_every_word_sent_are_uniform() -> None:
    """For a fixed point, over many keys of the transfers."""
    x, y = np.full(4000, 5), np.full(4000, 12)
    sender, receiver = both(x, y)
    for words in (sender.vectors, receiver.vectors):
        assert chi_square(np.bincount(words.astype("<u2").view(np.uint8), minlength=256)) < BYTE_LIMIT
    sent = np.frombuffer(sender.sent, np.uint8).reshape(-1, 15, 2)
    for word in range(15):
        assert chi_square(np.bincount(sent[:, word].ravel(), minlength=256)) < BYTE_LIMIT


def test_the_message_is_that_of_the_module_word_by_word() -> None:
    """From the words of the module, with the hash of the paper, one vector after the other."""
    x, y = np.array([0, 5, 15]), np.array([9, 9, 2])
    q, _ = transferred(bits_of(x))
    sender, _ = both(x, y)
    sent = np.frombuffer(sender.sent, "<u2").reshape(-1, 15)
    as_integer = lambda block: int(block[0]) | int(block[1]) << 64  # noqa: E731
    for n in range(3):
        pads = []
        for v in range(16):
            pad = 0
            for i in range(4):
                block = as_integer(q[i, n] ^ (OFFSET if v >> i & 1 else 0 * OFFSET))
                others = [v >> j & 1 for j in range(4) if j != i]
                chunk = sum(bit << place for place, bit in enumerate(others))
                pad ^= tmmo(KEY, block, 3 * i + n) >> 16 * chunk & 0xFFFF
            pads.append(pad ^ 1 << (v ^ int(y[n])))
        assert int(sender.vectors[n]) == pads[0]
        assert sent[n].tolist() == [pad ^ pads[0] for pad in pads[1:]]


def test_every_chunk_is_in_one_pad() -> None:
    """So a pad of another point than the receiver's has a chunk that is in no other pad, and unknown to it."""
    used = [(i, v >> i & 1, int(small_vectors._CHUNK[v, i])) for v in range(16) for i in range(4)]
    assert len(set(used)) == len(used) == 4 * 2 * 8


@pytest.mark.parametrize("v", range(1, 16))
def test_another_word_than_the_receivers_tells_nothing(v: int) -> None:
    """The words for other points, of the receiver's view, are independent of the sender's share of the point."""
    count = 2000
    rng = np.random.default_rng(v)
    y = rng.integers(0, 16, count)
    sender, receiver = both(np.zeros(count, dtype=np.int64), y, v)
    told = np.frombuffer(sender.sent, "<u2").reshape(-1, 15)[:, v - 1] ^ receiver.vectors.astype(np.uint16)
    for share in range(16):
        ones = (told[y == share, None] >> np.arange(16) & 1).mean(axis=0)
        assert np.abs(ones - 0.5).max() < 5.5 * 0.5 / np.sqrt((y == share).sum())


def test_no_secret_in_the_repr() -> None:
    assert [repr(side) for side in both(np.array([1]), np.array([2]))] == [
        "SmallSender(<secret>)",
        "SmallReceiver(<secret>)",
    ]
