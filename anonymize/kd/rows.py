"""Rows of a holder in the order of the open groups, so that the left side of a cut is counted without sorting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.criteria.views import CellView, count_by
from anonymize.kd.fronts import Front, Move
from anonymize.table import CodedTable, Codes, Ints, tally

_MOST_BINS = 1 << 22
"""Most bins of histograms in memory at once."""
_DEEP, _FAR = 1 << 20, 1 << 62
_BINS_PER_ROW, _FEW_BINS = 16, 1 << 12
"""Beyond so many bins rows are compared with every leaf instead."""


@dataclass(frozen=True)
class Sides:
    """Rows on both sides of a cut of each group.

    labels:   labels of the rows for counting. keys: 0 … n_groups − 1 on the left, the next n_groups on the right.
    weights:  records of each row; None: 1. int64, shape (n_rows,) each.
    """

    labels: Sequence[Ints] = field(repr=False)
    keys: Ints = field(repr=False)
    n_keys: int
    weights: Ints | None = field(repr=False)


class OpenRows:
    """Rows of the open groups, group by group, and the final group of all other rows.

    In a joint run a group may have no row of the holder.
    """

    def __init__(self, table: CodedTable, labels: Sequence[Ints] = ()) -> None:
        """Start with all rows in a group. ``labels``: number of each row, shape (n_rows,), for each way to count."""
        n = len(table.cells)
        widest = max((codes.dtype for codes in table.qid), key=lambda dtype: dtype.itemsize)
        self._codes = np.stack([codes.astype(widest) for codes in table.qid])
        self._weights = None if bool((table.weights == 1).all()) else table.weights
        self._labels = [label.astype(np.int32) for label in labels]
        self._row = np.arange(n)
        self._starts = np.array([0, n], dtype=np.int64)
        self._n_final = 0
        self.group = np.zeros(n, dtype=np.int64)
        """Final group of every row, in the order of becoming final: int64, shape (n_rows,)."""

    def left_of(self, front: Front) -> Ints:
        """Count the records left of every candidate of a front: int64, shape as ``front.at``; 0 without one."""
        left = np.zeros(front.at.shape, dtype=np.int64)
        for column in np.unique(front.columns).tolist():
            group, place = np.nonzero((front.columns == column) & (front.at > 0))
            at = front.at[group, place]
            for groups in _parts(front.boxes.widths[column]):
                part = slice(*np.searchsorted(group, [groups.start, groups.stop]).tolist())
                runs = front.boxes.first[column, groups], front.boxes.last[column, groups]
                left[group[part], place[part]] = self._left_in_column(
                    column, groups, *runs, group[part] - groups.start, at[part]
                )
        return left

    def _left_in_column(
        self, column: int, groups: slice, first: Ints, last: Ints, group: Ints, at: Ints
    ) -> Ints:
        """Count the records of neighbouring groups left of leaves; group, at: of every candidate, (n,) each."""
        starts = self._starts[groups.start : groups.stop + 1]
        rows = slice(int(starts[0]), int(starts[-1]))
        codes = self._codes[column, rows]
        weights = None if self._weights is None else self._weights[rows]
        ends = np.cumsum(last - first + 1)
        if ends[-1] > _BINS_PER_ROW * len(codes) + _FEW_BINS:
            return _compared(codes, weights, starts - starts[0], group, at)
        base = np.concatenate([[0], ends[:-1]])
        keys = np.repeat(base + 1 - first, np.diff(starts))
        keys += codes
        before = tally(keys, weights, int(ends[-1])).cumsum()
        found: Ints = before[base[group] + at - first[group]] - before[base[group]]
        return found

    def medians(self, front: Front, depths: Sequence[Ints]) -> Ints:
        """Return the best halving places in the candidates' columns, with records on both sides; as ``front.at``, 0
        for nowhere.

        depths:  by column and leaf, depth of the boundary before the leaf: a box is cut at the least depth.
        """
        found = np.zeros(front.at.shape, dtype=np.int64)
        for column in np.unique(front.columns).tolist():
            group, place = np.nonzero((front.columns == column) & (front.at > 0))
            halves = np.zeros(front.n_groups, dtype=np.int64)
            for groups in _parts(front.boxes.widths[column]):
                runs = front.boxes.first[column, groups], front.boxes.last[column, groups]
                halves[groups] = self._halves(column, groups, *runs, depths[column])
            found[group, place] = halves[group]
        return found

    def _halves(self, column: int, groups: slice, first: Ints, last: Ints, depth: Ints) -> Ints:
        starts = self._starts[groups.start : groups.stop + 1]
        rows = slice(int(starts[0]), int(starts[-1]))
        widths = last - first
        base = np.cumsum(widths) - widths
        leaf = np.arange(int(widths.sum())) - np.repeat(base - first, widths)
        keys = np.repeat(base - first, np.diff(starts)) + self._codes[column, rows]
        counts = tally(keys, None if self._weights is None else self._weights[rows], len(leaf))
        left = np.cumsum(counts) - counts
        left -= np.repeat(left[base], widths)
        whole = np.repeat(np.add.reduceat(counts, base), widths)
        inside = np.where(leaf > np.repeat(first, widths), depth[leaf], _DEEP)
        allowed = (inside < _DEEP) & (inside == np.repeat(np.minimum.reduceat(inside, base), widths))
        allowed &= (left > 0) & (left < whole)
        radix = len(depth)
        keyed = np.where(allowed, np.abs(2 * left - whole) * radix + leaf, _FAR)
        best = np.minimum.reduceat(keyed, base)
        return np.where(best < _FAR, best % radix, 0)

    def goes_left(self, columns: Ints, at: Ints) -> Bools:
        """Return True for the rows left of leaf ``at`` of a column, for every open group: shape (n_open_rows,)."""
        sizes, left = np.diff(self._starts), np.empty(len(self._row), dtype=bool)
        of_row, limit = np.repeat(columns, sizes), np.repeat(at, sizes)
        np.less(self._codes[of_row, np.arange(len(of_row))], limit, out=left)
        return left

    def sides_of(self, groups: Ints, columns: Ints, at: Ints) -> Sides:
        """Return the rows on both sides of a cut of each group. columns, at: of the groups, shape (n_groups,)."""
        sizes = np.diff(self._starts)[groups]
        number = np.repeat(np.arange(len(groups)), sizes)
        rows = np.arange(len(number)) + np.repeat(self._starts[groups] - (np.cumsum(sizes) - sizes), sizes)
        is_right = self._codes[columns[number], rows] >= at[number]
        keys = number + len(groups) * is_right
        labels = [label[rows].astype(np.int64) for label in self._labels]
        weights = None if self._weights is None else self._weights[rows]
        return Sides(labels, keys, 2 * len(groups), weights)

    def measured(self, front: Front, views: Sequence[CellView]) -> Ints:
        """Return the counts of the views on both sides of every candidate. Without a candidate, all records are on
        the left.

        int64, shape (n_measures, 2, n_groups, n_candidates), left first, measures as :func:`measures_of`.
        """
        groups, there = np.arange(front.n_groups), front.at > 0
        columns = np.where(there, front.columns, 0)
        at = np.where(there, front.at, front.boxes.last[0][:, None])
        by_place = []
        for place in range(at.shape[1]):
            sides = self.sides_of(groups, columns[:, place], at[:, place])
            counts = count_by(views, sides.labels, sides.keys, sides.n_keys, sides.weights)
            by_place.append(counts.reshape(len(counts), 2, front.n_groups))
        return np.stack(by_place, axis=-1)

    def follow(self, front: Front, taken: Ints, move: Move) -> None:
        """Go with the groups."""
        is_left = self.goes_left(*front.of(taken))
        sizes, n_groups = np.diff(self._starts), front.n_groups
        child = np.full((2, n_groups), -1, dtype=np.int64)
        child[move.is_right.astype(np.int64), move.parent] = np.arange(len(move.parent))
        parent = np.repeat(np.arange(n_groups), sizes)
        sides = [np.flatnonzero(is_left), np.flatnonzero(~is_left)]
        order = np.concatenate(sides)
        group = np.concatenate([child[side, parent[rows]] for side, rows in enumerate(sides)])
        is_final = move.is_final[group]
        number = self._n_final + np.cumsum(move.is_final) - 1
        self.group[self._row[order[is_final]]] = number[group[is_final]]
        self._n_final += int(move.is_final.sum())
        order, group = order[~is_final], group[~is_final]
        kept = np.bincount(group, minlength=len(move.parent))[~move.is_final]
        self._starts = np.concatenate([[0], np.cumsum(kept)])
        self._row, self._codes = self._row[order], self._codes[:, order]
        self._labels = [label[order] for label in self._labels]
        if self._weights is not None:
            self._weights = self._weights[order]


def _compared(codes: Codes, weights: Ints | None, starts: Ints, group: Ints, at: Ints) -> Ints:
    """Count the records left of leaves, if there are many more leaves than rows."""
    left = np.zeros(len(at), dtype=np.int64)
    slot = np.arange(len(group)) - np.searchsorted(group, group)
    for number in range(int(slot.max(initial=-1)) + 1):
        chosen = np.flatnonzero(slot == number)
        limits = np.zeros(len(starts) - 1, dtype=np.int64)
        limits[group[chosen]] = at[chosen]
        is_left = codes < np.repeat(limits, np.diff(starts))
        before = np.concatenate([[0], np.cumsum(is_left if weights is None else is_left * weights)])
        left[chosen] = np.diff(before[starts])[group[chosen]]
    return left


def _parts(widths: Ints) -> list[slice]:
    """Return runs of neighbouring groups with small histograms, at least one group each."""
    bins = np.cumsum(widths + 1)
    parts, start = [], 0
    while start < len(widths):
        before = bins[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(bins, before + _MOST_BINS, side="right")))
        parts.append(slice(start, stop))
        start = stop
    return parts
