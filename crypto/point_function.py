"""Shares of unit vectors at points unknown to both parties: distributed point functions with jointly made keys.

For every vector the parties end with XOR shares of e_r, 2^bits entries with a single 1 at number r, and additive
shares of r modulo 2^bits. The point r is uniform and unknown to both. Opening x − r for a shared x turns e_r into
e_x (:mod:`crypto.lookup`).

Each vector is a tree grown by both parties, each from a separate root: the half-tree of Guo et al. (EUROCRYPT
2023). A node s has the children H(s) and H(s) ⊕ s, and each child gets the level's correction C added if the lowest
bit of s is 1. The roots differ by Δ = Δ_0 ⊕ Δ_1; each party knows its part, and the lowest bit of Δ is 1. For the
nodes s and s ⊕ Δ on the path, let C = H(s) ⊕ H(s ⊕ Δ) ⊕ (1 ⊕ a)·Δ, where a is the bit of r at this level. Then the
parties' nodes differ by Δ on the path to r and are equal everywhere else. No party knows the path. Yet each party
can add up its part of C, since the hashes of a whole level cancel off the path (Doerner, Shelat, CCS 2017). Shares
of a·Δ = (a_0 ⊕ a_1)·(Δ_0 ⊕ Δ_1) come from a correlated transfer in each direction.

The tree of the high bits ends at leaves of 128 bits. The differing leaf is to hold the unit vector of the seven low
bits. Three of these have a separate tree, with leaves of 16 bits. There the differing leaf is to hold the unit vector
of the four lowest bits, which the parties have from transfers (:mod:`crypto.small_vectors`). Both trees grow side by
side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

from crypto import engine
from crypto.blocks import BLOCK_BYTES, Blocks, decode_blocks, encode_blocks
from crypto.circuit import Bits, Held
from crypto.encoding import Words, expect_length
from crypto.errors import LocalProtocolError
from crypto.hashing import BlockHash, derive_key
from crypto.ot.extension import (
    CHUNK,
    OtReceiver,
    OtSender,
    correlated_receive,
    correlated_send,
    reverse_receiver,
    reverse_sender,
)
from crypto.rng import Rng
from crypto.rounds import Rounds, exchange
from crypto.signs import Prepared, prepare
from crypto.small_vectors import SMALL_BITS, SmallReceiver, SmallSender
from crypto.trees import NODES_AT_ONCE

LOW_BITS = 7
"""Low bits of a point: they select a bit of a leaf."""

MIN_BITS, MAX_BITS = LOW_BITS, 20
"""Bits of a point: at least a leaf; above the maximum, a vector has megabytes."""

BATCH_BYTES = 1 << 25
"""Maximum memory for the vectors of a batch; while the batch is made, about four times as much is in use."""

_ENTRIES_A_GATE = 256
"""Entries of unit vectors for which compiling saves as much time as for an AND gate."""

_LOW_LEVELS = LOW_BITS - SMALL_BITS
_LEVEL, _LEAVES = "point_function/level", "point_function/leaves"
_ONE = np.uint64(1)


class Transfers:
    """A party's ends of the transfers of both directions.

    role:    Held.GARBLER or Held.EVALUATOR; the garbler sends in the direction that was set up first.
    offset:  our part of Δ.
    """

    def __init__(self, role: Held, sending: OtSender, receiving: OtReceiver) -> None:
        self.role = role
        self.peer = sending.peer
        self.offset = sending.delta
        self._sending = sending
        self._receiving = receiving

    def __repr__(self) -> str:
        return f"Transfers(peer={self.peer!r}, <secret>)"

    def key(self, purpose: bytes) -> bytes:
        """Return a fresh key that both parties derive; both make these calls in the same order."""
        first = self._sending if self.role is Held.GARBLER else self._receiving
        return derive_key(first.session_key, b"point_function", purpose, first.next_number())

    def keys_of_directions(self, purpose: bytes) -> tuple[bytes, bytes]:
        """Return fresh keys, as :meth:`key`: of the transfers that we send, and of those that the peer sends."""
        first, second = self.key(purpose), self.key(purpose)
        return (first, second) if self.role is Held.GARBLER else (second, first)

    def products(self, bits: Words) -> Rounds[tuple[Blocks, Blocks]]:
        """Run transfers in both directions at once, one for each of our bits and one for each of the peer's.

        Returns our blocks as a sender q and as a receiver t, shape (count, 2): q here and t there differ by the
        offset of the sender where the bit of the receiver is 1.
        """
        t = yield from self.choose(bits.astype(np.uint8))
        q = yield from self.offer(len(bits))
        return q, t

    def choose(self, bits: Bits) -> Rounds[Blocks]:
        """Run transfers that the peer sends; return our blocks t of :meth:`products`, shape (count, 2)."""
        return correlated_receive(self._receiving, bits)

    def offer(self, count: int) -> Rounds[Blocks]:
        """Run transfers that we send; return our blocks q of :meth:`products`, shape (count, 2)."""
        return correlated_send(self._sending, count)


def open_transfers(forward: OtSender | OtReceiver, rng: Rng) -> Rounds[Transfers]:
    """Set up the missing direction: the evaluator sends, the garbler receives.

    Functionality:  as :func:`crypto.ot.extension.reverse_sender`, run by the evaluator.
    Input:          ``forward``: our end of the transfers that the garbler sends.
    Output:         :class:`Transfers`.
    Leakage:        none.
    Rounds:         1 ("ot/begin" and "ot/extend" from the evaluator).
    Bytes:          as :func:`crypto.ot.extension.random_send` for 128, from the evaluator.
    Assumes:        as there.
    Source:         as there.

    Raises as there.
    """
    if isinstance(forward, OtSender):
        return Transfers(Held.GARBLER, forward, (yield from reverse_receiver(forward)))
    return Transfers(Held.EVALUATOR, (yield from reverse_sender(forward, rng)), forward)


@dataclass(frozen=True)
class UnitVectors:
    """Our shares of unit vectors.

    points:   shares, modulo 2**bits, of the places of the 1 entries: uint64, shape (count,).
    vectors:  XOR shares; bit i mod 64 of word i // 64 is entry i: uint64, shape (count, 2**bits / 64).
    signs:    prepared transfers for the signs of inner products (:mod:`crypto.signs`).
    """

    bits: int
    points: Words = field(repr=False)
    vectors: Words = field(repr=False)
    signs: Prepared = field(repr=False)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, part: slice) -> UnitVectors:
        return UnitVectors(self.bits, self.points[part], self.vectors[part], self.signs[part])


def most_at_once(bits: int) -> int:
    """Return the maximum number of vectors in a batch."""
    return max(1, min(CHUNK // (bits + 1), 8 * BATCH_BYTES >> bits))


def unit_vectors(transfers: Transfers, counts: Mapping[int, int], rng: Rng) -> Rounds[dict[int, UnitVectors]]:
    """Make shares of unit vectors, each at a uniform point unknown to both parties: several sizes side by side.

    Functionality:  for every vector, a uniform r modulo 2**bits; additive shares of r and XOR shares of the unit
                    vector to the two; a transfer of random words with a random choice in each direction.
    Input:          counts: numbers of vectors by bits, public.
    Output:         :class:`UnitVectors` by bits.
    Leakage:        none.
    Rounds:         2 + max(bits − 7, 4) of the largest size: transfers in both directions, a level in each, the
                    leaves.
    Bytes:          sent by each, the transfers of Σ count * (bits + 1) as
                    :func:`crypto.ot.extension.correlated_send`; for each size, 16 * count for every level of
                    either tree, bits − 4 in all, and 18 * count for the leaves; count * :func:`point_bytes` more by
                    the garbler, 30 * count by the evaluator.
    Assumes:        semi-honest parties; private authenticated channels; AES-128 an ideal cipher, a PRG; a
                    party that deviates in the transfers is stopped as stated there.
    Source:         Guo et al. (EUROCRYPT 2023), with a tree and transfers for the low bits; the sums over a level:
                    Doerner, Shelat (CCS 2017); additive shares of the points: Gilboa (CRYPTO 1999); transfers
                    made in advance: Beaver (CRYPTO 1995).
                    Argument: docs/proofs.md.

    Raises LocalProtocolError for impossible bits or an impossible count, RemoteProtocolError for messages of a
    wrong length, and as the transfers do.
    """
    for bits, count in counts.items():
        if not MIN_BITS <= bits <= MAX_BITS or not 1 <= count <= most_at_once(bits):
            raise LocalProtocolError(f"no batch has {count} unit vectors of 2**{bits} entries")
    engine.begin(sum(count << bits for bits, count in counts.items()) // _ENTRIES_A_GATE)
    sizes = sorted(counts.items())
    coins = [_coins(rng, (bits + 1) * count).reshape(bits + 1, count) for bits, count in sizes]
    both = yield from transfers.products(np.concatenate([each.reshape(-1) for each in coins]))
    ends = np.cumsum([each.size for each in coins])[:-1]
    products = zip(*(np.split(blocks, ends) for blocks in both), strict=True)
    batches = [_Batch(transfers, each, *blocks) for each, blocks in zip(coins, products, strict=True)]
    for level in range(max(batch.levels for batch in batches)):
        own = [batch.sums(level) for batch in batches]
        more = [extra for batch in batches for extra in batch.beside(level)]
        theirs = yield from _exchanged(transfers.peer, _LEVEL, own, more)
        for batch, mine, blocks in zip(batches, own, theirs, strict=True):
            batch.grow(level, mine ^ blocks)
    own, multiplied = [batch.leaves() for batch in batches], [batch.multiplied() for batch in batches]
    theirs = yield from _exchanged(transfers.peer, _LEAVES, own, multiplied)
    ended = zip(batches, own, theirs, multiplied, strict=True)
    return {batch.bits: batch.vectors(mine ^ blocks, each.points()) for batch, mine, blocks, each in ended}


class _Batch:
    """A party's side of unit vectors of one size, while their trees grow."""

    def __init__(self, transfers: Transfers, coins: Words, q: Blocks, t: Blocks) -> None:
        """Set the roots.

        coins:  bits of the points and the coin of the sign, shape (bits + 1, count).
        q, t:   of the coins, from :meth:`Transfers.products`.
        """
        rows, self._count = coins.shape
        self.bits: int = rows - 1
        self._transfers = transfers
        (self._q, self._own_q), (self._t, self._own_t) = (
            (blocks[: self.bits], blocks[self.bits])
            for blocks in (each.reshape(rows, self._count, 2) for each in (q, t))
        )
        self._path, self._coin = coins[: self.bits], coins[self.bits]
        # of (1 ⊕ a)·Δ, for every bit a of every point
        self._shares = self._q ^ self._t ^ (self._path ^ _ONE)[..., None] * transfers.offset
        self._small = self._small_vectors()
        hashing = BlockHash(transfers.key(b"nodes"), NODES_AT_ONCE)
        taken_bits = range(SMALL_BITS, LOW_BITS), range(LOW_BITS, self.bits)
        make = engine.in_force().trees
        self._low, self._high = (
            make(transfers.offset, self._count, len(taken), hashing) for taken in taken_bits
        )
        self._levels = list(zip((self._low, self._high), taken_bits, strict=True))

    def _small_vectors(self) -> SmallSender | SmallReceiver:
        """Return the unit vectors of the lowest bits; the evaluator is the sender."""
        key, bits = self._transfers.key(b"small"), self._path[:SMALL_BITS]
        if self._transfers.role is Held.GARBLER:
            return SmallReceiver(key, bits, self._t[:SMALL_BITS])
        return SmallSender(key, bits, self._q[:SMALL_BITS], self._transfers.offset)

    @property
    def levels(self) -> int:
        """Rounds of levels: of the high tree, or of the low tree and its leaves."""
        return max(self.bits - LOW_BITS, _LOW_LEVELS + 1)

    def beside(self, level: int) -> Sequence[_Extra]:
        """Return what is exchanged beside the corrections of a level: small vectors, corrections of low leaves."""
        if level == 0:
            return [self._small]
        if level == _LOW_LEVELS:
            self._low_leaves = _LowLeaves(self._low, self._small.vectors)
            return [self._low_leaves]
        return []

    def sums(self, level: int) -> Blocks:
        """Return our parts of the corrections of a level, shape (n_trees, count, 2), one for each tree that grows."""
        sums = [
            trees.sum() ^ self._shares[taken[level]] for trees, taken in self._levels if level < len(taken)
        ]
        return np.array(sums, dtype=np.uint64).reshape(-1, self._count, 2)

    def grow(self, level: int, corrections: Blocks) -> None:
        """Grow the trees by a level."""
        growing = [trees for trees, taken in self._levels if level < len(taken)]
        for trees, correction in zip(growing, corrections, strict=True):
            trees.grow(correction)

    def leaves(self) -> Blocks:
        """Return our parts of the corrections of the leaves, shape (count, 2)."""
        return self._high.sum() ^ self._low_leaves.vectors

    def multiplied(self) -> _Multiplied:
        """Return the additive shares of the points, to be made with the peer's message."""
        return _Multiplied(self._transfers, self._path, self._q, self._t)

    def vectors(self, corrections: Blocks, points: Words) -> UnitVectors:
        """Return our shares, with the corrections of the leaves."""
        keys = self._transfers.keys_of_directions(b"signs")
        signs = prepare(keys, self._transfers.offset, self._coin, self._own_q, self._own_t)
        return UnitVectors(self.bits, points, self._high.vectors(corrections), signs)


class _Extra(Protocol):
    """Part of a message beside the corrections. sent: our bytes; expected: number of the peer's."""

    @property
    def sent(self) -> bytes: ...

    @property
    def expected(self) -> int: ...

    def take(self, payload: bytes) -> None:
        """Take the peer's bytes, as many as expected."""


class _LowLeaves:
    """Corrections of the leaves of low trees, of 16 bits each.

    vectors:  our shares of the unit vectors of the low bits, after :meth:`take`: shape (count, 2).
    """

    def __init__(self, trees: engine.Trees, small: Words) -> None:
        self._trees = trees
        self._own = (trees.sum()[:, 0] ^ small).astype("<u2")
        self.sent, self.expected = self._own.tobytes(), self._own.nbytes
        self.vectors: Blocks

    def take(self, payload: bytes) -> None:
        corrections = np.zeros((len(self._own), 2), dtype=np.uint64)
        corrections[:, 0] = self._own ^ np.frombuffer(payload, dtype="<u2")
        leaves = self._trees.vectors(corrections)[:, 0::2].astype("<u2")
        self.vectors = np.ascontiguousarray(leaves).view("<u8").astype(np.uint64)


def _exchanged(
    peer: str, step: str, own: Sequence[Blocks], extra: Sequence[_Extra] = ()
) -> Rounds[list[Blocks]]:
    """Exchange parts of corrections, and what ``extra`` has to send, with the peer; return the peer's parts."""
    sent = [encode_blocks(blocks) for blocks in own] + [each.sent for each in extra]
    payload = yield from exchange(step, peer, b"".join(sent))
    sizes = [blocks.nbytes for blocks in own] + [each.expected for each in extra]
    expect_length(payload, sum(sizes), peer, step)
    ends = np.cumsum([0, *sizes]).tolist()
    parts = [payload[start:end] for start, end in pairwise(ends)]
    for each, part in zip(extra, parts[len(own) :], strict=True):
        each.take(part)
    theirs = zip(own, parts, strict=False)
    return [
        decode_blocks(part, len(part) // BLOCK_BYTES, peer, step).reshape(of.shape) for of, part in theirs
    ]


def point_bytes(bits: int) -> int:
    """Return the bytes of the products for a point of ``bits`` bits."""
    return sum(_product_bytes(bits))


def _product_bytes(bits: int) -> list[int]:
    """Return the bytes of the product for each bit of a point."""
    return [-(-(bits - 1 - i) // 8) for i in range(bits)]


def _packed(words: Words) -> bytes:
    """Encode the products, shape (bits, count), each in the low bytes that count."""
    octets = words.astype("<u4").view(np.uint8).reshape(*words.shape, -1)
    return b"".join(row[:, :n].tobytes() for row, n in zip(octets, _product_bytes(len(words)), strict=True))


def _unpacked(payload: bytes, shape: tuple[int, int]) -> Words:
    """Return the products of :func:`_packed`."""
    bits, count = shape
    octets, start = np.zeros((bits, count, 4), dtype=np.uint8), 0
    for row, n in zip(octets, _product_bytes(bits), strict=True):
        end = start + n * count
        row[:, :n] = np.frombuffer(payload[start:end], dtype=np.uint8).reshape(count, n)
        start = end
    return octets.view("<u4")[..., 0].astype(np.uint64)


def _coins(rng: Rng, count: int) -> Words:
    """Draw uniform bits, a bit per word."""
    octets = np.frombuffer(rng.bytes(-(-count // 8)), dtype=np.uint8)
    return np.unpackbits(octets, count=count, bitorder="little").astype(np.uint64)


class _Multiplied:
    """Additive shares of points from XOR shares of their bits: a + b − 2ab, a of the garbler, b of the evaluator.

    The product of the garbler's and the evaluator's bit comes from the garbler's transfers, whose hashes mask the
    product. Bit i of a point of n bits counts 2 · 2^i modulo 2^n, so its product is sent modulo 2^(n − 1 − i).
    """

    def __init__(self, transfers: Transfers, path: Words, q: Blocks, t: Blocks) -> None:
        """Set the bits and blocks.

        path: our bits, lowest first, shape (bits, count); q, t: from :meth:`Transfers.products`.
        """
        bits, count = path.shape
        self._bits = bits
        self._path = path
        self._leads = transfers.role is Held.GARBLER
        self._weights = (_ONE << np.arange(bits, dtype=np.uint64))[:, None]
        hashing = BlockHash(transfers.key(b"points"), 2 * count * bits)
        blocks = np.stack([q, q ^ transfers.offset]) if self._leads else t[None]
        hashed = hashing.hash(blocks.reshape(len(blocks), -1)).reshape(-1, bits, count, 2)[..., 0]
        self._products = hashed[0].copy()
        self.sent, self.expected = b"", count * point_bytes(bits)
        if self._leads:
            self.sent = _packed(path + (hashed[0] - hashed[1]))
            self.expected = 0

    def take(self, payload: bytes) -> None:
        """Take the peer's message, of the length expected."""
        if not self._leads:
            self._products = np.uint64(0) - (
                self._products + self._path * _unpacked(payload, self._path.shape)
            )

    def points(self) -> Words:
        """Return our shares."""
        own = self._weights * (self._path + (self._products << _ONE))
        total: Words = own.sum(axis=0, dtype=np.uint64) & np.uint64((1 << self._bits) - 1)
        return total
