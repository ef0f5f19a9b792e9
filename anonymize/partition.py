"""Current generalized table T_g: leaf partitions with their counts.

T_g consists of its non-empty entries (leaf partition × cell → count): the released table in counted form. It is
public in a joint run and the holder's own in a single-holder run. A refinement takes only the counts of the entries'
children from the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anonymize.cut import Candidate, child_of_leaf
from anonymize.table import CodedTable, Codes, Ints, Schema, tally


@dataclass(frozen=True)
class GeneralizedTable:
    """Leaf partitions and the counts of their non-empty cells.

    nodes:      first leaf of each partition's node, per column: int64, shape (n_columns, n_partitions).
                Within a cut the first leaf identifies the node.
    partition:  partition of each entry: int64, shape (n_entries,).
    cell:       cell of each entry (class and sensitive values): int64, shape (n_entries,).
    count:      records of each entry, positive: int64, shape (n_entries,).
    """

    nodes: Ints = field(repr=False)
    partition: Ints = field(repr=False)
    cell: Ints = field(repr=False)
    count: Ints = field(repr=False)

    @property
    def n_partitions(self) -> int:
        return int(self.nodes.shape[1])

    @property
    def n_entries(self) -> int:
        return len(self.cell)

    @property
    def n_records(self) -> int:
        return int(self.count.sum())

    def sizes(self) -> Ints:
        """Count the records per partition: int64, shape (n_partitions,). The array is not to be changed."""
        return self._sizes

    @cached_property
    def _sizes(self) -> Ints:
        return tally(self.partition, self.count, self.n_partitions)

    def entries_of(self, candidate: Candidate) -> Ints:
        """Return the numbers of the entries that the candidate refines, ascending."""
        holds = self.nodes[candidate.column] == candidate.node.first
        return np.flatnonzero(holds[self.partition])

    def class_counts(self, column: int, first: int, schema: Schema) -> Ints:
        """Return the records per class value of the node with first leaf ``first``: int64, shape (n_classes,)."""
        entries = np.flatnonzero((self.nodes[column] == first)[self.partition])
        classes = schema.classes_of(self.cell[entries])
        return tally(classes, self.count[entries], schema.n_classes)


@dataclass(frozen=True)
class Refinement:
    """Change of T_g by a specialization: the new table, and the new places of its old entries.

    entries:  the refined entries of the old table, shape (n,).
    targets:  new entry number of (refined entry, child), -1 where empty: int64, shape (n, n_children).
    """

    table: GeneralizedTable
    entries: Ints = field(repr=False)
    targets: Ints = field(repr=False)
    candidate: Candidate


def fully_generalized(n_columns: int, cell_counts: Ints) -> GeneralizedTable:
    """Return a single partition with all records; cell_counts has shape (n_cells,)."""
    cells = np.flatnonzero(cell_counts)
    return GeneralizedTable(
        np.zeros((n_columns, 1), dtype=np.int64),
        np.zeros(len(cells), dtype=np.int64),
        cells,
        cell_counts[cells],
    )


def refine(table: GeneralizedTable, candidate: Candidate, counts: Ints) -> Refinement:
    """Apply a specialization to T_g.

    counts: records of every refined entry per child, shape (n refined entries, n_children), in the order of
    :meth:`GeneralizedTable.entries_of`. Empty children leave no trace. A partition's first non-empty child keeps its
    number; further children are appended in (partition, child) order. Entries follow the same rule.
    """
    entries = table.entries_of(candidate)
    owners = table.partition[entries]
    old = occurring(owners, table.n_partitions)
    row = _places(old, table.n_partitions)[owners]
    occupied = np.zeros((len(old), len(candidate.children)), dtype=bool)
    np.logical_or.at(occupied, row, counts > 0)
    partition_targets = _numbered(occupied, old, table.n_partitions)
    entry_targets = _numbered(counts > 0, entries, table.n_entries)

    nodes = _grown(table.nodes, _parents(partition_targets, old, table.n_partitions))
    first_leaves = np.array([child.first for child in candidate.children], dtype=np.int64)
    at, child = np.nonzero(occupied)
    nodes[candidate.column, partition_targets[at, child]] = first_leaves[child]

    parents = _parents(entry_targets, entries, table.n_entries)
    partition, cell, count = (_grown(each, parents) for each in (table.partition, table.cell, table.count))
    at, child = np.nonzero(counts > 0)
    partition[entry_targets[at, child]] = partition_targets[row[at], child]
    count[entry_targets[at, child]] = counts[at, child]
    return Refinement(GeneralizedTable(nodes, partition, cell, count), entries, entry_targets, candidate)


def _numbered(present: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], old: Ints, n_old: int) -> Ints:
    """Number the present children: the first of each row takes the old number, the rest follow after."""
    targets = np.full(present.shape, -1, dtype=np.int64)
    first = present & (present.cumsum(axis=1) == 1)
    targets[first] = old[np.nonzero(first)[0]]
    rest = present & ~first
    targets[rest] = n_old + np.arange(int(rest.sum()))
    return targets


def _parents(targets: Ints, old: Ints, n_old: int) -> Ints:
    """Return the old item of each appended item, in the order of their numbers: shape (n_appended,)."""
    return old[np.nonzero(targets >= n_old)[0]]


def _grown(values: Ints, parents: Ints) -> Ints:
    """Append items to ``values`` (last axis), with the value of the item from which each came."""
    n_old = values.shape[-1]
    grown = np.empty((*values.shape[:-1], n_old + len(parents)), dtype=np.int64)
    grown[..., :n_old] = values
    np.take(values, parents, axis=-1, out=grown[..., n_old:], mode="clip")  # `clip` copies once
    return grown


def _places(old: Ints, space: int) -> Ints:
    """Return the place of each old item among the old items: shape (space,); 0 for other items."""
    found = np.zeros(space, dtype=np.int64)
    found[old] = np.arange(len(old))
    return found


def occurring(places: Ints, space: int) -> Ints:
    """Return the different places, ascending. space: above every place; no place is negative."""
    found = np.zeros(space, dtype=bool)
    found[places] = True
    return np.flatnonzero(found)


_MOST_KEPT = 1 << 20
"""Most leaves, of all candidates together, for which a holder keeps the children: about 8 MB."""


class LocalRecords:
    """Records of a holder with their entries of T_g.

    In a joint run every holder follows the same public T_g. An entry with a record of the holder is non-empty in T_g,
    so each record always has an entry.
    """

    def __init__(self, table: CodedTable, cells: Ints, generalized: GeneralizedTable) -> None:
        """Store the cells. ``cells``: the cell of every row in the numbers of T_g, shape (n_rows,)."""
        self._table = table
        entry_of_cell = np.full(int(generalized.cell.max(initial=-1)) + 1, -1, dtype=np.int64)
        entry_of_cell[generalized.cell] = np.arange(generalized.n_entries)
        self._entry = entry_of_cell[cells]
        self._unit = bool((table.weights == 1).all())
        self._moved: Ints | None = None
        self._has_moved = np.zeros(generalized.n_entries, dtype=bool)
        self._slotted: tuple[Ints, Ints] | None = None
        self._children: dict[Candidate, Ints] = {}

    @property
    def entry(self) -> Ints:
        """Entry of T_g of every row: int64, shape (n_rows,)."""
        return self._entry

    def members(self, candidate: Candidate) -> tuple[Ints, Codes]:
        """Return the rows with the candidate's node, ascending, and each row's child."""
        codes = self._table.qid[candidate.column]
        node = candidate.node
        rows = np.flatnonzero((codes >= node.first) & (codes < node.last))
        child = child_of_leaf(candidate)[codes[rows].astype(np.int64) - node.first]
        if not node.without:
            return rows, child
        own = child >= 0
        return rows[own], child[own]

    def placed(self, candidate: Candidate, entries: Ints) -> tuple[Ints, Codes, Ints]:
        """Return the place of the refined entry, the child and the weight of each own row with the candidate's node.

        Shape (n,) each.
        """
        rows, child = self.members(candidate)
        place = np.empty(int(entries[-1]) + 1 if len(entries) else 1, dtype=np.int64)
        place[entries] = np.arange(len(entries))
        return place[self._entry[rows]], child, self._table.weights[rows]

    def counts(self, candidate: Candidate, entries: Ints) -> Ints:
        """Count the own records per (entry, child): int64, shape (len(entries), n_children).

        entries:  all or some of the entries that the candidate refines, ascending.
        """
        n_children = len(candidate.children)
        size = len(entries) * n_children
        # All rows of an entry move together. So entries that moved last have no other rows than the moved rows.
        child: Codes
        if self._moved is not None and self._has_moved[entries].all():
            rows, slot = self._moved, self._slots_of_moved(entries)
            child = self._child_of_code(candidate)[self._table.qid[candidate.column][rows]]
        else:
            rows, child = self.members(candidate)
            slot = self._slots(self._entry[rows], entries)
        # Rows of other entries are counted behind the end, and so are rows without the candidate's node.
        keys = slot * n_children + child
        counts = np.bincount(keys, None if self._unit else self._table.weights[rows], size)[:size]
        return counts.astype(np.int64, copy=False).reshape(len(entries), n_children)

    def _child_of_code(self, candidate: Candidate) -> Ints:
        """Return the child of each code of the candidate's column; 0 for codes without the candidate's node.

        A candidate is counted again and again, so some results are kept.
        """
        found = self._children.get(candidate)
        if found is None:
            node, n_leaves = candidate.node, self._table.schema.qid[candidate.column].n_leaves
            found = np.zeros(n_leaves, dtype=np.int64)
            found[node.first : node.last] = np.maximum(child_of_leaf(candidate), 0)
            if (len(self._children) + 1) * n_leaves > _MOST_KEPT:
                self._children.clear()
            self._children[candidate] = found
        return found

    def _slots_of_moved(self, entries: Ints) -> Ints:
        """Return the slots of the rows that moved last. Candidates of a node share the array of entries."""
        if self._slotted is None or self._slotted[0] is not entries:
            self._slotted = entries, self._slots(self._entry[self._moved], entries)
        return self._slotted[1]

    @staticmethod
    def _slots(owner: Ints, entries: Ints) -> Ints:
        """Return the place of each row's entry among some entries, behind the end for other entries.

        owner:  entry of each row: int64, shape (n_rows,).
        """
        place = np.full(max(owner.max(initial=-1), entries.max(initial=-1)) + 1, len(entries), dtype=np.int64)
        place[entries] = np.arange(len(entries))
        return place[owner]

    def follow(self, candidate: Candidate, refinement: Refinement) -> None:
        """Move the own records to the entries of the refined table."""
        rows, child = self.members(candidate)
        place = np.full(refinement.table.n_entries, -1, dtype=np.int64)
        place[refinement.entries] = np.arange(len(refinement.entries))
        self._entry[rows] = refinement.targets[place[self._entry[rows]], child]
        self._slotted = None
        self._moved, self._has_moved = rows, np.zeros(refinement.table.n_entries, dtype=bool)
        self._has_moved[refinement.targets[refinement.targets >= 0]] = True
