"""Different paths of a table during the search and the removal of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools
from anonymize.table import Ints
from anonymize.trajectory.levels import Index, Numbers
from anonymize.trajectory.paths import Items, Paths, collapsed, rows_of
from anonymize.trajectory.requirement import Bounds


@dataclass(frozen=True, eq=False)
class DifferentPaths:
    """Different paths, for any sensitive values of their records.

    items, starts:  as in :class:`anonymize.trajectory.paths.Paths`.
    weights:        records of each path in every tally: whole numbers below 2**53, shape (n_tallies, n_rows).
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
        """Return the row of every instance: int32, shape (n_instances,)."""
        return np.repeat(np.arange(self.n_rows, dtype=np.int32), self.lengths)

    def without(self, dropped: Bools) -> DifferentPaths:
        """Return the paths without some instances: shape (n_instances,)."""
        left = np.concatenate([[0], np.cumsum(~dropped)])
        return DifferentPaths(self.items[~dropped], left[self.starts], self.weights)

    def some(self, chosen: Ints) -> DifferentPaths:
        """Return the paths with the given numbers."""
        return DifferentPaths(*rows_of(self.items, self.starts, chosen), self.weights[:, chosen])

    def parts(self, size: int, work: int) -> Iterator[slice]:
        """Yield ranges of rows with about ``work`` sequences of any size up to ``size``; at least a row each."""
        return _ranges(_most(self.lengths, size), work)


def _ranges(each: NDArray[np.float64] | Ints, work: int) -> Iterator[slice]:
    """Yield ranges of elements with total cost of at most ``work``; at least an element each."""
    before = np.concatenate([[0], np.cumsum(each + 1)])
    start = 0
    while start < len(each):
        stop = max(start + 1, int(np.searchsorted(before, before[start] + work, side="right")) - 1)
        yield slice(start, stop)
        start = stop


def _most(lengths: Ints, size: int) -> NDArray[np.float64]:
    """Return about the largest number of sequences of a size up to ``size`` in paths of these lengths."""
    found = np.ones(len(lengths))
    for i in range(size):
        found *= np.where(2 * i < lengths - 1, (lengths - i) / (i + 1), 1)
    return found


def rows_by_path(paths: Paths, bounds: Bounds) -> tuple[DifferentPaths, Ints]:
    """Return the different paths of a table, and the number of each path in them: int64, shape (n_paths,)."""
    different, number = collapsed(paths.items, paths.starts, np.zeros(paths.n_paths, np.int32), paths.domain)
    weights = [np.bincount(number, own, different.n_paths) for own in bounds.weights(paths)]
    return DifferentPaths(different.items, different.starts, np.stack(weights)), number


@dataclass(frozen=True, eq=False)
class Extensions:
    """Sequences of paths, extended by a later item, known or unknown.

    which:   place of the original sequence among the arguments; int64.
    at:      instance of the last item: int64.
    number:  in the level above, or NONE: int32.
    """

    which: Ints = field(repr=False)
    at: Ints = field(repr=False)
    number: Numbers = field(repr=False)


def extended(rows: DifferentPaths, ends: Ints, at: Ints, number: Numbers, index: Index) -> Extensions:
    """Extend sequences by every later item of their paths.

    ends:    end of each instance's path: shape (n_instances,).
    at:      instance of each sequence's last item. number: of the sequence in its level. Shape (n,).
    index:   of the level above.
    """
    later = ends[at] - at - 1
    which = np.repeat(np.arange(len(at)), later)
    first = at + 1 - (np.cumsum(later) - later)
    further = np.arange(len(which)) + first[which]
    return Extensions(which, further, index.find(number[which], rows.items[further]))


def pieces(ends: Ints, at: Ints, work: int) -> Iterator[slice]:
    """Yield ranges of sequences with about ``work`` extensions, at least a sequence each, for :func:`extended`."""
    return _ranges(ends[at] - at - 1, work)


def occurrences(
    rows: DifferentPaths,
    ends: Ints,
    at: Ints,
    number: Numbers,
    levels: Sequence[tuple[Index, Bools]],
    work: int,
) -> Iterator[tuple[Ints, Numbers]]:
    """Yield the places of wanted sequences in rows, in batches: last instance and number of each.

    The memory depends on ``work`` and the longest path, not on the number of occurrences.

    at, number:  sequences to begin with, as in :func:`extended`.
    levels:      levels above: an index, and True for wanted sequences, shape (m + 1,), the last False.
    """
    if not levels:
        yield at, number
        return
    (index, wanted), *above = levels
    for some in pieces(ends, at, work):
        longer = extended(rows, ends, at[some], number[some], index)
        found = np.flatnonzero(wanted[longer.number])
        if len(found):
            yield from occurrences(rows, ends, longer.at[found], longer.number[found], above, work)


def ends_of(rows: DifferentPaths) -> Ints:
    """Return the end of the path of each instance: int64, shape (n_instances,)."""
    return np.repeat(rows.starts[1:], rows.lengths)
