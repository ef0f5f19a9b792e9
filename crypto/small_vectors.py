"""Shares of unit vectors of 16 entries, at points of four shared bits, by transfers that are there.

The sender has a share y of the point, the receiver x. The sender masks e(v ⊕ y), the unit vector with a 1 at v ⊕ y,
for each of the 16 possible v, with a pad that only a receiver with x = v knows. With the pad of 0 chosen as its own
share, 15 words of 16 bits are sent.

The transfers of the four bits give the pads. Each transfer gives the sender two blocks and the receiver one of them.
A block is hashed to 8 chunks of 16 bits, one for each v with the block's bit, and the pad of v is the sum of its
chunks of the four transfers. Every chunk is in one pad. A pad of v ≠ x has a chunk of a block that the receiver does
not have.
"""

from __future__ import annotations

import numpy as np

from crypto.blocks import Blocks
from crypto.encoding import Words
from crypto.hashing import BlockHash

SMALL_BITS = 4
"""Bits of a point."""

_ENTRIES = 1 << SMALL_BITS
_BITS = np.arange(SMALL_BITS)
_CHUNK = np.array([[(v >> i + 1 << i) | v & (1 << i) - 1 for i in _BITS] for v in range(_ENTRIES)])
"""Number of the chunk of each v in each transfer: v without the transfer's bit."""

SENT_BYTES = 2 * (_ENTRIES - 1)
"""Bytes that the sender sends for a vector."""


class SmallSender:
    """The sender's side of a batch. After its creation all is there.

    sent:     the message. expected: 0.
    vectors:  own shares: uint64 below 2**16, shape (count,).
    """

    expected = 0

    def __init__(self, key: bytes, bits: Words, q: Blocks, offset: Words) -> None:
        """``bits``: own shares, lowest first, shape (4, count). q: own blocks of the transfers, shape (4, count, 2).
        offset: own, shape (2,). key: fresh, of both parties.
        """
        count = bits.shape[1]
        chunks = _chunks(key, np.stack([q, q ^ offset]))
        values = np.arange(_ENTRIES)
        pads = np.zeros((count, _ENTRIES), dtype=np.uint16)
        for i in _BITS.tolist():
            pads ^= chunks[values >> i & 1, i, :, _CHUNK[:, i]].T
        places = values ^ _numbers(bits)[:, None]
        masked = pads ^ (np.uint16(1) << places.astype(np.uint16))
        self.vectors = masked[:, 0].astype(np.uint64)
        self.sent = (masked[:, 1:] ^ masked[:, :1]).astype("<u2").tobytes()

    def __repr__(self) -> str:
        return "SmallSender(<secret>)"

    def take(self, payload: bytes) -> None:
        """Take the peer's message, which is empty."""


class SmallReceiver:
    """The receiver's side of a batch.

    sent:      nothing. expected: bytes of the sender's message.
    vectors:   own shares, after :meth:`take`: uint64 below 2**16, shape (count,).
    """

    sent = b""

    def __init__(self, key: bytes, bits: Words, t: Blocks) -> None:
        """``bits``: own shares, the choices of the transfers, lowest first: shape (4, count). t: own blocks, shape
        (4, count, 2). key: fresh, of both parties.
        """
        self._points = _numbers(bits)
        (chunks,) = _chunks(key, t[None])
        pads = np.zeros((len(self._points), _ENTRIES), dtype=np.uint16)
        for i in _BITS.tolist():
            pads ^= chunks[i][:, _CHUNK[:, i]]
        self._pads = self._own(pads)
        self.expected = SENT_BYTES * len(pads)
        self.vectors = np.zeros(len(pads), dtype=np.uint64)

    def __repr__(self) -> str:
        return "SmallReceiver(<secret>)"

    def take(self, payload: bytes) -> None:
        """Take the sender's message, of the length expected."""
        told = np.frombuffer(payload, dtype="<u2").reshape(-1, _ENTRIES - 1)
        masked = np.column_stack([np.zeros(len(told), dtype=np.uint16), told])
        self.vectors = (self._own(masked) ^ self._pads).astype(np.uint64)

    def _own(self, words: np.ndarray) -> np.ndarray:
        """Return the word of the own point in each row of 16. No address depends on the point."""
        kept = np.where(self._points[:, None] == np.arange(_ENTRIES), words, np.uint16(0))
        own: np.ndarray = np.bitwise_xor.reduce(kept, axis=1)
        return own


def _numbers(bits: Words) -> np.ndarray:
    """Return the numbers with these bits: int64, shape (count,)."""
    numbers: np.ndarray = (bits.astype(np.int64) << _BITS[:, None]).sum(axis=0)
    return numbers


def _chunks(key: bytes, blocks: Blocks) -> np.ndarray:
    """Return the chunks of blocks, shape (rows, 4, count, 2): uint16, shape (rows, 4, count, 8); blocks of a column
    share a tweak.
    """
    rows, bits, count, _ = blocks.shape
    hashed = BlockHash(key, rows * bits * count).hash(np.ascontiguousarray(blocks).reshape(rows, -1))
    return hashed.astype("<u8").view("<u2").reshape(rows, bits, count, 8)
