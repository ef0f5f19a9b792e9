"""Blocks of columns in joint tables: what is counted block by block, and told of no record beyond its block.

A release that does not link all sensitive columns (semantics §10.15) tells of every group the counts of each block;
the class is a block of its own, which stays with the quasi-identifiers. Which values of different blocks are one
record's nobody is told. A table with such counts is written down linked in one fixed way, which follows from them:
block by block the records of a group in the order of their values, the first of all blocks together, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anonymize.criteria.criterion import Criterion, Measure, Tally, tallies_of
from anonymize.kd.table import BoxedTable
from anonymize.table import CodedTable, Ints, Schema, tally

Linked = tuple[tuple[str, ...], ...]
"""Sensitive columns by block; none: all of them in one block, with the class."""
Entries = tuple[Ints, Ints, Ints]
"""Group, cell and count of the non-empty cells, in the order of group and cell: int64, shape (n_entries,) each."""


@dataclass(frozen=True)
class Block:
    """The class, or some sensitive columns, or all of both.

    schema:    with these alone.
    axes:      which they are of the axes of the whole schema's cells: 0 is the class.
    of_cells:  by cell of the whole schema its own: int64, shape (n_cells,).
    """

    schema: Schema
    axes: tuple[int, ...]
    of_cells: Ints = field(repr=False)

    def own(self, table: CodedTable) -> CodedTable:
        """The rows of a table as the block sees them."""
        return replace(table, schema=self.schema, cells=self.of_cells[table.cells])

    def counts(self, cell_counts: Ints) -> Ints:
        """Records by own cell, from those by cell: int64, shape (n_own_cells,)."""
        return tally(self.of_cells, cell_counts, self.schema.n_cells)

    def tells(self, measure: Measure) -> bool:
        """Whether a measure is counted in its cells."""
        return isinstance(measure, Tally) and {i + 1 for i in measure.columns} <= set(self.axes)

    def renumbered(self, counted: Tally) -> Tally:
        """The same tally of its own schema."""
        place = {axis - 1: i for i, axis in enumerate(axis for axis in self.axes if axis)}
        holding = tuple((place[column], value) for column, value in counted.holding)
        return Tally(holding, tuple((place[column], value) for column, value in counted.lacking))


def blocks_of(schema: Schema, linked: Linked) -> tuple[Block, ...]:
    """The blocks of a schema; if they are several, that of the class first, where there is one."""
    if not linked:
        everything = range(len(schema.cell_shape))
        return (Block(schema, tuple(everything), np.arange(schema.n_cells)),)
    names = [column.name for column in schema.sensitive]
    blocks = [_block(schema, [names.index(name) + 1 for name in block]) for block in linked]
    return (*([_block(schema, [0])] if schema.class_name is not None else []), *blocks)


def _block(schema: Schema, axes: Sequence[int]) -> Block:
    has_class = 0 in axes
    own = replace(
        schema,
        class_name=schema.class_name if has_class else None,
        classes=schema.classes if has_class else ("",),
        sensitive=tuple(schema.sensitive[axis - 1] for axis in axes if axis),
    )
    codes = schema.axes(np.arange(schema.n_cells))
    of_cells = np.ravel_multi_index([codes[axis] for axis in axes], [schema.cell_shape[a] for a in axes])
    return Block(own, tuple(axes), of_cells.astype(np.int64))


def is_told(blocks: Sequence[Block], measure: Measure) -> bool:
    """Whether a measure is counted in the cells of one block."""
    return any(block.tells(measure) for block in blocks)


def is_public(blocks: Sequence[Block], criterion: Criterion) -> bool:
    """Whether all that a criterion takes of a group is counted in the cells of blocks."""
    return all(is_told(blocks, measure) for measure in tallies_of([criterion]))


def linked_cells(schema: Schema, blocks: Sequence[Block], counted: Sequence[Entries]) -> Entries:
    """Link what is counted of blocks in the one way that follows from it.

    counted:  of every block, with equally many records in every group.
    """
    ends = [np.cumsum(count) for _, _, count in counted]
    breaks = np.unique(np.concatenate(ends))
    places = [np.searchsorted(own, breaks) for own in ends]
    axes = [np.zeros(len(breaks), dtype=np.int64) for _ in schema.cell_shape]
    for block, (_, cell, _), place in zip(blocks, counted, places, strict=True):
        own = block.schema.axes(cell[place])
        # A block without the class has one class value, which is no axis of the whole.
        for axis, codes in zip(block.axes, own if 0 in block.axes else own[1:], strict=True):
            axes[axis] = codes
    group = counted[0][0][places[0]]
    cells = np.ravel_multi_index(axes, schema.cell_shape).astype(np.int64)
    order = np.lexsort([cells, group])
    return group[order], cells[order], np.diff(breaks, prepend=0)[order]


def relinked(schema: Schema, blocks: Sequence[Block], table: BoxedTable) -> BoxedTable:
    """A table as it is written down where only its blocks are told."""
    counted = []
    for block in blocks:
        keys = table.group * block.schema.n_cells + block.of_cells[table.cell]
        present, place = np.unique(keys, return_inverse=True)
        count = tally(place, table.count, len(present))
        counted.append((*np.divmod(present, block.schema.n_cells), count))
    return BoxedTable(table.boxes, *linked_cells(schema, blocks, counted))
