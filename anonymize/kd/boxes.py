"""Boxes and their cut points: per column a run of leaves, and the cut points of `split: public` (semantics §11.2).

A box of a numeric column is any interval of the grid; of a categorical column, a node or neighbouring children of the
same node. Every boundary between two leaves has a number: the depth of the lowest node above both. A run is cut at
the boundaries with the least depth, which lie between the children of the lowest node above the run. A grid has no
nodes, so all its boundaries are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np

from anonymize.grid import Grid
from anonymize.table import Ints, QidColumn, Schema
from anonymize.taxonomy import Node, Taxonomy

FRACTIONS = tuple((t, k) for t in (1, 2, 3) for k in range(1, 1 << t, 2))
"""Places of cuts, in order: after about k / 2**t of the leaves of a box."""
N_SLOTS = len(FRACTIONS)
SIBLINGS = "|"
"""Separator of the labels of neighbouring children of a node."""
_TIERS = tuple(
    [slot for slot, (of, _) in enumerate(FRACTIONS) if of == t] for t in sorted({t for t, _ in FRACTIONS})
)


@dataclass(frozen=True)
class Boxes:
    """Runs of leaves [first, last), a run for every column: int64, shape (n_columns, n_boxes) each."""

    first: Ints = field(repr=False)
    last: Ints = field(repr=False)

    @property
    def n_boxes(self) -> int:
        return int(self.first.shape[1])

    @property
    def widths(self) -> Ints:
        return self.last - self.first

    def some(self, boxes: Ints) -> Boxes:
        """Return the boxes with the given numbers."""
        return Boxes(self.first[:, boxes], self.last[:, boxes])

    def sides(self, columns: Ints, at: Ints) -> tuple[Boxes, Boxes]:
        """Return the parts left and right of leaf ``at`` of a column, for every box; shape (n_boxes,) each."""
        boxes = np.arange(self.n_boxes)
        last, first = self.last.copy(), self.first.copy()
        last[columns, boxes] = at
        first[columns, boxes] = at
        return Boxes(self.first, last), Boxes(first, self.last)


def whole(schema: Schema) -> Boxes:
    """Return the box of the whole domain."""
    last = np.array([[column.n_leaves] for column in schema.qid], dtype=np.int64).reshape(-1, 1)
    return Boxes(np.zeros_like(last), last)


def joined_boxes(parts: Sequence[Boxes]) -> Boxes:
    """Return the boxes of all parts, part after part, for the same schema."""
    return Boxes(
        np.concatenate([part.first for part in parts], axis=1),
        np.concatenate([part.last for part in parts], axis=1),
    )


def depths(taxonomy: Taxonomy) -> Ints:
    """Return the depth of the lowest node above leaves i − 1 and i, at i > 0: int64, shape (n_leaves,)."""
    found = np.zeros(len(taxonomy.leaves), dtype=np.int64)
    depth = [0] * len(taxonomy.nodes)
    for place, children in enumerate(taxonomy.children):
        for child in children:
            depth[child] = depth[place] + 1
        for child in children[1:]:
            found[taxonomy.nodes[child].first] = depth[place]
    return found


def boundaries(depth: Ints, first: int, last: int) -> Ints:
    """Return the cut points of a run of a categorical column: first leaves of the right-hand sides, ascending."""
    inside = depth[first + 1 : last]
    if len(inside) == 0:
        return inside
    found: Ints = first + 1 + np.flatnonzero(inside == inside.min())
    return found


@dataclass(frozen=True)
class Candidates:
    """Possible cuts of boxes, column by column, and the order of the columns.

    at:     first leaf of the right-hand side, 0 for no candidate: int64, shape (n_boxes, n_columns, N_SLOTS).
    order:  columns by the share that the box covers, largest first: int64, shape (n_boxes, n_columns).
    """

    at: Ints = field(repr=False)
    order: Ints = field(repr=False)

    @property
    def columns(self) -> Ints:
        """Column of every candidate, in the order of :meth:`in_order`."""
        return self.in_order(np.broadcast_to(np.arange(self.at.shape[1])[None, :, None], self.at.shape))

    def in_order(self, values: Ints) -> Ints:
        """Arrange values of candidates in the order of the tests: shape (n_boxes, n_columns · N_SLOTS)."""
        by_rank = np.take_along_axis(values, self.order[:, :, None], axis=1)
        return np.concatenate(
            [by_rank[:, :, tier].reshape(len(values), values.shape[1] * len(tier)) for tier in _TIERS], axis=1
        )


class PublicSplit:
    """Cut points of `split: public`, which follow from the box alone."""

    def __init__(self, schema: Schema) -> None:
        self._columns = [
            _GridCuts() if isinstance(column.values, Grid) else _TaxonomyCuts(column.values)
            for column in schema.qid
        ]
        self._whole = np.array([max(column.n_leaves - 1, 1) for column in schema.qid], dtype=np.int64)

    def candidates(self, boxes: Boxes) -> Candidates:
        """Return all candidates of the boxes: t = 1, 2, 3 and odd k < 2**t with 2**t·p − w·k nearest to 0."""
        at = np.empty((boxes.n_boxes, len(self._columns), N_SLOTS), dtype=np.int64)
        for number, cuts in enumerate(self._columns):
            at[:, number] = cuts.at(boxes.first[number], boxes.last[number])
        for slot in range(1, N_SLOTS):
            at[:, :, slot][(at[:, :, :slot] == at[:, :, slot : slot + 1]).any(axis=2)] = 0
        # Different quotients of numbers below 2**20 differ by 2**-40, and equal quotients are rounded alike.
        share = ((boxes.widths - 1) / self._whole[:, None]).T
        return Candidates(at, np.argsort(-share, axis=1, kind="stable"))


class _GridCuts:
    """Every cell boundary inside an interval is a cut point."""

    def at(self, first: Ints, last: Ints) -> Ints:
        width = (last - first)[:, None]
        t, k = np.array(FRACTIONS, dtype=np.int64).T
        # The integer nearest to width·k / 2**t, the smaller of two.
        left = np.clip((2 * width * k + (1 << t) - 1) >> (t + 1), 1, np.maximum(width - 1, 1))
        return np.where(width > 1, first[:, None] + left, 0)


class _TaxonomyCuts:
    """Cut points between children of the lowest node that covers a run."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._depth = depths(taxonomy)
        self._found: dict[tuple[int, int], list[int]] = {}

    def at(self, first: Ints, last: Ints) -> Ints:
        radix = len(self._depth) + 1
        runs, inverse = np.unique(first * radix + last, return_inverse=True)
        by_run = [self._of_run(*divmod(run, radix)) for run in runs.tolist()]
        return np.array(by_run, dtype=np.int64).reshape(-1, N_SLOTS)[inverse]

    def _of_run(self, first: int, last: int) -> list[int]:
        if (first, last) not in self._found:
            cuts, width = boundaries(self._depth, first, last), last - first
            self._found[first, last] = [
                int(cuts[np.abs(((cuts - first) << t) - width * k).argmin()]) if len(cuts) else 0
                for t, k in FRACTIONS
            ]
        return self._found[first, last]


class Labels:
    """Labels of the boxes of a column: an interval, the deepest node with these leaves, or siblings `A|B|C`."""

    def __init__(self, column: QidColumn) -> None:
        self._column = column
        self.of = cache(self._of)
        if isinstance(column.values, Taxonomy):
            nodes = column.values.nodes
            self._depth = depths(column.values)
            # Path order: of nodes with the same leaves the deepest comes last.
            self._node: Mapping[tuple[int, int], str] = {
                (node.first, node.last): column.label(node) for node in nodes
            }

    def _of(self, first: int, last: int) -> str:
        if isinstance(self._column.values, Grid):
            return self._column.values.label(Node(first, last))
        if (first, last) in self._node:
            return self._node[first, last]
        edges = [first, *boundaries(self._depth, first, last).tolist(), last]
        return SIBLINGS.join(self._node[run] for run in pairwise(edges))
