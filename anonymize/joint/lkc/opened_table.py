"""T_g as opened to the parties of a horizontal run: by block, with the same leaf partitions.

A table that links everything is a single block. The first block has the class, if any, and all counts without a
sensitive value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools
from anonymize.cut import Candidate
from anonymize.linked_columns import CountedBlock, Entries, linked_cells, linked_root
from anonymize.lkc.plan import Part
from anonymize.partition import (
    GeneralizedTable,
    LocalRecords,
    Refinement,
    fully_generalized,
    refine,
)
from anonymize.table import CodedTable, Ints, Schema, tally

V = TypeVar("V", bound="np.generic[Any]")


@dataclass
class _Layer:
    """Block: its opened counts, and own records in it.

    stamps:  of each entry; see :meth:`OpenedTable.stamps`.
    """

    block: CountedBlock
    table: GeneralizedTable = field(repr=False)
    records: LocalRecords = field(repr=False)
    stamps: Ints = field(repr=False)


class OpenedTable:
    """View of T_g at a holder. Counts of several blocks stand block after block."""

    def __init__(self, schema: Schema, blocks: Sequence[CountedBlock], table: CodedTable) -> None:
        self._whole, self._table = schema, table
        self._blocks = tuple(blocks)
        self._layers: list[_Layer] = []
        self._n_stamps = 0

    @property
    def own_root(self) -> Ints:
        """Own records of the whole table by cell: int64, shape (n_cells of all blocks,)."""
        return np.concatenate([block.root(self._table) for block in self._blocks])

    def start(self, counts: Ints) -> None:
        """Start from the opened counts of all parties."""
        n_columns = len(self._whole.qid)
        for block, root in zip(self._blocks, self._by_block(counts), strict=True):
            table = fully_generalized(n_columns, root)
            cells = block.own(self._table).cells
            records = LocalRecords(self._table, cells, table)
            self._layers.append(_Layer(block, table, records, self._new_stamps(table.n_entries)))

    def agree_in_all(self, counts: Ints) -> bool:
        """Return True if all blocks have equally many records; counts: of all parties."""
        return len({int(root.sum()) for root in self._by_block(counts)}) == 1

    def root(self, counts: Ints) -> tuple[Schema, Ints]:
        """Return the whole table as :func:`linked_root`, by counts with equal sums in all blocks."""
        return linked_root(self._whole, self._blocks, self._by_block(counts))

    def _by_block(self, counts: Ints) -> list[Ints]:
        return np.split(counts, np.cumsum([block.schema.n_cells for block in self._blocks])[:-1])

    @property
    def table(self) -> GeneralizedTable:
        """Leaf partitions with the counts of the first block."""
        return self._layers[0].table

    @property
    def schema(self) -> Schema:
        """Schema of :attr:`table`."""
        return self._layers[0].block.schema

    @property
    def records(self) -> LocalRecords:
        """Our records in :attr:`table`."""
        return self._layers[0].records

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple((layer.block, layer.table) for layer in self._layers)

    def totals(self, candidate: Candidate) -> Ints:
        """Return the records of every refined entry: int64, shape (n_entries of all blocks,)."""
        tables = [layer.table for layer in self._layers]
        return np.concatenate([table.count[table.entries_of(candidate)] for table in tables])

    def own_counts(self, candidate: Candidate) -> Ints:
        """Count own records per (refined entry, child): int64, shape (n_entries of all blocks, n_children)."""
        layers = self._layers
        return np.concatenate(
            [layer.records.counts(candidate, layer.table.entries_of(candidate)) for layer in layers]
        )

    def own_counts_of_each(self, asked: Sequence[tuple[Candidate, Bools]]) -> list[Ints]:
        """Count as :meth:`own_counts` for several candidates, each in some of its refined entries, shape (n_entries
        of all blocks,).
        """
        taken = zip(*(self._by_layer(candidate, entries) for candidate, entries in asked), strict=True)
        counts = [
            layer.records.counts_of_each(
                [
                    (each, layer.table.entries_of(each)[own])
                    for (each, _), own in zip(asked, of_layer, strict=True)
                ]
            )
            for layer, of_layer in zip(self._layers, taken, strict=bool(asked))
        ]
        return [np.concatenate(of_blocks) for of_blocks in zip(*counts, strict=True)]

    def stamps(self, candidate: Candidate) -> Ints:
        """Return a number of every refined entry, shape (n_entries of all blocks,). An entry has a new number after
        each specialization that refines the entry; no other entry ever has the same number.
        """
        return np.concatenate([layer.stamps[layer.table.entries_of(candidate)] for layer in self._layers])

    def _new_stamps(self, count: int) -> Ints:
        first, self._n_stamps = self._n_stamps, self._n_stamps + count
        return np.arange(first, self._n_stamps)

    def agree_on(self, candidate: Candidate, counts: Ints) -> bool:
        """Return True if every (leaf partition, child) has equally many records in all blocks; counts: of all
        parties.
        """
        sizes = []
        for layer, own in zip(self._layers, self._by_layer(candidate, counts), strict=True):
            partition = layer.table.partition[layer.table.entries_of(candidate)]
            n_partitions, n_children = layer.table.n_partitions, counts.shape[1]
            keys = partition[:, None] * n_children + np.arange(n_children)
            sizes.append(tally(keys.reshape(-1), own.reshape(-1), n_partitions * n_children))
        return all(np.array_equal(sizes[0], other) for other in sizes[1:])

    def refine(self, candidate: Candidate, counts: Ints) -> Refinement:
        """Apply a specialization by all parties' counts, consistent in all blocks. Return the first's refinement."""
        made = []
        for layer, own in zip(self._layers, self._by_layer(candidate, counts), strict=True):
            refinement = refine(layer.table, candidate, own)
            layer.records.follow(candidate, refinement)
            layer.table = refinement.table
            moved = refinement.targets[refinement.targets >= 0]
            stamps = np.concatenate(
                [layer.stamps, np.zeros(layer.table.n_entries - len(layer.stamps), np.int64)]
            )
            stamps[moved] = self._new_stamps(len(moved))
            layer.stamps = stamps
            made.append(refinement)
        return made[0]

    def _by_layer(self, candidate: Candidate, values: NDArray[V]) -> list[NDArray[V]]:
        """Split values of the refined entries of all blocks by block."""
        sizes = [len(layer.table.entries_of(candidate)) for layer in self._layers]
        return np.split(values, np.cumsum(sizes)[:-1])

    @property
    def linked(self) -> GeneralizedTable:
        """T_g; several blocks are linked in the fixed order of values (:mod:`anonymize.linked_columns`)."""
        if len(self._layers) == 1:  # in the order of creation of its entries
            return self.table
        counted = [_in_order(layer.table) for layer in self._layers]
        return GeneralizedTable(self.table.nodes, *linked_cells(self._whole, self._blocks, counted))


def _in_order(table: GeneralizedTable) -> Entries:
    order = np.lexsort([table.cell, table.partition])
    return table.partition[order], table.cell[order], table.count[order]
