"""Inference by exclusion: nobody is at two places at once (semantics of sequences; not in [T] chapter 4).

Somebody who knows items of a person and finds no record with all of them can still discard every record with another
place at one of the times. The remaining records are the *candidates* of the known sequence: each has every item, or
nothing at its time. [T] 4.1 promises 1/K by counting records with the whole sequence. A record that lost an item is
not counted, so a reader who knows the item can get below K, or above C, by discarding.

The module finds the sequences that lost an item in some record and whose candidates violate the requirement.
The search needs the paths before suppression, known only to their owner. It assumes that no record of the
table is at two places at the same time: otherwise readers cannot discard any record. Sets and places without
times have no such exclusion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools
from anonymize.errors import PrivacyError
from anonymize.table import Ints, pack, tally
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Items, Paths, collapsed, ends_by_item, lost
from anonymize.trajectory.requirement import Bounds

Words = NDArray[np.uint64]
_SEQUENCES_AT_ONCE = 1 << 20
_WORDS_AT_ONCE = 1 << 19
_WORD = 64
_COUNTED = 1 << 17
_COUNTED_AT_ONCE = 1 << 12
_CHOSEN_AT_ONCE = 1 << 16

MOST_KNOWN = 1 << 24
"""Most tested sequences, counted once per distinct path; a public number."""
MOST_WORDS = 1 << 34
"""Most words of 64 records read to count candidates; a public number."""
UNTESTED = "exclusion-untested"


@dataclass(frozen=True)
class Exclusion:
    """Findings by exclusion, all for the owner of the paths.

    exposed:    sequences whose candidates violate the requirement: int32 arrays of shape (m, i) for every occurring
                length i, in canonical order.
    records:    records that lost an item of an exposed sequence.
    least:      fewest candidates of a sequence that lost an item; None if nothing was lost.
    """

    exposed: tuple[Items, ...] = field(repr=False)
    records: int = field(repr=False)
    least: int | None = field(repr=False)

    @property
    def n_exposed(self) -> int:
        return sum(len(of_length) for of_length in self.exposed)

    def sequences(self) -> Iterator[tuple[int, ...]]:
        """Yield the exposed sequences, shorter sequences first."""
        for of_length in self.exposed:
            yield from map(tuple, of_length.tolist())


@dataclass(frozen=True)
class Untested:
    """Unknown result of exclusion: readers can discard records, but there are too many sequences to test."""


def excludes(table: Paths, vocabulary: Vocabulary) -> bool:
    """Return True if readers can discard records: items have times, and no record is at two places at a time."""
    if not vocabulary.timed:
        return False
    whose = np.repeat(np.arange(table.n_paths), table.lengths)
    cells = vocabulary.cells_of(table.items)
    # Items ascend within a path, so items of the same time are neighbours.
    return not ((whose[1:] == whose[:-1]) & (cells[1:] == cells[:-1])).any()


def exclusion(
    raw: Paths,
    left: Paths,
    table: Paths,
    vocabulary: Vocabulary,
    bounds: Bounds,
    counted: int = _COUNTED,
    most: int = MOST_KNOWN,
) -> Exclusion | None:
    """Find the sequences exposed by exclusion; return None if no record can be excluded.

    raw:      paths of a holder before suppression. left: remainder of each path, in the same order.
    table:    paths of all records of the release, as seen by readers; ``left`` for a single holder.
    counted:  most sequences counted only for the fewest candidates; beyond, a bound replaces the count. ``exposed``
              does not depend on this number.
    most:     most tested sequences.

    Raises PrivacyError (exclusion-untested) for too many sequences, before any test, or for too many candidates to
    count.

    Cost: a sum for each sequence of at most L items that lost an item of its path. If the sum does not prove enough
    candidates, a count over the distinct paths of the table.
    """
    if not excludes(table, vocabulary):
        return None
    touched = _touched(raw, left)
    _require_few(raw.lengths[touched.rows], bounds.max_known, most)
    search = _Search(CandidateRecords(table, vocabulary, bounds), bounds, np.unique(raw.items), counted)
    found_out = np.zeros(len(touched.rows) + 1, dtype=bool)  # the last element is for paths without a loss
    for known in _known(raw, left, touched, bounds.max_known):
        exposed = search.through(known.sequences)
        found_out[known.whose[exposed[known.number]]] = True
    return Exclusion(search.found(), int(raw.weights[found_out[touched.of_row]].sum()), search.least)


def exclusion_or_untested(
    raw: Paths, left: Paths, table: Paths, vocabulary: Vocabulary, bounds: Bounds, most: int = MOST_KNOWN
) -> Exclusion | Untested | None:
    """Run :func:`exclusion` for a report, where too many sequences are no error."""
    try:
        return exclusion(raw, left, table, vocabulary, bounds, most=most)
    except PrivacyError as error:
        if error.error_id != UNTESTED:
            raise
        return Untested()


def _require_few(lengths: Ints, longest: int, most: int) -> None:
    """Raise PrivacyError if paths of these lengths have more than ``most`` sequences of up to ``longest`` items."""
    of_length = zip(*np.unique(lengths, return_counts=True), strict=True)
    known = sum(int(n) * sum(comb(int(length), i) for i in range(1, longest + 1)) for length, n in of_length)
    if known > most:
        raise _untested(f"{known:,} sequences are to be tested, more than {most:,}")


def _untested(private: str) -> PrivacyError:
    return PrivacyError(
        UNTESTED,
        "exclusion cannot be tested: records that lost something have too many sequences of L items or fewer",
        remedy="take a coarser time or a smaller L, or say `exclusion: report`",
        private=private,
    )


class CandidateRecords:
    """Records of a table that a person with a known sequence may have."""

    def __init__(self, table: Paths, vocabulary: Vocabulary, bounds: Bounds) -> None:
        none = np.zeros(table.n_paths, dtype=np.int32)
        distinct, number = collapsed(table.items, table.starts, none, table.domain)
        self._n = distinct.n_paths
        self.n_words = -(-self._n // _WORD)
        counts = np.stack([tally(number, each, self._n) for each in bounds.weights(table)])
        frequent = np.argsort(-counts[0], kind="stable")  # first, so that few words have the higher bits
        place = np.empty(self._n, dtype=np.int64)
        place[frequent] = np.arange(self._n)
        self._counts = counts[:, frequent]
        self.totals: Ints = self._counts.sum(axis=1)
        order = np.argsort(distinct.items, kind="stable")
        self._ends = ends_by_item(distinct.items, distinct.domain)
        self._whose = np.repeat(place, distinct.lengths)[order]
        self._places = vocabulary.n_locations
        self._rows: dict[int, Words] = {}
        self._planes = [_planes(counts) for counts in self._counts]

    def _elsewhere(self, item: int) -> Ints:
        """Return the distinct paths with another place at the time of an item. No path has two places at a time."""
        first = item // self._places * self._places
        edges = self._ends[[first, item, item + 1, first + self._places]]
        begin, before, after, end = edges.tolist()
        return np.concatenate([self._whose[begin:before], self._whose[after:end]])

    def discarded(self, item: int) -> Ints:
        """Return the part of every tally that knowledge of the item discards: int64, shape (n_tallies,)."""
        found: Ints = self._counts[:, self._elsewhere(item)].sum(axis=1)
        return found

    def _row(self, item: int) -> Words:
        """Return a bit for each distinct path: 1 if a person with the item may have the path."""
        if item not in self._rows:
            can_be = np.ones(self._n, dtype=bool)
            can_be[self._elsewhere(item)] = False
            self._rows[item] = _packed(can_be)
        return self._rows[item]

    def counts(self, sequences: Items) -> Ints:
        """Return the tallies of the candidates of every sequence: int64, shape (n_tallies, n_sequences)."""
        known, places = np.unique(sequences, return_inverse=True)
        rows = np.stack([self._row(item) for item in known.tolist()])
        places = places.reshape(sequences.shape)
        step = max(1, _WORDS_AT_ONCE // rows.shape[1])
        found = np.zeros((len(self._planes), len(sequences)), dtype=np.int64)
        for first in range(0, len(sequences), step):
            some = places[first : first + step]
            members = rows[some[:, 0]]
            for column in some.T[1:]:
                np.bitwise_and(members, rows[column], out=members)
            for number, planes in enumerate(self._planes):
                for bit, plane in enumerate(planes):
                    ones = np.bitwise_count(members[:, : len(plane)] & plane).sum(axis=1, dtype=np.int64)
                    found[number, first : first + step] += ones << bit
        return found


def _packed(bits: Bools) -> Words:
    """Return bits in words: uint64, shape (⌈n / 64⌉,)."""
    padded = np.zeros(-(-len(bits) // _WORD) * _WORD, dtype=bool)
    padded[: len(bits)] = bits
    return np.packbits(padded).view(np.uint64)


def _planes(counts: Ints) -> list[Words]:
    """Return the bits of non-negative numbers, lowest bit first, each plane up to its last non-zero word."""
    bits = range(int(counts.max(initial=0)).bit_length())
    planes = [_packed((counts >> bit & 1).astype(bool)) for bit in bits]
    return [plane[: int(np.flatnonzero(plane).max(initial=-1)) + 1] for plane in planes]


class _Search:
    """Exposed sequences found so far, and the fewest candidates."""

    def __init__(self, candidates: CandidateRecords, bounds: Bounds, items: Items, budget: int) -> None:
        """Prepare the items. ``items``: items of all later sequences."""
        self._candidates = candidates
        self._bounds = bounds
        self._place = np.zeros(int(items.max(initial=-1)) + 1, dtype=np.int32)
        self._place[items] = np.arange(len(items))
        discarded = [candidates.discarded(item) for item in items.tolist()]
        self._discarded = np.array(discarded, dtype=np.int64).reshape(-1, len(candidates.totals)).T
        self._budget = budget
        self._words = MOST_WORDS
        self._exposed: dict[int, list[Items]] = {}
        self.least: int | None = None

    def through(self, sequences: Items) -> Bools:
        """Return True for the exposed sequences, given sequences of the same length: shape (n_sequences,)."""
        lower, surely = self._bound(sequences)
        exposed = np.zeros(len(sequences), dtype=bool)
        exposed[~surely] = self._count(sequences[~surely])
        rest, lower = sequences[surely], lower[surely]
        order = np.arange(len(lower)) if self.least is None else np.flatnonzero(lower < self.least)
        order = order[np.argsort(lower[order], kind="stable")]
        while len(order) and (self.least is None or lower[order[0]] < self.least):
            some, order = np.split(order, [min(_COUNTED_AT_ONCE, self._budget)])
            self._count(rest[some])
            self._budget -= len(some)
            if self._budget == 0 and len(order):
                self._has(int(lower[order[0]]))
        if exposed.any():
            self._exposed.setdefault(sequences.shape[1], []).append(sequences[exposed])
        return exposed

    def _count(self, sequences: Items) -> Bools:
        """Return True for the exposed sequences, by counting their candidates."""
        if len(sequences) == 0:
            return np.zeros(0, dtype=bool)
        self._words -= len(sequences) * self._candidates.n_words
        if self._words < 0:
            raise _untested(f"more than {MOST_WORDS:,} words of records are to be read")
        counts = self._candidates.counts(sequences)
        self._has(int(counts[0].min()))
        return ~self._bounds.kept(counts)

    def _has(self, candidates: int) -> None:
        self.least = candidates if self.least is None else min(self.least, candidates)

    def _bound(self, sequences: Items) -> tuple[Ints, Bools]:
        """Return a lower bound on the candidates, and True where the candidates surely meet the requirement.

        Items together discard at most the sum of their separate discards. If the requirement holds for these worst
        counts, it holds for more records, or fewer with a protected value.
        """
        of_each = self._discarded[:, self._place[sequences]]
        totals = self._candidates.totals
        lower = np.maximum(totals[0] - of_each[0].sum(axis=1), 0)
        worst = totals[:, None] - of_each.max(axis=2)
        worst[0] = lower
        return lower, self._bounds.kept(worst)

    def found(self) -> tuple[Items, ...]:
        """Return the exposed sequences by length, without repetitions."""
        return tuple(np.unique(np.concatenate(self._exposed[i]), axis=0) for i in sorted(self._exposed))


@dataclass(frozen=True)
class _Touched:
    """Distinct pairs of a path that lost an item and its remainder.

    rows:    a path of each pair: int64, shape (n_pairs,). of_row: pair of every path, −1 without a loss.
    """

    rows: Ints = field(repr=False)
    of_row: Ints = field(repr=False)


def _touched(raw: Paths, left: Paths) -> _Touched:
    none = np.zeros(raw.n_paths, dtype=np.int32)
    _, before = collapsed(raw.items, raw.starts, none, raw.domain)
    _, after = collapsed(left.items, left.starts, none, left.domain)
    lost = np.flatnonzero(raw.lengths > left.lengths)
    keys = before[lost] * max(raw.n_paths, 1) + after[lost]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    of_row = np.full(raw.n_paths, -1, dtype=np.int64)
    of_row[lost] = inverse
    return _Touched(lost[first], of_row)


@dataclass(frozen=True)
class _Known:
    """Sequences of the same length known of a person who lost an item of the sequence.

    sequences:  without repetitions: int32, shape (n_sequences, i).
    number:     sequence of every occurrence: int64, shape (n,). whose: touched pair of every occurrence.
    """

    sequences: Items = field(repr=False)
    number: Ints = field(repr=False)
    whose: Ints = field(repr=False)


def _known(raw: Paths, left: Paths, touched: _Touched, longest: int) -> Iterator[_Known]:
    """Yield all known sequences in batches. A sequence may occur in several batches."""
    gone, lengths = lost(raw, left), raw.lengths[touched.rows]
    for length in np.unique(lengths).tolist():
        pairs = np.flatnonzero(lengths == length)
        for i in range(1, min(longest, length) + 1):
            for chosen in _chosen(length, i):
                step = max(1, _SEQUENCES_AT_ONCE // len(chosen))
                for first in range(0, len(pairs), step):
                    some = pairs[first : first + step]
                    at = raw.starts[touched.rows[some]][:, None, None] + chosen
                    known = gone[at].any(axis=2)
                    whose = np.broadcast_to(some[:, None], known.shape)[known]
                    yield _once(raw.items[at][known], whose, raw.domain)


def _once(sequences: Items, whose: Ints, domain: int) -> _Known:
    keys = pack(list(sequences.T), [domain] * sequences.shape[1])
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return _Known(sequences[first], number, whose)


def _chosen(length: int, i: int) -> Iterator[Ints]:
    """Yield all choices of ``i`` places of ``length``, in batches: int64, shape (n_choices, i)."""
    choices = combinations(range(length), i)
    while some := list(islice(choices, _CHOSEN_AT_ONCE)):
        yield np.array(some, dtype=np.int64)
