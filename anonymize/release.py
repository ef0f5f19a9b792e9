"""The released table: generalized quasi-identifiers, class and sensitive columns, and how often each row is there.

A table is kept as *entries*: a row with its weight, that is how often it stands in the table. Columns are codes into
a short list of labels. So a table is as large as its different rows are many, until it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from anonymize.cut import Cut
from anonymize.partition import GeneralizedTable
from anonymize.table import CodedTable, Codes, Ints, QidColumn, Schema, joined_by, narrowest, pack, units


class Rng(Protocol):
    """A source of uniform, independent bytes."""

    def bytes(self, n: int) -> bytes: ...


@dataclass(frozen=True)
class LabelledColumn:
    """A column as codes into its labels; codes have shape (n_entries,). Both are data.

    labels:  a tuple, or where they may be as many as rows whatever holds them in less than an object each.
    """

    labels: Sequence[str] = field(repr=False)
    codes: Codes = field(repr=False)


@dataclass(frozen=True)
class Release:
    """A table ready to be verified and written: named columns of equal length, in publication order.

    columns:  one code for each entry. Several entries may be the same row.
    weights:  how many rows each entry stands for: int64, shape (n_entries,), positive; if left out, one.
    """

    columns: Mapping[str, LabelledColumn] = field(repr=False)
    weights: Ints = field(default_factory=lambda: units(1), repr=False)

    def __post_init__(self) -> None:
        first = next(iter(self.columns.values()))
        object.__setattr__(self, "weights", np.broadcast_to(self.weights, first.codes.shape))

    @property
    def n_entries(self) -> int:
        return len(self.weights)

    @property
    def n_rows(self) -> int:
        return int(self.weights.sum())

    def ordered(self, names: Sequence[str]) -> Release:
        """The same table with its columns in the order of ``names``; names it lacks are passed over."""
        return Release({name: self.columns[name] for name in names if name in self.columns}, self.weights)

    def some(self, entries: Ints) -> Release:
        """Some of the entries, by number, in that order."""
        columns = {name: LabelledColumn(c.labels, c.codes[entries]) for name, c in self.columns.items()}
        return Release(columns, self.weights[entries])

    def entries_of_rows(self, start: int, stop: int) -> Ints:
        """The entry of every row from ``start`` to below ``stop``, as far as there are rows: int64, ascending."""
        stop = min(stop, self.n_rows)
        first, last = np.searchsorted(self._ends, start, side="right"), np.searchsorted(self._ends, stop)
        bounds = np.clip(self._ends[first : last + 1], None, stop)
        return first + np.repeat(np.arange(len(bounds)), np.diff(bounds, prepend=start))

    @cached_property
    def _ends(self) -> Ints:
        """By entry how many rows there are up to it."""
        return np.cumsum(self.weights)

    def expanded(self) -> Release:
        """The same table with an entry for every row, in the same order."""
        rows = np.repeat(np.arange(self.n_entries), self.weights)
        columns = self.columns.items()
        return Release({name: LabelledColumn(c.labels, c.codes[rows]) for name, c in columns})

    def in_label_order(self) -> Release:
        """The same table: each different row is one entry, in the order of its labels, first column first.

        Labels are compared code point by code point; each column lists those that it has, once. So two tables with
        the same rows come out the same, whatever they were made of, and in whatever order.
        """
        columns = {name: _by_label(column) for name, column in self.columns.items()}
        keys = pack([c.codes for c in columns.values()], [max(len(c.labels), 1) for c in columns.values()])
        if len(keys) == 0:
            return self
        first, weights = joined_by(keys, self.weights)
        return Release(Release(columns).some(first).columns, weights)


def random_order(n_rows: int, rng: Rng) -> Ints:
    """A random order of rows, by one uniform 64-bit key each: int64, shape (n_rows,)."""
    keys = np.frombuffer(rng.bytes(8 * n_rows), dtype="<u8")
    return np.argsort(keys, kind="stable")


def cut_labels(column: QidColumn, cut: Cut, number: int) -> tuple[str, ...]:
    """Printed labels of a column's nodes in cut order."""
    return tuple(column.label(node) for node in cut.nodes[number])


def release_of_rows(table: CodedTable, cut: Cut) -> Release:
    """Generalize coded rows: an entry for each, which stands for as many records as the row."""
    positions = [cut.positions(i)[codes] for i, codes in enumerate(table.qid)]
    return _release(table.schema, cut, positions, table.cells, table.weights)


def release_of_counts(schema: Schema, cut: Cut, generalized: GeneralizedTable) -> Release:
    """T_g as it is published: as many rows as each of its entries counts."""
    partition = generalized.partition
    positions = [cut.positions(i)[generalized.nodes[i]][partition] for i in range(len(schema.qid))]
    return _release(schema, cut, positions, generalized.cell, generalized.count)


def _release(schema: Schema, cut: Cut, positions: Sequence[Ints], cells: Ints, weights: Ints) -> Release:
    qid = {
        column.name: narrowed(cut_labels(column, cut, i), positions[i]) for i, column in enumerate(schema.qid)
    }
    return with_cells(qid, schema, cells, weights)


def with_cells(qid: Mapping[str, LabelledColumn], schema: Schema, cells: Ints, weights: Ints) -> Release:
    """Generalized columns with the class and sensitive values of their entries.

    cells, weights:  of every entry: int64, shape (n_entries,).
    """
    columns, axes = dict(qid), schema.axes(cells)
    if schema.class_name is not None:
        columns[schema.class_name] = narrowed(schema.classes, axes[0])
    for sensitive, codes in zip(schema.sensitive, axes[1:], strict=True):
        columns[sensitive.name] = narrowed(sensitive.domain, codes)
    return Release(columns, weights)


def narrowed(labels: Sequence[str], codes: Codes) -> LabelledColumn:
    """A column with codes no wider than its labels need."""
    return LabelledColumn(labels, codes.astype(narrowest(len(labels)), copy=False))


def ranks(column: LabelledColumn) -> Ints:
    """Codes in the order of the labels that a column lists, equal labels alike: int64, shape (n_entries,).

    Whatever is made of them comes out the same however rows are coded.
    """
    place = {label: i for i, label in enumerate(sorted(set(column.labels)))}
    by_code = np.array([place[label] for label in column.labels], dtype=np.int64)
    return by_code[column.codes]


def _by_label(column: LabelledColumn) -> LabelledColumn:
    """The same column with the labels that it has, each once and in order."""
    present = np.bincount(column.codes, minlength=len(column.labels)) > 0
    if present.all() and all(one < other for one, other in pairwise(column.labels)):
        return narrowed(column.labels, column.codes)
    labels = sorted({label for label, is_there in zip(column.labels, present, strict=True) if is_there})
    place = {label: i for i, label in enumerate(labels)}
    by_code = np.array([place.get(label, 0) for label in column.labels], dtype=narrowest(len(labels)))
    return LabelledColumn(tuple(labels), by_code[column.codes])
