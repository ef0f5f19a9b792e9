"""Public tables looked up at shared indices: shares of x in, additive shares of T[x] out, for any table T.

A look-up uses up a unit vector e_r of :mod:`crypto.point_function`, made earlier at a point r unknown to both
parties. The parties open the uniform x − r. Turned by x − r, e_r becomes e_x, and T[x] is the inner product of e_x
with the table. Each party computes the inner product of its share, and the two turn their results into additive
shares of T[x] (:mod:`crypto.signs`), exact for any table. A unit vector also serves tables of a smaller power of two,
folded to their size.

Unit vectors are made in batches. The sizes follow from earlier look-ups, known to both parties.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby, zip_longest

import numpy as np
from blake3 import blake3

from crypto import engine
from crypto.batch import DIGEST_BYTES
from crypto.blocks import WORD_BITS
from crypto.encoding import Words, decode_bits, encode_bits, encode_words, expect_length, octets_of
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.inner_products import Places, folded, planes_of
from crypto.ot.extension import OtReceiver, OtSender
from crypto.point_function import (
    MAX_BITS,
    MIN_BITS,
    Transfers,
    UnitVectors,
    most_at_once,
    open_transfers,
    unit_vectors,
)
from crypto.rng import Rng
from crypto.rounds import Rounds, exchange
from crypto.signs import Signing, concatenated, signs_of

INDEX_BYTES = 4

SPARE = 64
"""Fewest spare unit vectors that are made beyond the missing vectors, if there is room."""

AHEAD = 1 << 12
"""Most spare unit vectors that are made because as many were made before. On a line of 20 ms and 100 Mbit/s their
bytes take as long as the rounds of a further making.
"""

_OPEN, _SIGN = "look_up/open", "look_up/sign"


class Tables:
    """Public tables of equal size, with all that follows from them.

    words:  2**width entries each, of at most 64 bits: uint64, shape (n_tables, 2**width).
    """

    def __init__(self, words: Words) -> None:
        self.words = words

    def __len__(self) -> int:
        return len(self.words)

    @property
    def size(self) -> int:
        """Entries of a table."""
        return int(self.words.shape[1])

    @cached_property
    def planes(self) -> Words:
        """Bit planes, for inner products."""
        return planes_of(self.words)

    @cached_property
    def digest(self) -> bytes:
        """Digest of the shape and the entries."""
        h = blake3(encode_words(np.array(self.words.shape, dtype=np.uint64)))
        h.update(octets_of(np.ascontiguousarray(self.words)))
        return h.digest()


@dataclass(frozen=True)
class Question:
    """Look-ups in tables of equal size.

    shares:  our shares of the indices, modulo the size: uint64, shape (count,).
    of:      number of the table of each index, public: shape (count,).
    """

    shares: Words = field(repr=False)
    tables: Tables = field(repr=False)
    of: Places = field(repr=False)

    def __len__(self) -> int:
        return len(self.shares)

    def __getitem__(self, part: slice) -> Question:
        return Question(self.shares[part], self.tables, self.of[part])

    @property
    def digest(self) -> bytes:
        """Digest of the public parts."""
        return blake3(self.tables.digest + encode_words(self.of.astype(np.uint64))).digest()


@dataclass(frozen=True)
class _Part:
    """Part of a question, in a batch.

    bits:    of its unit vectors.
    number:  of the question in its call.
    """

    bits: int
    number: int
    question: Question = field(repr=False)

    def __len__(self) -> int:
        return len(self.question)


@dataclass
class _Stock:
    """Unused unit vectors of one size.

    made:   number of vectors ever made.
    most:   the most vectors that a batch took.
    """

    held: list[UnitVectors] = field(default_factory=list, repr=False)
    made: int = 0
    most: int = 0

    @property
    def left(self) -> int:
        return sum(map(len, self.held))


class LookUps:
    """A party's side of all look-ups of a job, with the unit vectors in stock."""

    def __init__(self, forward: OtSender | OtReceiver, rng: Rng) -> None:
        """Set the sender or receiver.

        ``forward``: our end of the transfers that the garbler of the pair sends.
        """
        self.peer = forward.peer
        self._forward = forward
        self._rng = rng
        self._transfers: Transfers | None = None
        self._stocks: dict[int, _Stock] = {}
        self._calls = 0

    def __repr__(self) -> str:
        return f"LookUps(peer={self.peer!r}, <secret>)"

    def transfers(self) -> Rounds[Transfers]:
        """Return the transfers of both directions; open them the first time."""
        if self._transfers is None:
            self._transfers = yield from open_transfers(self._forward, self._rng)
        return self._transfers

    def start(self, *sizes: int) -> None:
        """Use unit vectors of 2**bits entries for these ``sizes`` (bits) from now on. A table takes the least that
        fit, or larger ones if that spares a making.
        """
        if not sizes or not MIN_BITS <= min(sizes) <= max(sizes) <= MAX_BITS:
            raise LocalProtocolError(f"no tables of 2**{sizes} entries are looked up")
        self._stocks = {bits: _Stock() for bits in sorted(set(sizes))}

    def look_up(self, questions: Sequence[Question], width: int) -> Rounds[list[Words]]:
        """Look up shared indices in public tables.

        Functionality:  additive shares of T[x] modulo 2**width for every index x and its table T.
        Input, each:    ``questions`` with our shares; all else is public and equal, ``width`` too, at most 64. No
                        table is larger than the largest unit vectors.
        Output, each:   shares of the entries of every question: uint64, shape (count,).
        Leakage:        the number of indices and their tables; x − r modulo the size of the unit vectors,
                        and a bit for every index, uniform.
        Rounds:         2 ("look_up/open", "look_up/sign") for every batch. A batch has up to
                        :func:`~crypto.point_function.most_at_once` indices of each size of unit vectors. If a
                        stock is too small, the rounds of :func:`~crypto.point_function.unit_vectors` come
                        first, and the first time the round of
                        :func:`~crypto.point_function.open_transfers`.
        Bytes:          sent by each: 16 an opening and, for n indices, 4 * n + ceil(n / 8) + n * ceil(width / 8),
                        and as there for new unit vectors. Made are the missing vectors and, if there is room,
                        the greatest of as many again, as many as were made before, at most AHEAD, and SPARE;
                        beside them, vectors of the sizes with fewer left than a batch took before.
        Assumes:        semi-honest parties; as there.
        Source:         one-time truth tables (Ishai et al., TCC 2013), with the table public, and the shift
                        shared as a unit vector, as in Doerner, Shelat (CCS 2017).

        Raises LocalProtocolError for impossible questions; RemoteProtocolError if the peer's questions differ, or
        its message has a wrong length or numbers that are too large.
        """
        if not 0 < width <= WORD_BITS:
            raise LocalProtocolError(f"entries of {width} bits")
        for question in questions:
            self._check(question)
        answers: list[list[Words]] = [[np.zeros(0, dtype=np.uint64)] for _ in questions]
        sizes = enumerate(zip(self._sizes(questions), questions, strict=True))
        numbered = [_Part(bits, number, each) for number, (bits, each) in sizes]
        of_sizes = (
            _batches([part for part in numbered if part.bits == bits], most_at_once(bits))
            for bits in self._stocks
        )
        for batches in zip_longest(*of_sizes, fillvalue=()):
            batch = list(chain.from_iterable(batches))
            told = yield from self._answered(batch, width)
            for part, words in zip(batch, told, strict=True):
                answers[part.number].append(words)
        return [np.concatenate(words) for words in answers]

    def _sizes(self, questions: Sequence[Question]) -> list[int]:
        """Return the bits of the unit vectors for each question: the least that fit, or larger ones if the stocks
        then suffice for all.
        """
        least = [next(bits for bits in self._stocks if each.tables.size <= 1 << bits) for each in questions]
        left = {bits: stock.left for bits, stock in self._stocks.items()}
        found = list[int]()
        for bits, question in zip(least, questions, strict=True):
            count = len(question)
            fitting = [each for each in left if each >= bits and left[each] >= count]
            if not fitting:
                return least
            left[fitting[0]] -= count
            found.append(fitting[0])
        return found

    def _answered(self, parts: Sequence[_Part], width: int) -> Rounds[list[Words]]:
        """Look up a batch, parts of a size one after the other. The batch takes no more unit vectors of a size than
        are made at once.
        """
        questions, ends = [part.question for part in parts], np.cumsum([len(part) for part in parts])
        transfers = yield from self.transfers()
        keys = yield from self._keys(transfers, parts)
        pairs = list(zip(questions, keys, strict=True))
        vectors = [folded(own.vectors, question.tables.size // WORD_BITS) for question, own in pairs]
        signs = np.concatenate([signs_of(transfers.role, own) for own in vectors])
        signing = Signing(transfers.role, concatenated([own.signs for own in keys]), signs, width)
        masks = np.concatenate([np.full(len(part), (1 << part.bits) - 1, dtype=np.uint64) for part in parts])
        moved = np.concatenate([question.shares - own.points for question, own in pairs])
        shifts, corrections = yield from self._opened(moved & masks, masks, signing, parts, width)
        products = engine.in_force().inner_products
        sums = [
            products(question.tables.planes, question.of, own, by)
            for question, own, by in zip(questions, vectors, np.split(shifts, ends[:-1]), strict=True)
        ]
        sent = signing.message(np.concatenate(sums), corrections)
        answers = signing.shares((yield from exchange(_SIGN, self.peer, sent)), self.peer, _SIGN)
        return np.split(answers, ends[:-1])

    def _check(self, question: Question) -> None:
        n_tables, size = len(question.tables), question.tables.size
        if not WORD_BITS <= size <= 1 << max(self._stocks, default=0) or size & (size - 1):
            raise LocalProtocolError(f"tables of {size} entries with unit vectors of 2**{[*self._stocks]}")
        if question.shares.shape != question.of.shape or question.shares.ndim != 1:
            raise LocalProtocolError(f"{question.shares.shape} indices in {question.of.shape} tables")
        if question.of.size and not 0 <= question.of.min() <= question.of.max() < n_tables:
            raise LocalProtocolError(f"an index of another table than the {n_tables} there are")

    def _keys(self, transfers: Transfers, parts: Sequence[_Part]) -> Rounds[list[UnitVectors]]:
        """Take unit vectors for every part."""
        counts = {bits: sum(map(len, same)) for bits, same in groupby(parts, lambda part: part.bits)}
        yield from self._make(transfers, counts)
        left = {bits: self._taken(bits, count) for bits, count in counts.items()}
        keys = list[UnitVectors]()
        for part in parts:
            keys.append(left[part.bits][: len(part)])
            left[part.bits] = left[part.bits][len(part) :]
        return keys

    def _taken(self, bits: int, count: int) -> UnitVectors:
        """Take unit vectors out of stock."""
        stock = self._stocks[bits]
        joined = _joined(stock.held)
        stock.held = [joined[count:]]
        stock.most = max(stock.most, count)
        return joined[:count]

    def _make(self, transfers: Transfers, counts: Mapping[int, int]) -> Rounds[None]:
        """Put unit vectors into stock if some are missing; ``counts``: of a batch, by bits."""
        missing = {bits: count - self._stocks[bits].left for bits, count in counts.items()}
        if max(missing.values()) <= 0:
            return
        wanted = dict[int, int]()
        for bits, stock in self._stocks.items():
            if (short := missing.get(bits, 0)) > 0:
                wanted[bits] = short + max(short, min(stock.made, AHEAD), SPARE)
            else:
                most = stock.most if stock.made else max(missing.values())
                wanted[bits] = counts.get(bits, 0) + most - stock.left
        some = {bits: min(most_at_once(bits), count) for bits, count in wanted.items() if count > 0}
        for bits, made in (yield from unit_vectors(transfers, some, self._rng)).items():
            self._stocks[bits].held.append(made)
            self._stocks[bits].made += len(made)

    def _opened(
        self, own: Words, masks: Words, signing: Signing, parts: Sequence[_Part], width: int
    ) -> Rounds[tuple[Words, Words]]:
        """Compare the public parts; open x − r of every index, and get the peer's corrections of its coins.

        masks:  the greatest number that an index can take: uint64, shape (count,).
        """
        self._calls += 1
        h = hashlib.sha256(
            b"jointcut/look_up" + self._forward.session_key + encode_words(np.array([self._calls, width]))
        )
        for part in parts:
            h.update(part.question.digest)
        digest = h.digest()[:DIGEST_BYTES]
        sent = own.astype("<u4").tobytes() + encode_bits(signing.corrections.astype(np.uint8))
        payload = yield from exchange(_OPEN, self.peer, digest + sent)
        end = DIGEST_BYTES + INDEX_BYTES * len(own)
        expect_length(payload, end + -(-len(own) // 8), self.peer, _OPEN)
        if payload[:DIGEST_BYTES] != digest:
            raise RemoteProtocolError(self.peer, _OPEN, "other look-ups: tables, or which of them, differ")
        theirs = np.frombuffer(payload[DIGEST_BYTES:end], dtype="<u4").astype(np.uint64)
        if (theirs > masks).any():
            raise RemoteProtocolError(self.peer, _OPEN, "a share that is too large")
        corrections = decode_bits(payload[end:], len(own), self.peer, _OPEN)
        return (own + theirs) & masks, corrections.astype(np.uint64)


def _batches(parts: Sequence[_Part], most: int) -> Iterator[list[_Part]]:
    """Cut look-ups of one size into batches of at most ``most`` indices."""
    room, batch = most, list[_Part]()
    for whole in parts:
        start = 0
        while start < len(whole):
            part = replace(whole, question=whole.question[start : start + room])
            batch.append(part)
            start, room = start + len(part), room - len(part)
            if not room:
                yield batch
                room, batch = most, []
    if batch:
        yield batch


def _joined(parts: Sequence[UnitVectors]) -> UnitVectors:
    if len(parts) == 1:
        return parts[0]
    points, vectors = ([getattr(part, name) for part in parts] for name in ("points", "vectors"))
    signs = concatenated([part.signs for part in parts])
    return UnitVectors(parts[0].bits, np.concatenate(points), np.concatenate(vectors), signs)
