"""Local suppression: records lose items until every occurring sequence is kept.

A sweep finds, size by size, the kept sequences. Then every record drops items until it has only kept sequences
(:mod:`anonymize.trajectory.removal`). Supports only fall, so an absent sequence stays absent. Sweeps repeat until all
sequences are kept. [T] chapter 4 removes an item from all records or from no record
(:mod:`anonymize.trajectory.everywhere`), which costs far more items.

The loop exists once; a single holder and a joint run answer its questions differently.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.errors import PrivacyError
from anonymize.table import Ints
from anonymize.tds import Observer
from anonymize.trajectory.levels import TOO_MANY, Index, Level, Numbers, joined, require_few, singles
from anonymize.trajectory.paths import Items, Paths, rows_of
from anonymize.trajectory.removal import dropped, order_of
from anonymize.trajectory.requirement import Bounds, met_by_all
from anonymize.trajectory.rows import DifferentPaths, ends_of, extended, occurrences, pieces, rows_by_path

R = TypeVar("R")

_WORK = 1 << 18
"""Sequences examined together."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Sequences of the same size with a question: are they kept? The sequences are public, the counts are not.

    sequences:  in the order of their items: int32, shape (m, i).
    counts:     of the holder's records, for every tally of the bounds: int64, shape (n_tallies, m).
    """

    sequences: Items = field(repr=False)
    counts: Ints = field(repr=False)


@dataclass(frozen=True)
class Sweep:
    """Numbers of tested and of kept sequences of each size; public."""

    tested: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Suppressed:
    """Remainder of paths after suppression.

    paths:   original paths, in their order, with the remaining items; equal paths may recur.
    sweeps:  tested sequences; public.
    taken:   items removed from all records, in order, in global suppression.
    """

    paths: Paths
    sweeps: tuple[Sweep, ...]
    taken: tuple[int, ...] = field(default=(), repr=False)


def local(
    paths: Paths, bounds: Bounds, max_candidates: int, observer: Observer | None = None
) -> Generator[Asked, Bools, Suppressed]:
    """Suppress items of single records until every occurring sequence is kept.

    Yields the tested sequences and receives True for the kept sequences, shape (m,): :meth:`Bounds.kept` over the
    records of all holders. All holders yield the same sequences and must receive the same answers. The caller has
    checked that all records together meet the bounds (:func:`met_by_all`).

    Raises PrivacyError for more than ``max_candidates`` sequences of a size. This fact is public, too, and no
    sequence of this size was counted.
    """
    search, observer = Search(paths, bounds, max_candidates), observer or Observer()
    observer.sweep(1)
    sweeps = [(yield from search.first())]
    while True:
        observer.sweep(len(sweeps) + 1)
        search.remove()
        before = search.n_alive
        sweeps.append((yield from search.again()))
        if search.n_alive == before:
            return Suppressed(search.left(), tuple(sweeps))


def local_alone(
    paths: Paths, bounds: Bounds, max_candidates: int, observer: Observer | None = None
) -> Suppressed:
    """Run :func:`local` for the single holder. Raises PrivacyError as :func:`local`, :func:`met_by_all`."""
    met_by_all(paths, bounds)
    return answered(local(paths, bounds, max_candidates, observer), lambda asked: bounds.kept(asked.counts))


def answered(loop: Generator[Asked, Bools, R], kept: Callable[[Asked], Bools]) -> R:
    """Run a loop with the answers of a single holder."""
    try:
        asked = next(loop)
        while True:
            asked = loop.send(kept(asked))
    except StopIteration as stop:
        result: R = stop.value
        return result


@dataclass(eq=False)
class _OfSize:
    """Sequences of the same size: those kept in the first sweep, then the others with records of the holder.

    alive:   still kept: shape (n + 1,), the last is False for missing numbers.
    lost:    tested in this sweep, not kept, and with records of the holder: shape (n + 1,).
    counts:  of the holder's records, valid for alive sequences: int64, shape (n_tallies, n).
    """

    level: Level
    index: Index
    alive: Bools = field(repr=False)
    lost: Bools = field(repr=False)
    counts: Ints = field(repr=False)

    @property
    def n_alive(self) -> int:
        return int(np.count_nonzero(self.alive))


class Search:
    """Paths of a holder, and the known state of their sequences."""

    def __init__(
        self,
        paths: Paths,
        bounds: Bounds,
        max_candidates: int,
        in_all: int | None = None,
        found: int | None = None,
    ) -> None:
        """Set limits on the sequences that :meth:`first` tests; None: no limit.

        in_all:  sequences of all sizes together.
        found:   occurrences in different paths: a public limit, for public paths or the paths of a single holder.
        """
        self._in_all, self._found = in_all, found
        self._paths, self._bounds, self._most = paths, bounds, max_candidates
        self._rows, self._number = rows_by_path(paths, bounds)
        self._names: Items = np.zeros(0, dtype=np.int32)
        self._sizes: list[_OfSize] = []

    @property
    def n_alive(self) -> int:
        """Number of sequences still kept; public."""
        return sum(known.n_alive for known in self._sizes)

    @property
    def _domain(self) -> int:
        """Number of items kept in the first sweep; later sweeps number only these items."""
        return len(self._names)

    def first(self) -> Generator[Asked, Bools, Sweep]:
        """Test every sequence with all subsets kept."""
        tested: list[int] = []
        for size in range(1, self._bounds.max_known + 1):
            candidates = self._candidates(size, self._left(sum(tested)))
            if len(candidates) == 0:
                break  # nor are there longer ones
            asked = Asked(self._in_the_open(candidates), self._count(candidates))
            answer = yield asked
            self._take(candidates, asked.counts, answer)
            tested.append(len(candidates))
        return self._sweep(tested)

    def _sweep(self, tested: Sequence[int]) -> Sweep:
        """Return a sweep with the given tested sequences; the sequences now alive were kept."""
        none = (0,) * (self._bounds.max_known - len(tested))
        return Sweep((*tested, *none), (*(known.n_alive for known in self._sizes), *none))

    def _left(self, tested: int) -> int:
        """Return the number of sequences that may still be tested."""
        return self._most if self._in_all is None else min(self._most, self._in_all - tested)

    def _candidates(self, size: int, most: int) -> Level:
        if size == 1:
            require_few(self._paths.domain, most)
            return singles(self._paths.domain)
        below = self._sizes[-1]
        return joined(below.level.some(slice(below.n_alive)), below.index, most)

    def _in_the_open(self, level: Level) -> Items:
        return level.items if level.size == 1 and not self._sizes else self._names[level.items]

    def _count(self, candidates: Level) -> Ints:
        """Return the tallies of sequences over all paths: int64, shape (n_tallies, m)."""
        rows, size, m = self._rows, candidates.size, len(candidates)
        if size == 1:
            return _tallied(rows.items, rows, rows.whose(), m)
        counts = np.zeros((len(rows.weights), m), dtype=np.int64)
        if m == 0:
            return counts
        wanted = np.arange(m + 1) < m
        levels = [(known.index, known.alive) for known in self._sizes[1:]]
        levels.append((Index(candidates, self._domain), wanted))
        at = np.flatnonzero(np.repeat(rows.lengths >= size, rows.lengths))
        whose, found = rows.whose(), rows.items[at]
        for last, number in occurrences(rows, ends_of(rows), at, found, levels, max(_WORK, m)):
            counts += _tallied(number, rows, whose[last], m)
            if self._found is not None:
                self._found -= len(last)
                if self._found < 0:
                    raise PrivacyError(TOO_MANY, "the sequences are found too often to be counted")
        return counts

    def _take(self, candidates: Level, counts: Ints, answer: Bools) -> None:
        """Continue with the kept sequences. The holder's other sequences must be suppressed."""
        kept, lost = np.flatnonzero(answer), np.flatnonzero(~answer & (counts[0] > 0))
        if candidates.size == 1:
            self._names = kept.astype(np.int32)
            rank = np.cumsum(answer, dtype=np.int32) - 1
            rows = self._rows.without(~answer[self._rows.items])
            self._rows = replace(rows, items=rank[rows.items])
            candidates, counts, lost = singles(len(kept)), counts[:, kept], lost[:0]
            kept = np.arange(len(kept))
        numbers = np.concatenate([kept, lost])
        level = candidates.some(numbers)
        alive = np.arange(len(numbers) + 1) < len(kept)
        is_lost = ~alive
        is_lost[-1] = False
        index = Index(level, self._domain)
        self._sizes.append(_OfSize(level, index, alive, is_lost, counts[:, numbers]))

    def again(self) -> Generator[Asked, Bools, Sweep]:
        """Test every sequence that was kept before and whose subsets are all still kept."""
        tested = []
        below = np.ones(1, dtype=bool)
        for known in self._sizes:
            numbers = np.flatnonzero(known.alive)
            numbers = numbers[below[known.level.subsets[numbers]].all(axis=1)]
            counts = known.counts[:, numbers]
            known.alive[:] = known.lost[:] = False
            if len(numbers):
                answer = yield Asked(self._names[known.level.items[numbers]], counts)
                known.alive[numbers] = answer
                known.lost[numbers] = ~answer & (counts[0] > 0)
            below = known.alive
            tested.append(len(numbers))
        return self._sweep(tested)

    def remove(self) -> None:
        """Drop items until the holder's paths have no sequence to suppress."""
        single, *longer = self._sizes
        self._rows = self._rows.without(~single.alive[self._rows.items])
        if any(known.lost.any() for known in longer):
            drops = self._drops()
            self._subtract(drops)
            self._rows = self._rows.without(drops)

    def _drops(self) -> Bools:
        """Return the holder's instances to drop for the sequences of several items to suppress."""
        rows, order, leads = self._rows, order_of(self._kept_with()), self._leads()
        whose, ends = rows.whose(), ends_of(rows)
        drops = np.zeros(len(rows.items), dtype=bool)
        for some in rows.parts(len(self._sizes), _WORK):
            part = slice(rows.starts[some.start], rows.starts[some.stop])
            at = np.arange(part.start, part.stop)
            first = at[leads[0][rows.items[part]]][:, None]
            going = np.concatenate([self._none, *self._going(first, rows.items[first[:, 0]], ends, leads)])
            drops[part] = dropped(going - part.start, rows.items[part], whose[part], order)
        return drops

    def _kept_with(self) -> Ints:
        """Return the number of kept sequences of all sizes with each item; public."""
        items = [known.level.items[known.alive[:-1]].reshape(-1) for known in self._sizes]
        return np.bincount(np.concatenate(items), minlength=self._domain)

    @property
    def _none(self) -> Ints:
        return np.zeros((0, len(self._sizes)), dtype=np.int64)

    def _going(self, instances: Ints, number: Numbers, ends: Ints, leads: Sequence[Bools]) -> Iterator[Ints]:
        """Yield the sequences to suppress that begin with the given sequences of the holder, for :func:`dropped`.

        instances:  of each given sequence: shape (n, i). number: in its level. leads: as in :meth:`_leads`.
        """
        rows, size, longest = self._rows, instances.shape[1], len(self._sizes)
        if size == longest:
            return
        known, lead = self._sizes[size], leads[size]
        for some in pieces(ends, instances[:, -1], _WORK):
            longer = extended(rows, ends, instances[some, -1], number[some], known.index)
            found = np.flatnonzero(known.lost[longer.number])
            whole = np.column_stack([instances[some][longer.which[found]], longer.at[found]])
            yield whole[:, np.minimum(np.arange(longest), size)]
            found = np.flatnonzero(lead[longer.number])
            if len(found):
                whole = np.column_stack([instances[some][longer.which[found]], longer.at[found]])
                yield from self._going(whole, longer.number[found], ends, leads)

    def _leads(self) -> list[Bools]:
        """Return, by size, the sequences that begin a longer sequence to suppress."""
        leads = [np.zeros_like(known.alive) for known in self._sizes]
        for i in range(len(leads) - 1, 0, -1):
            wanted = leads[i][:-1] | self._sizes[i].lost[:-1]
            leads[i - 1][self._sizes[i].level.subsets[wanted, -1]] = True
        return leads

    def _subtract(self, drops: Bools) -> None:
        """Subtract the coming losses of the holder's paths from the counts of alive sequences."""
        whose = self._rows.whose()
        changed = np.flatnonzero(np.bincount(whose[drops], minlength=self._rows.n_rows))
        rows, hit_at = self._rows.some(changed), drops[np.isin(whose, changed)]
        ends, whose = ends_of(rows), rows.whose()
        work = max(_WORK, *(len(known.level) for known in self._sizes))

        def subtract(at: Ints, number: Numbers, hit: Bools, levels: Sequence[_OfSize]) -> None:
            level, *above = levels
            level.counts -= _tallied(number[hit], rows, whose[at[hit]], len(level.level))
            for some in pieces(ends, at, work) if above else ():
                longer = extended(rows, ends, at[some], number[some], above[0].index)
                found = np.flatnonzero(above[0].alive[longer.number])
                last = longer.at[found]
                if len(found):
                    is_hit = hit[some][longer.which[found]] | hit_at[last]
                    subtract(last, longer.number[found], is_hit, above)

        subtract(np.arange(len(rows.items)), rows.items, hit_at, self._sizes)

    def maximal(self) -> Iterator[Items]:
        """Yield, by size, the kept sequences that are part of no longer kept sequence; after :meth:`first`."""
        part_of = [np.zeros(known.n_alive, dtype=bool) for known in self._sizes]
        for known, below in zip(self._sizes[1:], part_of, strict=False):
            below[known.level.subsets[: known.n_alive]] = True
        for known, is_part in zip(self._sizes, part_of, strict=True):
            yield self._names[known.level.items[: known.n_alive][~is_part]]

    def left(self) -> Paths:
        """Return the remainder of the original paths."""
        items, starts = rows_of(self._names[self._rows.items], self._rows.starts, self._number)
        return replace(self._paths, items=items, starts=starts)


def _tallied(numbers: Numbers, rows: DifferentPaths, whose: Numbers, n: int) -> Ints:
    """Return the tallies of the rows' sequences, by number: int64, shape (n_tallies, n)."""
    return np.stack([np.bincount(numbers, own[whose], n) for own in rows.weights]).astype(np.int64)
