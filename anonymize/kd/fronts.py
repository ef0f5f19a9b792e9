"""Loop of kd: fronts of groups that are cut side by side (semantics §11.3).

Each turn cuts every open group by its first valid candidate. The module holds the common knowledge of a joint run:
boxes, sizes, and the next candidates. A :class:`Cutter` decides the valid candidates and the counts on both sides of
a cut. It is a single holder, the parties of a joint run, or the replay of a release.

A turn of :func:`anonymize.tds.specialize_top_down` applies or discards a single candidate of the whole table. Here a
turn has a verdict for every open group, and observers receive numbers of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.kd.boxes import Boxes, Candidates, joined_boxes, whole
from anonymize.table import Ints, Schema, tally
from anonymize.tds import Observer, Turn

NONE = -1
"""Value in a verdict without a valid candidate in the front."""


@dataclass(frozen=True)
class Front:
    """Next candidates of every open group, in the order of the tests.

    boxes:    boxes of the open groups.
    sizes:    records of the groups: int64, shape (n_groups,).
    columns:  column of every candidate: int64, shape (n_groups, n_candidates).
    at:       first leaf of the right-hand side, 0 for no candidate: as ``columns``.
    depths:   cuts above each group: int64, shape (n_groups,).
    """

    boxes: Boxes
    sizes: Ints = field(repr=False)
    columns: Ints = field(repr=False)
    at: Ints = field(repr=False)
    depths: Ints = field(repr=False)

    @property
    def n_groups(self) -> int:
        return len(self.sizes)

    def of(self, taken: Ints) -> tuple[Ints, Ints]:
        """Return column and leaf of every group's taken candidate; for NONE, the first column and its box's end."""
        groups, is_cut = np.arange(self.n_groups), taken != NONE
        columns = np.where(is_cut, self.columns[groups, taken], 0)
        return columns, np.where(is_cut, self.at[groups, taken], self.boxes.last[0])


@dataclass(frozen=True)
class Verdict:
    """Verdict of a cutter on a front.

    taken:  first valid candidate of every group, or NONE: int64, shape (n_groups,).
    left:   records left of the cut; all records for NONE: int64, shape (n_groups,).
    """

    taken: Ints = field(repr=False)
    left: Ints = field(repr=False)


@dataclass(frozen=True)
class Move:
    """Result of the cuts of a front: the sides with records.

    All left-hand sides come first, in the order of the groups, with the uncut groups; then all right-hand sides.

    parent:    original group of each side: int64, shape (n_sides,).
    is_right:  True for right-hand sides. is_final: True for a group without further cuts. bool, shape (n_sides,).
    """

    parent: Ints = field(repr=False)
    is_right: Bools = field(repr=False)
    is_final: Bools = field(repr=False)


class CutCounts:
    """Number of groups cut in a column, by the number of cuts before."""

    def __init__(self, schema: Schema) -> None:
        self._n_columns = len(schema.qid)
        self._found: list[tuple[Ints, Ints]] = []

    def add(self, front: Front, verdict: Verdict) -> None:
        columns, _ = front.of(verdict.taken)
        is_cut = verdict.taken != NONE
        self._found.append((front.depths[is_cut], columns[is_cut]))

    @property
    def by_column(self) -> Ints:
        """Groups: int64, shape (n_columns, n_depths)."""
        none = np.zeros(0, dtype=np.int64)
        depths = np.concatenate([none, *(depths for depths, _ in self._found)])
        columns = np.concatenate([none, *(columns for _, columns in self._found)])
        n_depths = int(depths.max(initial=-1)) + 1
        counted = tally(columns * n_depths + depths, None, self._n_columns * n_depths)
        return counted.reshape(self._n_columns, n_depths)


class Split(Protocol):
    """Places where boxes may be cut."""

    def candidates(self, boxes: Boxes) -> Candidates: ...


class Fronts:
    """Open and final groups of a run."""

    def __init__(self, schema: Schema, split: Split, n_records: int, least: int) -> None:
        """``least``: K. A group with fewer than 2·K records is final."""
        self._split = split
        self._least = least
        self._boxes = whole(schema).some(np.zeros(0, dtype=np.int64))
        self._sizes = self._used = self._depths = np.zeros(0, dtype=np.int64)
        self._columns = self._at = np.zeros((0, 0), dtype=np.int64)
        self._final: list[tuple[Boxes, Ints]] = []
        root, sizes = whole(schema), np.array([n_records], dtype=np.int64)
        columns, at = self._entered(root)
        if self._is_final(sizes, at)[0]:
            self._final.append((root, sizes))
        else:
            self._boxes, self._sizes, self._columns, self._at = root, sizes, columns, at
            self._used = self._depths = np.zeros(1, dtype=np.int64)

    def next(self, width: int | None = None) -> Front | None:
        """Return the next ``width`` candidates of every open group, by default all; None without open groups."""
        if len(self._sizes) == 0:
            return None
        most = self._at.shape[1]
        places = self._used[:, None] + np.arange(most if width is None else min(width, most))
        inside = np.minimum(places, most - 1)
        at = np.where(places < most, np.take_along_axis(self._at, inside, axis=1), 0)
        columns = np.take_along_axis(self._columns, inside, axis=1)
        return Front(self._boxes, self._sizes, columns, at, self._depths)

    def follow(self, front: Front, verdict: Verdict) -> Move:
        """Cut the groups of the last front."""
        is_cut = verdict.taken != NONE
        left, right = front.boxes.sides(*front.of(verdict.taken))
        lefts = np.flatnonzero(verdict.left > 0)
        rights = np.flatnonzero(is_cut & (front.sizes > verdict.left))
        parent = np.concatenate([lefts, rights])
        boxes = joined_boxes([left.some(lefts), right.some(rights)])
        sizes = np.concatenate([verdict.left[lefts], (front.sizes - verdict.left)[rights]])
        used = np.where(is_cut, 0, self._used + front.at.shape[1])[parent]
        columns, at = self._columns[parent], self._at[parent]
        fresh = is_cut[parent]
        columns[fresh], at[fresh] = self._entered(boxes.some(np.flatnonzero(fresh)))
        left_over = np.where(np.arange(at.shape[1]) >= used[:, None], at, 0)
        is_final = self._is_final(sizes, left_over)
        final, kept = np.flatnonzero(is_final), np.flatnonzero(~is_final)
        self._final.append((boxes.some(final), sizes[final]))
        self._boxes, self._sizes, self._used = boxes.some(kept), sizes[kept], used[kept]
        self._columns, self._at = columns[kept], at[kept]
        self._depths = (front.depths + is_cut)[parent[kept]]
        return Move(parent, np.arange(len(parent)) >= len(lefts), is_final)

    def boxes_after(self, front: Front, taken: Ints) -> Boxes:
        """Return the boxes of all groups after the cuts of the front, with sides without records.

        taken:  as in :class:`Verdict`.
        """
        left, right = front.boxes.sides(*front.of(taken))
        return joined_boxes(
            [*(boxes for boxes, _ in self._final), left, right.some(np.flatnonzero(taken != NONE))]
        )

    @property
    def final(self) -> tuple[Boxes, Ints]:
        """Final groups and their records, in the order of becoming final."""
        return joined_boxes([boxes for boxes, _ in self._final]), np.concatenate([n for _, n in self._final])

    def _entered(self, boxes: Boxes) -> tuple[Ints, Ints]:
        """Return columns and leaves of the boxes' candidates; existing candidates come first."""
        found = self._split.candidates(boxes)
        columns, at = found.columns, found.in_order(found.at)
        first = np.argsort(at == 0, axis=1, kind="stable")
        return np.take_along_axis(columns, first, axis=1), np.take_along_axis(at, first, axis=1)

    def _is_final(self, sizes: Ints, at: Ints) -> Bools:
        final: Bools = (sizes < 2 * self._least) | ~at.any(axis=1)
        return final


class Cutter(Protocol):
    """Answers the loop."""

    def next(self) -> Front | None:
        """Return the next candidates of every open group, None without open groups."""
        ...

    def verdict(self, front: Front) -> Turn[Verdict]:
        """Return the first valid candidate of every group."""
        ...

    def apply(self, front: Front, verdict: Verdict) -> None:
        """Cut."""
        ...


def cut_fronts(cutter: Cutter, observer: Observer) -> Turn[None]:
    """Cut groups until all groups are final."""
    number = 0
    while (front := cutter.next()) is not None:
        number += 1
        verdict = yield from cutter.verdict(front)
        cutter.apply(front, verdict)
        observer.front(number, front.n_groups, int((verdict.taken != NONE).sum()))


def first_valid(valid: Bools) -> Ints:
    """Return the first valid candidate of every group, or NONE; valid: shape (n_groups, n_candidates)."""
    found: Ints = np.where(valid.any(axis=1), valid.argmax(axis=1), NONE)
    return found
