"""Current generalized table T_g: leaf partitions with their counts.

T_g consists of its non-empty entries (leaf partition × cell → count): the released table in counted form. It is
public in a joint run and the holder's own in a single-holder run. A refinement takes only the counts of the entries'
children from the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anonymize.cut import Candidate, child_counts, child_of_leaf
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
    present = counts > 0
    filled, filled_child = np.nonzero(present)
    occupied = np.zeros((len(old), len(candidate.children)), dtype=bool)
    occupied[row[filled], filled_child] = True
    partition_targets = _numbered(occupied, old, table.n_partitions)
    entry_targets = _numbered(present, entries, table.n_entries)

    nodes = _grown(table.nodes, _parents(partition_targets, old, table.n_partitions))
    first_leaves = np.array([child.first for child in candidate.children], dtype=np.int64)
    at, child = np.nonzero(occupied)
    nodes[candidate.column, partition_targets[at, child]] = first_leaves[child]

    parents = _parents(entry_targets, entries, table.n_entries)
    partition, cell, count = (_grown(each, parents) for each in (table.partition, table.cell, table.count))
    targets = entry_targets[filled, filled_child]
    partition[targets] = partition_targets[row[filled], filled_child]
    count[targets] = counts[filled, filled_child]
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


@dataclass(frozen=True)
class _ByLeaf:
    """Records of some entries by leaf of a column.

    place:   place of an entry among them: int64, shape (n_entries of T_g,).
    counts:  int64, shape (n some entries, n_leaves).
    """

    place: Ints = field(repr=False)
    counts: Ints = field(repr=False)

    def __call__(self, candidate: Candidate, entries: Ints) -> Ints:
        """Count per (entry, child): int64, shape (len(entries), n_children)."""
        return child_counts(candidate.children, self.counts[self.place[entries]], axis=1)


def _most_kept(table: CodedTable) -> int:
    """Return the most counts by leaf: with more, going through all rows is as quick."""
    return 4 * len(table.cells)


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
        rows, child = self.members(candidate)
        # Rows of other entries are counted behind the end.
        keys = self._slots(self._entry[rows], entries) * n_children + child
        counts = np.bincount(keys, None if self._unit else self._table.weights[rows], size)[:size]
        return counts.astype(np.int64, copy=False).reshape(len(entries), n_children)

    def counts_of_each(self, asked: Sequence[tuple[Candidate, Ints]]) -> list[Ints]:
        """Count as :meth:`counts` for several candidates with their entries.

        All rows of an entry move together, so entries that moved last have no other rows than the moved rows.
        Candidates of such entries and of the same column share a count by leaf.
        """
        shared = [self._moved is not None and bool(self._has_moved[entries].all()) for _, entries in asked]
        by_leaf = self._counts_by_leaf(
            [one for one, is_shared in zip(asked, shared, strict=True) if is_shared]
        )
        return [
            by_leaf[candidate.column](candidate, entries)
            if is_shared and candidate.column in by_leaf
            else self.counts(candidate, entries)
            for (candidate, entries), is_shared in zip(asked, shared, strict=True)
        ]

    def _counts_by_leaf(self, asked: Sequence[tuple[Candidate, Ints]]) -> Mapping[int, _ByLeaf]:
        """Count the moved rows of all entries asked for by leaf, for each column without too many counts."""
        if not asked:
            return {}
        assert self._moved is not None, "entries moved"
        entries = occurring(np.concatenate([own for _, own in asked]), len(self._has_moved))
        place = np.full(len(self._has_moved), -1, dtype=np.int64)
        place[entries] = np.arange(len(entries))
        slots = place[self._entry[self._moved]]
        is_asked = slots >= 0
        rows, slots = self._moved[is_asked], slots[is_asked]
        weights = None if self._unit else self._table.weights[rows]
        found = {}
        for column in {candidate.column for candidate, _ in asked}:
            n_leaves = self._table.schema.qid[column].n_leaves
            size = len(entries) * n_leaves
            if size <= _most_kept(self._table):
                counts = tally(slots * n_leaves + self._table.qid[column][rows], weights, size)
                found[column] = _ByLeaf(place, counts.reshape(len(entries), n_leaves))
        return found

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
        self._moved, self._has_moved = rows, np.zeros(refinement.table.n_entries, dtype=bool)
        self._has_moved[refinement.targets[refinement.targets >= 0]] = True
