"""An oblivious pseudo-random function: tags of a receiver's identifiers under a sender's key, both hidden.

As in Pinkas, Rosulek, Trieu, Yanai, *PSI from PaXoS* (EUROCRYPT 2020), with the table of :mod:`crypto.okvs`. The
receiver puts a hash h(x) of each of its identifiers x into a table and chooses the rows of the table in wide
transfers (:mod:`crypto.ot.wide`). Let q(x) and t(x) be the sums of the sender's and the receiver's rows selected by
x: t(x) = q(x) ⊕ C(v)·Δ if the table maps x to v. The tag of x is the hash of x and q(x) ⊕ C(h(x))·Δ. The sender can
compute the tag for any x. If v = h(x), the tag is the hash of x and t(x); for any other x the receiver misses 172
bits.

Identifiers are spread over bins by their hash. Each bin has a table and a message, always as long as for a full
bin. So memory does not grow with the tables, and no message shows the number of identifiers in a bin.

The hash has a key of the run, equal for all its functions. So a party hashes its identifiers once, and reads any
number of functions from the same tables (:class:`Identifiers`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from crypto import engine, okvs
from crypto.blocks import Octets, add_products, tables_of
from crypto.encoding import WORD, Words
from crypto.errors import LocalProtocolError
from crypto.hashing import derive_key
from crypto.okvs import Keys
from crypto.ot import code
from crypto.ot.wide import (
    Choices,
    WideReceiver,
    WideSender,
    setup_wide_first,
    setup_wide_receiver,
    setup_wide_second,
    setup_wide_sender,
)
from crypto.pieces import slices
from crypto.rng import Rng
from crypto.rounds import Round, Rounds, receive, send
from crypto.tags import TAG_WORDS, Tags

BIN = 1 << 15
"""Identifiers of a bin, on average, at most."""
STEPS = ("ot/base/offer", "ot/base/answer", *("ot/begin", "ot/extend") * 3, "oprf/table")
"""Steps of a run, in order. A receiver with many identifiers sends several tables. A single function has a single
"ot/begin" and "ot/extend".
"""

_TABLE = STEPS[-1]
_HASH_BYTES, _TAG_BYTES = 32, 16
_DIGESTS_A_GATE = 4
"""Digests that make compiling pay as much as an AND gate of a circuit does."""
_SPILL_BITS = 42
"""Some bin overflows with probability at most 2**-_SPILL_BITS."""
_PIECE = 1 << 15
"""Number of identifiers of the sender processed at a time."""

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shape:
    """The layout of the receiver's identifiers; a function of their number."""

    bins: int
    capacity: int

    @staticmethod
    def of(count: int) -> Shape:
        """Return the shape for a receiver with ``count`` ≥ 1 identifiers.

        A bin's load X has a binomial law of mean μ, and P(X ≥ μ + t) ≤ exp(−t² / (2 (μ + t/3))) (Bernstein). With
        t = a + sqrt(a² + 2 μ ln B), a = ln(B) / 3, the bound is 1 / B; B is 2**42 times the bins.
        """
        bins = -(-count // BIN)
        if bins == 1:
            return Shape(1, count)
        mean = -(-count // bins)
        # ln 2 < 0.6932, in integers, so that both sides get equal results.
        log = -(-6932 * (_SPILL_BITS + bins.bit_length()) // 10_000)
        slack = -(-log // 3) + 1 + math.isqrt((log // 3 + 1) ** 2 + 2 * mean * log)
        return Shape(bins, mean + slack)

    @property
    def third(self) -> int:
        return okvs.third_for(self.capacity)

    @property
    def rows(self) -> int:
        return okvs.rows_for(self.third)


@dataclass(frozen=True, slots=True)
class Hashed:
    """Hashes of identifiers, of 32 bytes: uint64, shape (n, 4).

    Of the 256 bits 32 choose the bin, 3 · 32 the places, 40 the dense rows, 76 are the value; 12 are left over.
    """

    words: Words

    def spread(self, bins: int) -> list[Numbers]:
        """Return, for each bin, the numbers of its hashes."""
        chosen = (self.words[:, 0] & _LOW) * np.uint64(bins) >> _HALF
        chosen = chosen.astype(np.min_scalar_type(bins))  # NumPy sorts small numbers faster
        order = np.argsort(chosen, kind="stable")
        ends = np.cumsum(np.bincount(chosen, minlength=bins))
        return np.split(order, ends[:-1])

    def by_bin(self, shape: Shape) -> Iterator[tuple[Hashed, Numbers]]:
        """Yield, bin after bin, the hashes in the bin and their numbers."""
        for numbers in self.spread(shape.bins):
            yield Hashed(self.words[numbers]), numbers

    def keys(self, shape: Shape) -> Keys:
        first, second = self.words[:, 0], self.words[:, 1]
        coins = np.stack([first >> _HALF, second & _LOW, second >> _HALF], axis=1)
        return okvs.keys_of(coins, self._octets()[:, 27:], shape.third)

    def values(self) -> Words:
        """Return the 76 bits of each value in a table: uint64, shape (n, 2)."""
        kept = np.uint64((1 << code.DIMENSION - 64) - 1)
        return np.stack([self.words[:, 2], self.words[:, 3] & kept], axis=1)

    def value_octets(self) -> Octets:
        """Return the values in bytes: uint8, shape (n, 10)."""
        return np.ascontiguousarray(self.values(), dtype="<u8").view(np.uint8)[:, : -(-code.DIMENSION // 8)]

    def _octets(self) -> Octets:
        return np.ascontiguousarray(self.words, dtype="<u8").view(np.uint8)


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of a party's identifiers, in a table that any number of sessions transfer.

    numbers:  the numbers of the identifiers; int64, shape (n,).
    """

    hashed: Hashed
    numbers: Numbers
    keys: Keys
    choices: Choices


class Identifiers:
    """A party's identifiers in a run, hashed once and put into tables once for all functions that the party reads.

    hashed:  the hashes, in the order of the identifiers.
    shape:   of the party's tables.
    """

    def __init__(self, ids: Sequence[bytes], key: bytes) -> None:
        """Hash.

        ids:  at least one, different byte strings.
        key:  equal for all parties of the run, and unknown to all before the run.
        """
        self.hashed = _hash_ids(ids, key)
        self.shape = Shape.of(len(ids))
        self._spread: list[Numbers] = []
        self._latest: tuple[int, Bin] | None = None

    def __len__(self) -> int:
        return len(self.hashed.words)

    def __repr__(self) -> str:
        return "Identifiers(<secret>)"

    def bin(self, number: int) -> Bin:
        """Return a bin. The latest is kept: sessions abreast ask for a bin one after the other.

        Raises LocalProtocolError if the hashes do not fit into a table.
        """
        if self._latest is None or self._latest[0] != number:
            self._latest = None  # before the next is made: never two in memory
            self._latest = number, self._fill(number)
        return self._latest[1]

    def _fill(self, number: int) -> Bin:
        self._spread = self._spread or self.hashed.spread(self.shape.bins)
        numbers = self._spread[number]
        hashed = Hashed(self.hashed.words[numbers])
        keys = hashed.keys(self.shape)
        table = okvs.encode(keys, hashed.values()) if len(numbers) <= self.shape.capacity else None
        if table is None:
            raise LocalProtocolError("the hashes of the identifiers do not fit; another run has others")
        return Bin(hashed, numbers, keys, Choices.of(table))


def oprf_receive(me: str, peer: str, own: Identifiers, rng: Rng) -> Rounds[Tags]:
    """Return the tags of our identifiers under the peer's key; the peer calls :func:`oprf_send`.

    Functionality:  a random function F; F(x) for every identifier x in ``own`` to the receiver, F to the
                    sender.
    Input:          receiver: ``own``; sender: their number, and ``own`` of the sender, which stay with the
                    sender. The names and the key of the hashes are public and equal.
    Output:         F of the party's own identifiers: uint64, shape (n, 2).
    Leakage:        only the number of the receiver's identifiers.
    Rounds:         4 ("ot/base/offer" from the sender, "ot/base/answer" from the receiver, "ot/begin" and
                    "ot/extend" from the sender, "oprf/table" from the receiver, a message a bin).
    Bytes:          6,792 by the sender; 4,096 by the receiver and, for every bin, 4,096 * w + 2,464, w
                    being ceil(rows / 64) + 4 made even and rows = 3 * ceil(13 * capacity / 30) + 64. Up to
                    2**15 identifiers are a single bin with their number as capacity; for more, a bin holds
                    up to 1,600 more than the mean.
    Assumes:        as :func:`crypto.ot.wide.setup_wide_sender`; BLAKE2b a random oracle. A receiver that
                    deviates gets tags of about as many identifiers as its tables have rows, and no more
                    (docs/proofs.md); a sender that deviates learns nothing of the receiver's identifiers.
    Source:         Pinkas, Rosulek, Trieu, Yanai (EUROCRYPT 2020), section 6; transfers: Orrù, Orsini,
                    Scholl (2017).

    Raises LocalProtocolError if the hashes do not fit into the tables: probability below 2**-40; the sender then
    sees the run end. Raises RemoteProtocolError for a malformed message of the peer.
    """
    wide = yield from setup_wide_receiver(me, peer, own.shape.rows, rng)
    reading = _Reading(wide, own)
    for number in range(own.shape.bins):
        yield from send(_TABLE, {peer: reading.ask(number)})
        reading.tag()
    return reading.tags


def oprf_send(me: str, peer: str, own: Identifiers, receivers: int, rng: Rng) -> Rounds[Tags]:
    """Return the tags of our identifiers under our fresh key; see :func:`oprf_receive`.

    receivers:  number of the peer's identifiers, at least 1.

    Raises RemoteProtocolError for a malformed message of the peer, and if the peer's choices fail the check.
    """
    shape = Shape.of(receivers)
    wide = yield from setup_wide_sender(me, peer, shape.rows, rng)
    giving = _Giving(wide, own, shape)
    for number in range(shape.bins):
        payload = yield from receive(_TABLE, peer)
        giving.tag(number, payload)
    return giving.tags


def oprf_first(me: str, peer: str, own: Identifiers, theirs: int, rng: Rng) -> Rounds[tuple[Tags, Tags]]:
    """Return the tags of our identifiers under our fresh key, and under the peer's; the peer calls
    :func:`oprf_second`.

    theirs:  number of the peer's identifiers, at least 1.

    Two functions, as :func:`oprf_receive` and :func:`oprf_send`, with one set of base transfers.

    Rounds: 5, as :func:`crypto.ot.wide.setup_wide_first`, then "oprf/table" from both. Bytes: as there, and the
    tables of :func:`oprf_receive` by both.
    """
    shape = Shape.of(theirs)
    wide = yield from setup_wide_first(me, peer, (shape.rows, own.shape.rows), rng)
    return (yield from _give_and_read(wide, own, shape))


def oprf_second(me: str, peer: str, own: Identifiers, theirs: int, rng: Rng) -> Rounds[tuple[Tags, Tags]]:
    """Return the tags of our identifiers under our fresh key, and under the peer's; see :func:`oprf_first`."""
    shape = Shape.of(theirs)
    wide = yield from setup_wide_second(me, peer, (shape.rows, own.shape.rows), rng)
    return (yield from _give_and_read(wide, own, shape))


def _give_and_read(
    wide: tuple[WideSender, WideReceiver], own: Identifiers, shape: Shape
) -> Rounds[tuple[Tags, Tags]]:
    """Send our tables and receive the peer's, of ``shape``, one of each a round."""
    sender, receiver = wide
    giving, reading = _Giving(sender, own, shape), _Reading(receiver, own)
    for number in range(max(own.shape.bins, shape.bins)):
        asks, is_asked = number < own.shape.bins, number < shape.bins
        outgoing = {receiver.peer: reading.ask(number)} if asks else {}
        inbox = yield Round(_TABLE, outgoing, frozenset((sender.peer,)) if is_asked else frozenset())
        if asks:
            reading.tag()
        if is_asked:
            giving.tag(number, inbox[sender.peer])
    return giving.tags, reading.tags


class _Reading:
    """The receiver of a function.

    tags:  of its own identifiers under the peer's key, bin after bin.
    """

    def __init__(self, wide: WideReceiver, own: Identifiers) -> None:
        self._wide, self._own = wide, own
        self._tagging = _Tagging(wide.session_key, len(own))
        self.tags = np.empty((len(own), TAG_WORDS), dtype=np.uint64)
        self._part: Bin
        self._rows: Words

    def ask(self, number: int) -> bytes:
        """Return the message that reads a bin."""
        self._part = self._own.bin(number)
        payload, self._rows = self._wide.extend(self._part.choices)
        return payload

    def tag(self) -> None:
        """Fill in the tags of the bin asked for."""
        sums = okvs.decode(self._rows, self._part.keys)
        self.tags[self._part.numbers] = self._tagging.of(self._part.hashed, sums)


class _Giving:
    """The sender of a function.

    tags:  of its own identifiers under its own key, bin after bin.
    """

    def __init__(self, wide: WideSender, own: Identifiers, shape: Shape) -> None:
        """Take the receiver's tables, of ``shape``."""
        self._wide, self._hashed, self._shape = wide, own.hashed, shape
        self._tagging = _Tagging(wide.session_key, len(own))
        self._masked_code = tables_of(code.generator() & wide.delta)
        self._bins = own.hashed.spread(shape.bins)
        self.tags = np.empty((len(own), TAG_WORDS), dtype=np.uint64)

    def tag(self, number: int, payload: bytes) -> None:
        """Fill in the tags of a bin from the receiver's message."""
        rows = self._wide.extend(payload, self._shape.rows, _TABLE)
        numbers = self._bins[number]
        for piece in slices(len(numbers), _PIECE):
            part = Hashed(self._hashed.words[numbers[piece]])
            sums = okvs.decode(rows, part.keys(self._shape))
            add_products(sums, self._masked_code, part.value_octets())
            self.tags[numbers[piece]] = self._tagging.of(part, sums)


class _Tagging:
    """The hash of a session that turns identifiers and sums of rows into tags."""

    def __init__(self, session_key: bytes, count: int) -> None:
        """Set the key.

        count:  number of identifiers to come.
        """
        engine.begin(count // _DIGESTS_A_GATE)
        self._prefix = np.frombuffer(derive_key(session_key, b"oprf/tag"), dtype="<u8").astype(np.uint64)

    def of(self, hashed: Hashed, sums: Words) -> Tags:
        """Return the tags, uint64, shape (n, 2), of sums of shape (n, 8). Hashes of identifiers stand for the
        identifiers.
        """
        prefix = np.broadcast_to(self._prefix, (len(sums), len(self._prefix)))
        joined = np.concatenate([prefix, hashed.words, sums], axis=1)
        return engine.in_force().digests(joined.astype("<u8", copy=False).view(np.uint8), _TAG_BYTES)


def _hash_ids(ids: Sequence[bytes], key: bytes) -> Hashed:
    """Hash identifiers under a key unknown to all before the run."""
    engine.begin(len(ids) // _DIGESTS_A_GATE)
    parts = [_hash_texts(key, ids[piece]) for piece in slices(len(ids), _PIECE)]
    return Hashed(np.concatenate([np.empty((0, _HASH_BYTES // WORD), np.uint64), *parts]))


def _hash_texts(prefix: bytes, ids: Sequence[bytes]) -> Words:
    """Return the digests of prefix and identifier; identifiers of the same length are hashed together."""
    texts = np.frombuffer(prefix.join([b"", *ids]), dtype=np.uint8)
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids)) + len(prefix)
    starts = np.cumsum(lengths) - lengths
    hashes = np.empty((len(ids), _HASH_BYTES // WORD), dtype=np.uint64)
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        numbers = np.flatnonzero(lengths == length)
        rows = sliding_window_view(texts, length)[starts[numbers]]
        hashes[numbers] = engine.in_force().digests(rows, _HASH_BYTES)
    return hashes
