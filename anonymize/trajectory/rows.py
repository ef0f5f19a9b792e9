"""The different paths of a table while they are searched and lose items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools
from anonymize.table import Ints
from anonymize.trajectory.levels import Index, Numbers
from anonymize.trajectory.paths import Items, Paths, collapsed, rows_of
from anonymize.trajectory.requirement import Bounds


@dataclass(frozen=True, eq=False)
class Rows:
    """Different paths, whatever the sensitive values of their records are.

    items, starts:  as of :class:`anonymize.trajectory.paths.Paths`.
    weights:        as how many records each counts in every tally: whole numbers below 2**53, shape
                    (n_tallies, n_rows).
    """

    items: Items = field(repr=False)
    starts: Ints = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)

    @property
    def n_rows(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    def whose(self) -> Numbers:
        """The row of every instance: int32, shape (n_instances,)."""
        return np.repeat(np.arange(self.n_rows, dtype=np.int32), self.lengths)

    def without(self, dropped: Bools) -> Rows:
        """The same without some instances: shape (n_instances,)."""
        left = np.concatenate([[0], np.cumsum(~dropped)])
        return Rows(self.items[~dropped], left[self.starts], self.weights)

    def some(self, chosen: Ints) -> Rows:
        """Some of them, by number."""
        return Rows(*rows_of(self.items, self.starts, chosen), self.weights[:, chosen])

    def parts(self, size: int, work: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows that hold about ``work`` sequences of a size each, at least one row."""
        each = _choose(self.lengths, size)
        before = np.concatenate([[0], np.cumsum(each + 1)])
        start = 0
        while start < self.n_rows:
            stop = max(start + 1, int(np.searchsorted(before, before[start] + work, side="right")) - 1)
            yield start, stop
            start = stop


def _choose(lengths: Ints, size: int) -> NDArray[np.float64]:
    """How many sequences of a size paths of these lengths have, about."""
    found = np.ones(len(lengths))
    for i in range(size):
        found *= np.maximum(lengths - i, 0) / (i + 1)
    return found


def rows_by_path(paths: Paths, bounds: Bounds) -> tuple[Rows, Ints]:
    """The different paths of a table, and which of them each of its paths is: int64, shape (n_paths,)."""
    different, number = collapsed(paths.items, paths.starts, np.zeros(paths.n_paths, np.int32), paths.domain)
    weights = [np.bincount(number, own, different.n_paths) for own in bounds.weights(paths)]
    return Rows(different.items, different.starts, np.stack(weights)), number


@dataclass(frozen=True, eq=False)
class Steps:
    """From sequences that paths have, one item on: how often these are found with a later item, known or not.

    which:   the place, among those it was made from, of each; int64.
    at:      the instance that is its last item: int64.
    number:  in the level above, or NONE: int32.
    """

    which: Ints = field(repr=False)
    at: Ints = field(repr=False)
    number: Numbers = field(repr=False)


def step(rows: Rows, ends: Ints, at: Ints, number: Numbers, index: Index) -> Steps:
    """Extend sequences by every later item of their paths.

    ends:    by instance where its path ends: shape (n_instances,).
    at:      the last item of each, an instance. number: of the sequence in its level. Shape (n,).
    index:   of the level above.
    """
    later = ends[at] - at - 1
    which = np.repeat(np.arange(len(at)), later)
    first = at + 1 - (np.cumsum(later) - later)
    further = np.arange(len(which)) + first[which]
    return Steps(which, further, index.find(number[which], rows.items[further]))


def ends_of(rows: Rows) -> Ints:
    """Where the path of each instance ends: int64, shape (n_instances,)."""
    return np.repeat(rows.starts[1:], rows.lengths)
