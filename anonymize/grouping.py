"""Groups of records that readers of a release distinguish by the leaf numbers of quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from anonymize.cut import Cut
from anonymize.table import Codes, Ints

NOWHERE = -1
"""Label of a row outside all cells or boxes."""


@dataclass(frozen=True)
class CellsOfColumns:
    """Groups of a cut of every column. Rows of a group share the cell of each column that a reader knows.

    cells:  cell of every leaf, by column: int64, shape (n_leaves,).
    """

    cells: tuple[Ints, ...] = field(repr=False)


@dataclass(frozen=True)
class BoxesOfRows:
    """Groups that are boxes over all columns, made by the method kd.

    first, last:  run of leaves [first, last) of every column: int64, shape (n_columns, n_boxes) each.
    """

    first: Ints = field(repr=False)
    last: Ints = field(repr=False)


Grouping: TypeAlias = CellsOfColumns | BoxesOfRows


def grouping_of_cut(cut: Cut, sizes: Sequence[int]) -> CellsOfColumns:
    """Return the groups of a cut. sizes: the number of leaves of every column."""
    cells = [np.full(n, NOWHERE, dtype=np.int64) for n in sizes]
    for own, nodes in zip(cells, cut.nodes, strict=True):
        for cell, node in enumerate(nodes):
            own[node.leaves] = cell
    return CellsOfColumns(tuple(cells))


def boxes_of(boxes: BoxesOfRows, qid: Sequence[Codes]) -> Ints:
    """Return the box of every row, or NOWHERE: int64, shape (n_rows,).

    The boxes must result from cuts of a single box through whole groups; otherwise raises ValueError.
    """
    codes = [np.asarray(column, dtype=np.int64) for column in qid]
    found = np.full(len(codes[0]) if codes else 0, NOWHERE, dtype=np.int64)
    parts = [(np.arange(boxes.first.shape[1]), np.arange(len(found)))]
    while parts:
        some, rows = parts.pop()
        if len(rows) == 0 or len(some) == 0:
            continue
        if len(some) == 1:
            (box,) = some
            inside = np.ones(len(rows), dtype=np.bool_)
            for number, own in enumerate(codes):
                inside &= (own[rows] >= boxes.first[number, box]) & (own[rows] < boxes.last[number, box])
            found[rows[inside]] = box
            continue
        column, at = _plane(boxes.first[:, some], boxes.last[:, some])
        left = boxes.last[column, some] <= at
        before = codes[column][rows] < at
        parts += [(some[left], rows[before]), (some[~left], rows[~before])]
    return found


def _plane(first: Ints, last: Ints) -> tuple[int, int]:
    """Return a column and a leaf of a plane that no box crosses, nearest to the middle of the boxes."""
    middle = first.shape[1] / 2
    best: tuple[float, int, int] | None = None
    for column in range(len(first)):
        order = np.argsort(first[column], kind="stable")
        begins, reach = first[column, order], np.maximum.accumulate(last[column, order])
        places = 1 + np.flatnonzero(begins[1:] >= reach[:-1])
        if len(places):
            place = int(places[np.abs(places - middle).argmin()])
            found = (abs(place - middle), column, int(begins[place]))
            best = found if best is None else min(best, found)
    if best is None:
        raise ValueError("boxes that no cuts leave")
    return best[1], best[2]
