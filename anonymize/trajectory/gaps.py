"""How well a reader guesses what was removed from the rest of a path (semantics of sequences; not in [T] chapter 4).

Suppression leaves a gap, and no bound is proved for what the gap tells. This measures the guesses of two readers on
a sample of the removed items. Both take the items next to the gap, on either side, and look at all records of the
release that have both: how often do these have the removed item? The second reader also knows, from elsewhere or
because everybody in such a table is read all the time, that there was a reading at the time of the removed item, and
looks only at records that show something then. A reader with a map, or with the algorithm in mind, may do better.

In sets, which have no order, the neighbours in the order of the domain stand for what is left of the record, and both
readers are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.release import Rng
from anonymize.table import Ints
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths, ends_by_item, lost

SAMPLE = 600
"""Removed items that are looked at; a public number."""


@dataclass(frozen=True)
class Guessed:
    """Of how many removed items a reader gives the right one a probability above 1/2, and above 9/10."""

    likely: int = field(repr=False)
    sure: int = field(repr=False)


@dataclass(frozen=True)
class Gaps:
    """What is guessed of removed items. For the owner of the paths, who may publish it.

    sampled:    removed items looked at, drawn among all removed from any record, with replacement; 0 if none was.
    different:  how many of them are not the same removed item of the same record.
    neighbours: guessed from the items next to the gap.
    timed:      guessed by whoever knows that something was read at that time.
    """

    sampled: int = field(repr=False)
    different: int = field(repr=False)
    neighbours: Guessed = field(repr=False)
    timed: Guessed = field(repr=False)


def gaps(
    raw: Paths, left: Paths, table: Paths, vocabulary: Vocabulary, rng: Rng, sample: int = SAMPLE
) -> Gaps:
    """Guess a sample of removed items.

    raw:    one holder's paths before suppression. left: what is left of each of them, path by path.
    table:  what readers see: the paths of all records of the release. A single holder's are ``left``.
    """
    removed = _Removed(raw, left)
    if removed.n_records == 0:
        return Gaps(0, 0, Guessed(0, 0), Guessed(0, 0))
    # 64 uniform bits modulo at most 2**40 records: no draw is favoured by more than 2**-24 of its probability.
    drawn = np.frombuffer(rng.bytes(8 * sample), dtype="<u8") % np.uint64(removed.n_records)
    readers = _Readers(table, vocabulary)
    found = np.array([readers.counts(*removed.instance(at)) for at in drawn.tolist()], dtype=np.int64)
    hits, cases, timed = found.reshape(sample, 3).T
    return Gaps(sample, len(np.unique(drawn)), _guessed(hits, cases), _guessed(hits, timed))


def _guessed(hits: Ints, cases: Ints) -> Guessed:
    return Guessed(int((2 * hits > cases).sum()), int((10 * hits > 9 * cases).sum()))


class _Removed:
    """The removed items of records, numbered: as many of each path as records have it."""

    def __init__(self, raw: Paths, left: Paths) -> None:
        gone = lost(raw, left)
        self._paths = np.repeat(np.arange(raw.n_paths), raw.lengths)[gone]
        self._items = raw.items[gone]
        self._until = np.cumsum(raw.weights[self._paths])
        self._left = left

    @property
    def n_records(self) -> int:
        return int(self._until[-1]) if len(self._until) else 0

    def instance(self, number: int) -> tuple[int, Sequence[int]]:
        """A removed item, and the items left of its record next before and after it."""
        at = int(np.searchsorted(self._until, number, side="right"))
        item, rest = int(self._items[at]), self._left.path(int(self._paths[at]))
        before = [each for each in rest if each < item][-1:]
        after = [each for each in rest if each > item][:1]
        return item, (*before, *after)


class _Readers:
    """The paths of a table by item."""

    def __init__(self, table: Paths, vocabulary: Vocabulary) -> None:
        order = np.argsort(table.items, kind="stable")
        self._ends = ends_by_item(table.items, table.domain)
        self._whose: Ints = np.repeat(np.arange(table.n_paths), table.lengths)[order]
        self._weights = table.weights
        self._vocabulary = vocabulary

    def counts(self, item: int, neighbours: Sequence[int]) -> tuple[int, int, int]:
        """How many records have the item and its neighbours; the neighbours; these and anything at that time."""
        cases = np.ones(len(self._weights), dtype=bool)
        for each in neighbours:
            cases &= self._having(each, each + 1)
        hits = cases & self._having(item, item + 1)
        return self._records(hits), self._records(cases), self._records(cases & self._at_the_time_of(item))

    def _at_the_time_of(self, item: int) -> Bools:
        if not self._vocabulary.timed:
            return np.ones(len(self._weights), dtype=bool)
        first = item // self._vocabulary.n_locations * self._vocabulary.n_locations
        return self._having(first, first + self._vocabulary.n_locations)

    def _having(self, first: int, last: int) -> Bools:
        """The paths with an item from ``first`` to before ``last``: shape (n_paths,)."""
        found = np.zeros(len(self._weights), dtype=bool)
        found[self._whose[self._ends[first] : self._ends[last]]] = True
        return found

    def _records(self, paths: Bools) -> int:
        return int(self._weights[paths].sum())
