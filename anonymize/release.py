"""Released table: generalized quasi-identifiers, class and sensitive columns, rows in random order.

Columns are codes into a short list of labels. So a million rows take a few megabytes until they are written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, pairwise
from typing import Protocol

import numpy as np

from anonymize.cut import Cut
from anonymize.grid import Grid
from anonymize.partition import GeneralizedTable
from anonymize.table import (
    CodedTable,
    Codes,
    Ints,
    LeafSets,
    QidColumn,
    Schema,
    kinds_of_keys,
    narrowest,
    pack,
    tally,
)
from anonymize.taxonomy import Node


class Rng(Protocol):
    """Source of uniform, independent bytes."""

    def bytes(self, n: int) -> bytes: ...


@dataclass(frozen=True)
class LabelledColumn:
    """Column as codes into its labels, shape (n_rows,). Labels and codes are data."""

    labels: tuple[str, ...] = field(repr=False)
    codes: Codes = field(repr=False)


@dataclass(frozen=True)
class Release:
    """Table for verification and writing: named columns of equal length, in publication order.

    counts:  records per row, if the rows are made of counts: int64, shape (n_rows,); None: 1 each.
    """

    columns: Mapping[str, LabelledColumn] = field(repr=False)
    counts: Ints | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows; 0 without columns."""
        return max((len(column.codes) for column in self.columns.values()), default=0)

    @property
    def n_records(self) -> int:
        """Number of records of the rows."""
        return self.n_rows if self.counts is None else int(self.counts.sum())

    def ordered(self, names: Sequence[str]) -> Release:
        """Return the table with its columns in the order of ``names``. Missing names are ignored."""
        return replace(self, columns={name: self.columns[name] for name in names if name in self.columns})

    def some(self, rows: Ints) -> Release:
        """Return the rows with the given numbers, in the given order."""
        columns = {name: LabelledColumn(c.labels, c.codes[rows]) for name, c in self.columns.items()}
        return Release(columns, None if self.counts is None else self.counts[rows])

    def sorted(self) -> Release:
        """Return the rows in the order of their printed values."""
        return self.some(np.lexsort([ranks(column) for column in self.columns.values()][::-1]))

    def merged(self) -> Release:
        """Return the different rows in the order of their printed values, with the records of each row."""
        labels = {name: tuple(sorted(set(column.labels))) for name, column in self.columns.items()}
        codes = {name: ranks(column) for name, column in self.columns.items()}
        radices = list(map(len, labels.values()))
        # Keys beyond 62 bits are ranked on the way, and keep the order.
        first, kind = kinds_of_keys(pack(list(codes.values()), radices), math.prod(radices))
        columns = {name: narrowed(labels[name], codes[name][first]) for name in labels}
        return Release(columns, tally(kind, self.counts, len(first)))

    def in_rows(self) -> Release:
        """Return the table with a row for each record."""
        if self.counts is None:
            return self
        columns = self.columns.items()
        return Release(
            {name: LabelledColumn(c.labels, np.repeat(c.codes, self.counts)) for name, c in columns}
        )

    def shuffled(self, rng: Rng) -> Release:
        """Return the rows in a random order."""
        return self.some(random_order(self.n_rows, rng))


def random_order(n_rows: int, rng: Rng) -> Ints:
    """Return a random order of rows, by a uniform 64-bit key for each row: int64, shape (n_rows,).

    Rows with equal keys keep their order.
    """
    keys = np.frombuffer(rng.bytes(8 * n_rows), dtype="<u8")
    # Sorting numbers is much faster than sorting row numbers by key. So the lowest bits of each key give way to the
    # key's row number. The few keys that differ in these bits alone are ordered afterwards.
    low = np.uint64((1 << max(len(keys) - 1, 0).bit_length()) - 1)
    marked = keys & ~low
    marked |= np.arange(len(keys), dtype=np.uint64)
    marked.sort()
    close, alike = (marked[1:] ^ marked[:-1]) <= low, np.zeros(len(keys), dtype=bool)
    alike[1:] |= close
    alike[:-1] |= close
    marked &= low
    order: Ints = marked.view(np.int64)
    rows = order[alike]
    order[alike] = rows[np.argsort(keys[rows], kind="stable")]
    return order


def leaf_labels(column: QidColumn, sets: LeafSets | None = None) -> tuple[str, ...]:
    """Return the printed label of each code of a column; of a set, all its values. No number: an empty text."""
    if isinstance(column.values, Grid):
        cells = tuple(column.values.label(Node(i, i + 1)) for i in range(column.root.last))
        return (*cells, "") if column.missing_cell else cells
    leaves = column.values.leaves
    if sets is None:
        return tuple(leaves)
    separator = column.sets.separator if column.sets is not None else ","
    bounds = pairwise(sets.starts.tolist())
    return tuple(separator.join(leaves[i] for i in sets.leaves[first:last]) for first, last in bounds)


def release_of_leaves(table: CodedTable) -> Release:
    """Return coded rows as the algorithms read the rows, without generalization; equal records are counted."""
    qid = {
        column.name: LabelledColumn(leaf_labels(column, table.sets.get(i)), codes)
        for i, (column, codes) in enumerate(zip(table.schema.qid, table.qid, strict=True))
    }
    return replace(with_cells(qid, table.schema, table.cells), counts=table.weights)


def cut_labels(column: QidColumn, cut: Cut, number: int) -> tuple[str, ...]:
    """Return the printed labels of a column's nodes in cut order."""
    return tuple(column.label(node) for node in cut.nodes[number])


def release_of_rows(table: CodedTable, cut: Cut) -> Release:
    """Generalize coded rows. Rows stay in their order, with their numbers of records."""
    positions = [cut.positions(i)[codes] for i, codes in enumerate(table.qid)]
    return replace(_release(table.schema, cut, positions, table.cells), counts=table.weights)


def release_of_counts(schema: Schema, cut: Cut, generalized: GeneralizedTable) -> Release:
    """Print T_g: a row for each entry, with its number of records."""
    partition = generalized.partition
    positions = [cut.positions(i)[generalized.nodes[i]][partition] for i in range(len(schema.qid))]
    return replace(_release(schema, cut, positions, generalized.cell), counts=generalized.count)


def _release(schema: Schema, cut: Cut, positions: Sequence[Ints], cells: Ints) -> Release:
    qid = {
        column.name: narrowed(cut_labels(column, cut, i), positions[i]) for i, column in enumerate(schema.qid)
    }
    return with_cells(qid, schema, cells)


def with_cells(qid: Mapping[str, LabelledColumn], schema: Schema, cells: Ints) -> Release:
    """Return generalized columns with the class and sensitive values of the rows; cells: per row, shape (n_rows,)."""
    columns, axes = dict(qid), schema.axes(cells)
    if schema.class_name is not None:
        columns[schema.class_name] = narrowed(schema.classes, axes[0])
    for sensitive, codes in zip(schema.sensitive, axes[1:], strict=True):
        columns[sensitive.name] = narrowed(sensitive.domain, codes)
    return Release(columns)


def narrowed(labels: tuple[str, ...], codes: Codes) -> LabelledColumn:
    """Return a column with the narrowest codes for its labels."""
    return LabelledColumn(labels, codes.astype(narrowest(len(labels)), copy=False))


def only_found(column: LabelledColumn) -> LabelledColumn:
    """Return a column without the labels that no row has, as a reader of the written table finds the column."""
    found = np.bincount(column.codes, minlength=len(column.labels)) > 0
    if found.all():
        return column
    return narrowed(tuple(compress(column.labels, found.tolist())), (np.cumsum(found) - 1)[column.codes])


def ranks(column: LabelledColumn) -> Ints:
    """Return codes in the order of the sorted labels, with the same code for equal labels: int64, shape (n_rows,).

    Results from these codes do not depend on the original coding.
    """
    place = {label: i for i, label in enumerate(sorted(set(column.labels)))}
    by_code = np.array([place[label] for label in column.labels], dtype=np.int64)
    return by_code[column.codes]
