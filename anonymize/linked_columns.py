"""Blocks of columns in joint tables: each block is counted separately, and no link between blocks is opened.

A release that does not link all sensitive columns (semantics §10.15) opens the counts of each block in every group.
The class is a separate block and stays with the quasi-identifiers. Nobody learns which values of different blocks
belong to the same record. The written table links the counts in a fixed order. In each block, a group's records are
sorted by value; records with the same rank form a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymize.criteria.criterion import Criterion, Measure, Tally, tallies_of
from anonymize.errors import SchemaError
from anonymize.table import CodedTable, Combinations, Ints, Schema, tally

Blocks = tuple[tuple[str, ...], ...]
"""Sensitive columns by block. The values of a record stay together within a block. Empty: all columns are linked."""
Entries = tuple[Ints, Ints, Ints]
"""Group, cell and count of the non-empty cells, in the order of group and cell: int64, shape (n_entries,) each."""


@dataclass(frozen=True)
class CountedBlock:
    """Counted block: the class, or some sensitive columns, or the class and all sensitive columns.

    schema:  schema of the block's columns alone.
    axes:    axes of the block in the cells of the whole schema: 0 is the class.
    """

    schema: Schema
    axes: tuple[int, ...]

    def own(self, table: CodedTable) -> CodedTable:
        """Return the rows of a table with the columns of the block."""
        return replace(table, schema=self.schema, cells=self._numbered([table.axis(i) for i in self.axes]))

    def root(self, table: CodedTable) -> Ints:
        """Count the records of a table by own cell: int64, shape (n_own_cells,)."""
        return tally(self.own(table).cells, table.weights, self.schema.n_cells)

    def of_cells(self, whole: Schema, cells: Ints) -> Ints:
        """Return the own cells of cells of the whole schema: int64, the shape of ``cells``."""
        codes = whole.axes(cells)
        return self._numbered([codes[i] for i in self.axes])

    def _numbered(self, codes: Sequence[Ints]) -> Ints:
        sizes = self.schema.cell_shape if 0 in self.axes else self.schema.cell_shape[1:]
        return np.ravel_multi_index(tuple(codes), sizes).astype(np.int64)

    def tells(self, measure: Measure) -> bool:
        """Return True if the block's cells count a measure."""
        return isinstance(measure, Tally) and {i + 1 for i in measure.columns} <= set(self.axes)

    def renumbered(self, counted: Tally) -> Tally:
        """Return the same tally with the column numbers of the block's schema."""
        place = {axis - 1: i for i, axis in enumerate(axis for axis in self.axes if axis)}
        holding = tuple((place[column], value) for column, value in counted.holding)
        return Tally(holding, tuple((place[column], value) for column, value in counted.lacking))


def counted_blocks(schema: Schema, linked: Blocks) -> tuple[CountedBlock, ...]:
    """Return the counted blocks: the whole table, or the class (if present) first and then each block."""
    if not linked:
        everything = range(len(schema.cell_shape))
        return (CountedBlock(schema, tuple(everything)),)
    names = [column.name for column in schema.sensitive]
    blocks = [_block(schema, [names.index(name) + 1 for name in block]) for block in linked]
    return (*([_block(schema, [0])] if schema.class_name is not None else []), *blocks)


def _block(schema: Schema, axes: Sequence[int]) -> CountedBlock:
    has_class = 0 in axes
    own = replace(
        schema,
        class_name=schema.class_name if has_class else None,
        classes=schema.classes if has_class else ("",),
        sensitive=tuple(schema.sensitive[axis - 1] for axis in axes if axis),
    )
    return CountedBlock(own, tuple(axes))


def check_apart(blocks: Sequence[CountedBlock], criteria: Sequence[Criterion]) -> None:
    """Refuse a criterion on columns of several blocks. Raises SchemaError."""
    if not all(any(block.tells(each) for block in blocks) for each in tallies_of(criteria)):
        message = "a criterion looks at several blocks of a table that is counted block by block"
        raise SchemaError("job-invalid", message)


def linked_cells(schema: Schema, blocks: Sequence[CountedBlock], counted: Sequence[Entries]) -> Entries:
    """Link the counts of all blocks in the fixed order of values.

    counted:  entries of every block, with the same number of records in every group of every block.
    """
    ends = [np.cumsum(count) for _, _, count in counted]
    breaks = np.unique(np.concatenate(ends))
    places = [np.searchsorted(own, breaks) for own in ends]
    axes = [np.zeros(len(breaks), dtype=np.int64) for _ in schema.cell_shape]
    for block, (_, cell, _), place in zip(blocks, counted, places, strict=True):
        own = block.schema.axes(cell[place])
        # A block without the class has a single class value, which is no axis of the whole.
        for axis, codes in zip(block.axes, own if 0 in block.axes else own[1:], strict=True):
            axes[axis] = codes
    group = counted[0][0][places[0]]
    cells = np.ravel_multi_index(axes, schema.cell_shape).astype(np.int64)
    order = np.lexsort([cells, group])
    return group[order], cells[order], np.diff(breaks, prepend=0)[order]


def linked_root(schema: Schema, blocks: Sequence[CountedBlock], roots: Sequence[Ints]) -> tuple[Schema, Ints]:
    """Link the whole table the same way. Return the schema of the occurring cells and their counts, (n_cells,).

    roots:  records by own cell of every block; all sums are equal.
    """
    cells = [np.flatnonzero(counts) for counts in roots]
    counted = [(np.zeros_like(c), c, own[c]) for c, own in zip(cells, roots, strict=True)]
    _, cell, count = linked_cells(schema, blocks, counted)
    return replace(schema, occurring=Combinations(schema.axes(cell))), count


def relinked(schema: Schema, blocks: Sequence[CountedBlock], entries: Entries) -> Entries:
    """Return the counted entries as written for a table that shows only blocks.

    entries:  in any order.
    """
    group, cell, count = entries
    counted = []
    for block in blocks:
        keys = group * block.schema.n_cells + block.of_cells(schema, cell)
        present, place = np.unique(keys, return_inverse=True)
        of_block = tally(place, count, len(present))
        counted.append((*np.divmod(present, block.schema.n_cells), of_block))
    return linked_cells(schema, blocks, counted)
