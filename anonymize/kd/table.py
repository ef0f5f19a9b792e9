"""Result of a kd run: final groups with their boxes, and the counts of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anonymize.errors import DataError
from anonymize.kd.boxes import Boxes, Labels
from anonymize.release import LabelledColumn, Release, narrowed, with_cells
from anonymize.table import CodedTable, Codes, Ints, Schema, tally


@dataclass(frozen=True)
class BoxedTable:
    """Groups, in the order of their boxes, and their non-empty cells, in the order of group and cell.

    boxes:  boxes of the groups, without a common combination of leaves.
    group:  group of each entry: int64, shape (n_entries,).
    cell:   cell of each entry (class and sensitive values): int64, shape (n_entries,).
    count:  records of each entry, positive: int64, shape (n_entries,).
    """

    boxes: Boxes
    group: Ints = field(repr=False)
    cell: Ints = field(repr=False)
    count: Ints = field(repr=False)

    @property
    def n_groups(self) -> int:
        return self.boxes.n_boxes

    def sizes(self) -> Ints:
        """Count the records of every group: int64, shape (n_groups,)."""
        return tally(self.group, self.count, self.n_groups)


def in_box_order(boxes: Boxes) -> Ints:
    """Return the numbers of boxes in an order that depends on the boxes alone: by column, first leaf before last."""
    keys = [key for first, last in zip(boxes.first, boxes.last, strict=True) for key in (first, last)]
    order: Ints = np.lexsort(keys[::-1])
    return order


def boxed(table: CodedTable, boxes: Boxes, group: Ints) -> tuple[BoxedTable, Ints]:
    """Count the cells of groups. Return the counts, and the group of every row in the order of the boxes.

    group:  box number of every row: int64, shape (n_rows,).
    """
    order = in_box_order(boxes)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    groups = rank[group]
    keys, inverse = np.unique(groups * table.schema.n_cells + table.cells, return_inverse=True)
    counted = tally(inverse, table.weights, len(keys))
    return BoxedTable(boxes.some(order), *np.divmod(keys, table.schema.n_cells), counted), groups


def release_of_boxes(schema: Schema, table: BoxedTable) -> Release:
    """Print the table: a row for each entry, with its number of records."""
    return replace(_released(schema, table.boxes, table.group, table.cell), counts=table.count)


def release_of_boxed_rows(table: CodedTable, boxes: Boxes, group: Ints) -> Release:
    """Generalize coded rows. Rows stay in their order, with their numbers of records.

    group:  box number of every row.
    """
    return replace(_released(table.schema, boxes, group, table.cells), counts=table.weights)


def _released(schema: Schema, boxes: Boxes, group: Ints, cells: Ints) -> Release:
    """Print rows. group, cells: of every row."""
    printed = zip(schema.qid, box_labels(schema, boxes), strict=True)
    qid = {column.name: LabelledColumn(own.labels, own.codes[group]) for column, own in printed}
    return with_cells(qid, schema, cells)


def _labelled(labels: Labels, first: Ints, last: Ints) -> LabelledColumn:
    runs, of_box = np.unique(np.stack([first, last]), axis=1, return_inverse=True)
    return narrowed(tuple(labels.of(*run) for run in runs.T.tolist()), of_box.reshape(-1))


class GroupsByLeaves:
    """Groups of rows, found again by their leaves.

    Combinations of leaves are numbered column by column: the number so far, then the leaf.
    """

    def __init__(self, schema: Schema, qid: Sequence[Codes], group: Ints) -> None:
        """Number the rows. qid: leaf numbers by column. group: of every row: int64, shape (n_rows,) each."""
        self._radices = [column.n_leaves for column in schema.qid]
        self._known: list[Ints] = []
        number = np.zeros(len(group), dtype=np.int64)
        for radix, codes in zip(self._radices, qid, strict=True):
            known, number = np.unique(number * radix + codes, return_inverse=True)
            self._known.append(known)
        self._group = np.zeros(len(self._known[-1]), dtype=np.int64)
        self._group[number] = group

    def of(self, qid: Sequence[Codes]) -> Ints:
        """Return the groups of other rows: int64, shape (n_rows,). Raises DataError for unknown combinations."""
        number = np.zeros(len(qid[0]), dtype=np.int64)
        for radix, codes, known in zip(self._radices, qid, self._known, strict=True):
            keys = number * radix + codes
            number = np.searchsorted(known, keys)
            if not np.isin(keys, known).all():
                raise DataError(
                    "data-unreadable", "the table changed while it was read", remedy="start again"
                )
        return self._group[number]


def box_labels(schema: Schema, boxes: Boxes) -> list[LabelledColumn]:
    """Return the labels of boxes, column by column: a code for each box."""
    return [
        _labelled(Labels(column), first, last)
        for column, first, last in zip(schema.qid, boxes.first, boxes.last, strict=True)
    ]
