"""Reasons why the groups of a kd table were cut no further, from the released boxes and their sizes.

A reader knows the boxes, so the reader sees a group without a finer value, and a group of fewer than 2·K records. A
further group stopped because each place for a cut has a side that breaks the requirement. The table does not tell if
the side would break K or another threshold; the rows of the owner do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.grid import Grid
from anonymize.kd.boxes import Boxes, PublicSplit, boundaries, depths
from anonymize.kd.table import BoxedTable, box_labels
from anonymize.release import Release
from anonymize.table import CodedTable, Ints, QidColumn, Schema, tally
from jobs.file.schema import qid_of
from jobs.lkc.entries import entries_of, greatest_k
from jobs.lkc.forms.form import form_of
from jobs.lkc.kd.checked import boxes_of
from jobs.lkc.settings import PUBLIC
from jobs.task import Task

FINEST, SMALL, REFUSED = range(3)
"""Reasons: every column has its finest value; fewer than 2·K records; no cut that the requirement allows."""


@dataclass(frozen=True)
class Ended:
    """Groups of a table, and the reason why each was cut no further.

    least:   K.
    reason:  of each group: int64, shape (n_groups,).
    """

    schema: Schema = field(repr=False)
    boxes: Boxes = field(repr=False)
    sizes: Ints = field(repr=False)
    least: int
    reason: Ints = field(repr=False)

    @property
    def largest_refused(self) -> Ints:
        """Return the numbers of the groups without an allowed cut, the largest first."""
        found = np.flatnonzero(self.reason == REFUSED)
        largest: Ints = found[np.argsort(-self.sizes[found], kind="stable")]
        return largest

    def values(self, group: int) -> list[tuple[str, str]]:
        """Return the columns of a group with their values."""
        printed = box_labels(self.schema, self.boxes.some(np.array([group])))
        return [
            (column.name, own.labels[own.codes[0]])
            for column, own in zip(self.schema.qid, printed, strict=True)
        ]


def ended(task: Task, release: Release) -> Ended | None:
    """Return the groups of a table with their reasons; None for a table whose labels do not determine boxes."""
    if not form_of(task.job).quasi.generalized(task.job):
        return None
    qid = qid_of(task.job, task.taxonomies)
    table = boxes_of(qid, release)
    return (
        None if table is None else _ended(Schema(qid, None, ("",)), table, greatest_k(entries_of(task.job)))
    )


def _ended(schema: Schema, table: BoxedTable, least: int) -> Ended:
    sizes = table.sizes()
    finest = (table.boxes.widths == 1).all(axis=0)
    reason = np.where(finest, FINEST, np.where(sizes < 2 * least, SMALL, REFUSED))
    return Ended(schema, table.boxes, sizes, least, reason)


def thresholds(task: Task) -> list[str]:
    """Return the thresholds of the requirement beside K, in words."""
    (entry,) = entries_of(task.job)
    of_columns = [f"C of {name}" for name in entry.bounded]
    return [*of_columns, *(f"`{option.key}`" for option in entry.options if option.asks_something)]


def stopped_by_k(task: Task, table: CodedTable, groups: Ended, some: Sequence[int]) -> Iterator[bool]:
    """Yield for each of some groups True if every place for a cut has a side of fewer than K rows.

    table:  the rows of all parties. For the owner alone, because counts inside of a group are finer than the release.
    """
    for group in some:
        inside = _inside(table, groups.boxes, group)
        yield not any(
            (np.minimum(left, int(groups.sizes[group]) - left) >= groups.least).any()
            for left in _lefts(task, table, groups.boxes.some(np.array([group])), inside)
        )


def _inside(table: CodedTable, boxes: Boxes, group: int) -> Bools:
    inside = np.ones(len(table.weights), dtype=bool)
    for codes, first, last in zip(table.qid, boxes.first[:, group], boxes.last[:, group], strict=True):
        inside &= (codes >= first) & (codes < last)
    return inside


def _lefts(task: Task, table: CodedTable, box: Boxes, inside: Bools) -> Iterator[Ints]:
    """Yield for each column the records left of every place where the method may cut a box: int64."""
    weights = table.weights[inside]
    public = PublicSplit(table.schema).candidates(box).at[0] if task.job.lkc.split == PUBLIC else None
    for number, (column, codes) in enumerate(zip(table.schema.qid, table.qid, strict=True)):
        places = _places(column, box, number) if public is None else public[number]
        below = np.cumsum(tally(codes[inside], weights, column.n_leaves))
        yield below[places[places > 0] - 1]


def _places(column: QidColumn, box: Boxes, number: int) -> Ints:
    """Return all boundaries inside a run: `split: median` takes the best of all."""
    first, last = int(box.first[number, 0]), int(box.last[number, 0])
    if isinstance(column.values, Grid):
        return np.arange(first + 1, last, dtype=np.int64)
    return boundaries(depths(column.values), first, last)
