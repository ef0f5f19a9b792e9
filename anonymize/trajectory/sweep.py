"""Local suppression: records lose items until every sequence that occurs is kept.

A sweep asks, size after size, which sequences are kept; then every record drops items until it has none of those that
are not (:mod:`anonymize.trajectory.removal`). Supports only fall, so a sequence that no record has any more stays
absent. Sweeps follow until one finds that all is kept. [T] chapter 4 takes an item from all records or from none
(:mod:`anonymize.trajectory.everywhere`), which costs far more of them.

The loop exists once. Who answers which sequences are kept differs between a single holder and a joint run.
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
"""Sequences that are looked at together."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Sequences of one size of which the loop asks whether they are kept. They are public, what is counted is not.

    sequences:  in the order of their items: int32, shape (m, i).
    counts:     of this holder's records, of every tally of the bounds: int64, shape (n_tallies, m).
    """

    sequences: Items = field(repr=False)
    counts: Ints = field(repr=False)


@dataclass(frozen=True)
class Sweep:
    """Number of sequences of each size that were asked for, and that were kept; public."""

    tested: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Suppressed:
    """Rest of paths after suppression.

    paths:   those that were given, in their order, with the items that are left; equal ones may recur.
    sweeps:  what was asked; public.
    taken:   the items that were taken from all records, in that order, where that was the way.
    """

    paths: Paths
    sweeps: tuple[Sweep, ...]
    taken: tuple[int, ...] = field(default=(), repr=False)


def local(
    paths: Paths, bounds: Bounds, max_candidates: int, observer: Observer | None = None
) -> Generator[Asked, Bools, Suppressed]:
    """Suppress items of single records until every sequence that occurs is kept.

    Yields what is asked and is sent which are kept, shape (m,): of the records of all holders, those that
    :meth:`Bounds.kept` says. All holders yield the same sequences and must be sent the same. That all records
    together meet the bounds (:func:`met_by_all`) must be known before.

    Raises PrivacyError if more than ``max_candidates`` sequences of a size are to be asked for; that is public, too,
    and nothing of that size was counted.
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
    """The same for the one holder of all records. Raises PrivacyError as :func:`local`, :func:`met_by_all` do."""
    met_by_all(paths, bounds)
    return answered(local(paths, bounds, max_candidates, observer), lambda asked: bounds.kept(asked.counts))


def answered(loop: Generator[Asked, Bools, R], kept: Callable[[Asked], Bools]) -> R:
    """Run a loop whose questions one holder answers."""
    try:
        asked = next(loop)
        while True:
            asked = loop.send(kept(asked))
    except StopIteration as stop:
        result: R = stop.value
        return result


@dataclass(eq=False)
class _OfSize:
    """The sequences of one size that were kept in the first sweep, then those that were not and that we have.

    alive:   those that are still kept: shape (n + 1,), the last is False for what has no number.
    lost:    those that were asked for in this sweep, are not kept, and that we have: shape (n + 1,).
    counts:  of our records, right for those alive: int64, shape (n_tallies, n).
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
    """One holder's paths, and what is known of the sequences in them."""

    def __init__(
        self,
        paths: Paths,
        bounds: Bounds,
        max_candidates: int,
        in_all: int | None = None,
        found: int | None = None,
    ) -> None:
        """Require no more sequences than :meth:`first` takes; None: any number.

        in_all:  how many sequences of all sizes together are asked for.
        found:   how often they are found in different paths: a public number, to be given where the paths are, too,
                 or one holder's.
        """
        self._in_all, self._found = in_all, found
        self._paths, self._bounds, self._most = paths, bounds, max_candidates
        self._rows, self._number = rows_by_path(paths, bounds)
        self._names: Items = np.zeros(0, dtype=np.int32)
        self._sizes: list[_OfSize] = []

    @property
    def n_alive(self) -> int:
        """Sequences that are still kept; public."""
        return sum(known.n_alive for known in self._sizes)

    @property
    def _domain(self) -> int:
        """Items that were kept in the first sweep; from then on an item is its number among these."""
        return len(self._names)

    def first(self) -> Generator[Asked, Bools, Sweep]:
        """Ask for every sequence of which all subsets are kept."""
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
        """A sweep in which so many sequences were asked for, and those now alive were kept."""
        none = (0,) * (self._bounds.max_known - len(tested))
        return Sweep((*tested, *none), (*(known.n_alive for known in self._sizes), *none))

    def _left(self, tested: int) -> int:
        """Return the number of sequences that may be asked for next."""
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
        """The tallies of sequences, all paths searched: int64, shape (n_tallies, m)."""
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
        """Go on with those that are kept; the others that we have must go."""
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
        """Ask for every sequence that was kept before and of which all subsets still are."""
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
        """Drop items until our paths have none of the sequences that must go."""
        single, *longer = self._sizes
        self._rows = self._rows.without(~single.alive[self._rows.items])
        if any(known.lost.any() for known in longer):
            drops = self._drops()
            self._subtract(drops)
            self._rows = self._rows.without(drops)

    def _drops(self) -> Bools:
        """Return our instances that are dropped for the sequences of several items that must go."""
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
        """By item in how many kept sequences of all sizes it is; public."""
        items = [known.level.items[known.alive[:-1]].reshape(-1) for known in self._sizes]
        return np.bincount(np.concatenate(items), minlength=self._domain)

    @property
    def _none(self) -> Ints:
        return np.zeros((0, len(self._sizes)), dtype=np.int64)

    def _going(self, instances: Ints, number: Numbers, ends: Ints, leads: Sequence[Bools]) -> Iterator[Ints]:
        """The sequences that must go and begin with some that we have, as :func:`dropped` takes them.

        instances:  of each of these: shape (n, i). number: in its level. leads: as :meth:`_leads` has them.
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
        """By size which sequences some longer one that must go begins with."""
        leads = [np.zeros_like(known.alive) for known in self._sizes]
        for i in range(len(leads) - 1, 0, -1):
            wanted = leads[i][:-1] | self._sizes[i].lost[:-1]
            leads[i - 1][self._sizes[i].level.subsets[wanted, -1]] = True
        return leads

    def _subtract(self, drops: Bools) -> None:
        """Take from the counts of what is alive what our paths are about to lose."""
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
        """The sequences that are kept and part of no longer one that is, by size; after :meth:`first`."""
        part_of = [np.zeros(known.n_alive, dtype=bool) for known in self._sizes]
        for known, below in zip(self._sizes[1:], part_of, strict=False):
            below[known.level.subsets[: known.n_alive]] = True
        for known, is_part in zip(self._sizes, part_of, strict=True):
            yield self._names[known.level.items[: known.n_alive][~is_part]]

    def left(self) -> Paths:
        """Return the rest of the paths that were given."""
        items, starts = rows_of(self._names[self._rows.items], self._rows.starts, self._number)
        return replace(self._paths, items=items, starts=starts)


def _tallied(numbers: Numbers, rows: DifferentPaths, whose: Numbers, n: int) -> Ints:
    """The tallies of what rows have, by number: int64, shape (n_tallies, n)."""
    return np.stack([np.bincount(numbers, own[whose], n) for own in rows.weights]).astype(np.int64)
