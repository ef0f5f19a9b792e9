"""Additive shares of entries of public tables, from XOR shares of a unit vector.

The parties' vectors u and v differ at a single place r, where one of them is 1. Everywhere else the terms of
Σ T(i)·u(i) − Σ T(i)·v(i) cancel, so the difference is T(r) if u(r) = 1, and −T(r) otherwise. The sign, too, is a
difference: σ = |u| − |v|, where |u| is the number of ones. The sum of |u| and −|v| modulo 4 is 1 or 3. One of the two
is odd, so the lowest bits have no carry, and σ is −1 if their second bits differ. So each party has a share of the
sign: its own second bit.

A party multiplies its own sum by its own sign. The peer's sign comes by a transfer for each direction: the peer
chooses y or −y. A transfer is prepared with the vector, before vector and table are known to be needed together: the
peer's choice is a coin, and the peer tells later if the coin was wrong (Beaver, CRYPTO 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crypto.blocks import Blocks
from crypto.circuit import Held
from crypto.encoding import Words, encode_words, expect_length
from crypto.hashing import BlockHash

_ONE = np.uint64(1)
_WORD_BYTES = 8


@dataclass(frozen=True)
class Prepared:
    """Prepared transfers of a batch, one for each vector and direction: uint64, shape (count,) each.

    zero, one:  masks of our messages; the peer knows one of them.
    coin:       our choices, uniform bits.
    chosen:     the peer's masks of our choices.
    """

    zero: Words = field(repr=False)
    one: Words = field(repr=False)
    coin: Words = field(repr=False)
    chosen: Words = field(repr=False)

    def __getitem__(self, part: slice) -> Prepared:
        return Prepared(self.zero[part], self.one[part], self.coin[part], self.chosen[part])


def concatenated(parts: Sequence[Prepared]) -> Prepared:
    """Return the transfers of several batches as one batch."""
    fields = ("zero", "one", "coin", "chosen")
    return Prepared(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def prepare(keys: tuple[bytes, bytes], offset: Words, coin: Words, q: Blocks, t: Blocks) -> Prepared:
    """Return prepared transfers from correlated transfers.

    keys:    fresh keys of the transfers that we send, and of those that the peer sends.
    offset:  our offset as a sender: shape (2,).
    coin:    our choice bits as a receiver: uint64, shape (count,).
    q, t:    our blocks as a sender and as a receiver: shape (count, 2).
    """
    ours, theirs = (BlockHash(key, 2 * len(coin)) for key in keys)
    zero, one = _first_words(ours, np.stack([q, q ^ offset]))
    (chosen,) = _first_words(theirs, t[None])
    return Prepared(zero, one, coin, chosen)


def _first_words(hashing: BlockHash, blocks: Blocks) -> Words:
    """Return the first word of the hash of each block; blocks, shape (rows, count, 2), of a column share a tweak."""
    hashed = hashing.hash(np.ascontiguousarray(blocks).reshape(len(blocks), -1))
    return hashed.reshape(blocks.shape)[..., 0].copy()


def signs_of(role: Held, vectors: Words) -> Words:
    """Return our shares of the signs of folded vectors, bits: the second bit of |u|, or of −|u| at the evaluator.

    vectors:  uint64, shape (count, words). Returns uint64, shape (count,).
    """
    ones = np.bitwise_count(vectors).sum(axis=1, dtype=np.uint64)
    number: Words = ones if role is Held.GARBLER else np.uint64(0) - ones
    return number >> _ONE & _ONE


class Signing:
    """Multiplication of a batch of sums by the signs of their vectors."""

    def __init__(self, role: Held, prepared: Prepared, signs: Words, width: int) -> None:
        """``signs``: our shares, from :func:`signs_of`. ``width``: bits of the products, at most 64."""
        self._role = role
        self._prepared = prepared
        self._signs = signs
        self._width = width
        self._octets = -(-width // 8)
        self._kept = np.zeros(len(signs), dtype=np.uint64)
        self.corrections = signs ^ prepared.coin
        """Bits for the peer: 1 where our coin is not our choice. Uniform."""

    def message(self, sums: Words, corrections: Words) -> bytes:
        """Return the message for the peer's choices.

        sums:         our inner products: uint64, shape (count,).
        corrections:  the peer's.
        """
        own = sums if self._role is Held.GARBLER else np.uint64(0) - sums
        own = np.where(self._signs == _ONE, np.uint64(0) - own, own)
        prepared, swapped = self._prepared, corrections == _ONE
        first = np.where(swapped, prepared.one, prepared.zero)
        second = np.where(swapped, prepared.zero, prepared.one)
        self._kept = own - first
        told = first - second - (own << _ONE)
        octets = np.frombuffer(encode_words(told), dtype=np.uint8).reshape(-1, _WORD_BYTES)
        return octets[:, : self._octets].tobytes()

    def shares(self, payload: bytes, peer: str, step: str) -> Words:
        """Return our shares of the products modulo 2**width, with the peer's message: uint64, shape (count,).

        Raises RemoteProtocolError for a message of a wrong length.
        """
        expect_length(payload, len(self._signs) * self._octets, peer, step)
        octets = np.zeros((len(self._signs), _WORD_BYTES), dtype=np.uint8)
        octets[:, : self._octets] = np.frombuffer(payload, dtype=np.uint8).reshape(-1, self._octets)
        told = octets.view("<u8").reshape(-1).astype(np.uint64)
        total: Words = self._kept + self._prepared.chosen + self._signs * told
        return total & np.uint64((1 << self._width) - 1)
