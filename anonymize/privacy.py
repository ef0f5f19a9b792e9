"""LKC-privacy of specializations (DESIGN §3; [T] 3.2.1, Definition 3.1, and 3.3.2).

A candidate v → child(v) is valid if, for every subset of min(L, |QID|) quasi-identifier columns that
contains v's column, every non-empty qid group after the specialization has at least K records and, for
every protected sensitive value s, P(s | group) <= C. A column that is not refined yet has one value and
changes no group; a group of fewer columns is a union of groups of more and is fine if they are. So what is
scanned here are the subsets of L − 1 *other refined* columns, or all of them where there are fewer.

Everything here is linear in counts of (T_g entry, child): the joint runs share those counts and test the
same sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anonymize.cut import Candidate, Cut, child_counts
from anonymize.errors import PrivacyError, SchemaError
from anonymize.partition import GeneralizedTable
from anonymize.table import MAX_RECORDS, CodedTable, Ints, Schema, tally

Threshold = Literal["K", "C"]
_MAX_FRACTION = 1 << 62
_DENSE_LIMIT = 1 << 25


@dataclass(frozen=True)
class Lkc:
    """The requirement: knowledge of at most ``max_known`` (L) columns, groups of ``min_size`` (K).

    The confidence bounds C stand with the sensitive columns of the schema. ``insider``: they hold for every
    (leaf partition, class value) cell, too, which is what a vertical party knows of a person (DESIGN §7).
    """

    max_known: int
    min_size: int
    insider: bool = False

    def __post_init__(self) -> None:
        if self.max_known < 1 or self.min_size < 1:
            raise SchemaError("job-invalid", "L and K must be at least 1")


@dataclass(frozen=True)
class Violation:
    """Why a group is not allowed: which threshold, on how many columns, and for C which sensitive column."""

    threshold: Threshold
    n_columns: int
    sensitive: str | None = None


def check_sizes(schema: Schema, n_records: int) -> None:
    """Refuse tables for which the integer arithmetic is not exact."""
    if n_records > MAX_RECORDS:
        raise PrivacyError("too-many-rows", f"the table has more than {MAX_RECORDS} rows")
    for column in schema.sensitive:
        if (
            max(column.confidence.denominator, column.confidence.numerator) * max(n_records, 1)
            >= _MAX_FRACTION
        ):
            raise PrivacyError(
                "confidence-too-fine",
                f"C of column {column.name} has too many digits for a table of this size",
                column=column.name,
                remedy="write C with fewer digits, e.g. 0.2 or 1/5",
            )


def most_records(schema: Schema) -> int:
    """The greatest number of records for which the integer arithmetic is exact; see :func:`check_sizes`."""
    finest = max((column.confidence.denominator for column in schema.sensitive), default=1)
    return min(MAX_RECORDS, (_MAX_FRACTION - 1) // finest)


def check_root(schema: Schema, requirement: Lkc, cell_counts: Ints) -> Violation | None:
    """Test the fully generalized table: cell_counts has shape (n_cells,)."""
    n_records = int(cell_counts.sum())
    if n_records < requirement.min_size:
        return Violation("K", 0)
    by_axis = cell_counts.reshape(schema.cell_shape)
    if not requirement.insider:
        by_axis = by_axis.sum(axis=0, keepdims=True)
    sizes = by_axis.reshape(len(by_axis), -1).sum(axis=1)
    for i, column in enumerate(schema.sensitive):
        other_axes = tuple(a for a in range(1, by_axis.ndim) if a != i + 1)
        if _exceeds(by_axis.sum(axis=other_axes)[:, list(column.protected)], sizes, column.confidence):
            return Violation("C", 0, column.name)
    return None


def _exceeds(counts: Ints, sizes: Ints, bound: Fraction) -> bool:
    """Whether any count of (group, value) is more than ``bound`` of its group."""
    return bool((counts * bound.denominator > (sizes * bound.numerator)[:, None]).any())


def root_refused(most: int) -> PrivacyError:
    """The error where one bit says that the whole table violates K or C or has more than ``most`` records."""
    remedy = "lower K, raise C, protect fewer values, or bring more records"
    too_many = f"all parties together have more than {most} rows"
    if most < MAX_RECORDS:
        too_many += ", the most that C with so many digits allows"
        remedy = f"write C with fewer digits, e.g. 0.2 or 1/5; if that does not help, {remedy}"
    return PrivacyError(
        "requirement-unmet",
        f"the fully generalized table already violates K or C, or {too_many}: which of these is not revealed",
        remedy=remedy,
    )


def requirement_unmet(violation: Violation | None) -> PrivacyError:
    """The error for a table that violates the requirement even when fully generalized."""
    which = {None: "K or C", "K": "K", "C": "C"}[violation.threshold if violation else None]
    column = violation.sensitive if violation else None
    return PrivacyError(
        "requirement-unmet",
        f"the fully generalized table already violates {which}" + (f" for column {column}" if column else ""),
        column=column,
        remedy="lower K, raise C, protect fewer values, or bring more records",
    )


@dataclass(frozen=True)
class SensitiveView:
    """How cells map to the protected values of each sensitive column that has a bound below 1.

    columns:   those columns.
    values:    per column the protected value of each cell, 0-based, the last number for none: (n_cells,).
    n_values:  per column the number of protected values plus one.
    """

    columns: tuple[int, ...]
    values: tuple[Ints, ...]
    n_values: tuple[int, ...]


def sensitive_view(schema: Schema) -> SensitiveView:
    """Map every cell of the schema to its protected values."""
    columns = tuple(i for i, c in enumerate(schema.sensitive) if c.confidence < 1 and c.protected)
    values = []
    for i in columns:
        column = schema.sensitive[i]
        rank = np.full(len(column.domain), len(column.protected), dtype=np.int64)
        rank[list(column.protected)] = np.arange(len(column.protected))
        values.append(rank[np.unravel_index(np.arange(schema.n_cells), schema.cell_shape)[i + 1]])
    return SensitiveView(
        columns, tuple(values), tuple(len(schema.sensitive[i].protected) + 1 for i in columns)
    )


def coarsest_cells(schema: Schema, requirement: Lkc) -> Ints:
    """Map every cell to the first cell that validity does not tell apart from it: int64, shape (n_cells,).

    Those have the same protected values (and class, toward insiders); a single holder counts its leaf
    partitions by them.
    """
    view = sensitive_view(schema)
    classes = np.unravel_index(np.arange(schema.n_cells), schema.cell_shape)[0]
    keys = classes if requirement.insider else np.zeros(schema.n_cells, dtype=np.int64)
    for n_values, value in zip(view.n_values, view.values, strict=True):
        keys = keys * n_values + value
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first[inverse]


def group_violation(
    schema: Schema,
    requirement: Lkc,
    sizes: Ints,
    protected: Sequence[Ints],
    view: SensitiveView,
    n_columns: int,
) -> Violation | None:
    """Test groups.

    sizes:      records per group, shape (n_groups,).
    protected:  per viewed column the records with each protected value, shape (n_groups, n_protected).
    """
    occupied = sizes > 0
    if (sizes[occupied] < requirement.min_size).any():
        return Violation("K", n_columns)
    return confidence_violation(schema, sizes, protected, view, n_columns)


def confidence_violation(
    schema: Schema, sizes: Ints, protected: Sequence[Ints], view: SensitiveView, n_columns: int
) -> Violation | None:
    """Test the confidence bounds of groups; arguments as in :func:`group_violation`."""
    for i, counts in zip(view.columns, protected, strict=True):
        if _exceeds(counts, sizes, schema.sensitive[i].confidence):
            return Violation("C", n_columns, schema.sensitive[i].name)
    return None


class PartitionTest:
    """Validity from the leaf partitions: any L."""

    def __init__(self, schema: Schema, requirement: Lkc) -> None:
        self._schema = schema
        self._requirement = requirement
        self._view = sensitive_view(schema)

    def violation(
        self, table: GeneralizedTable, candidate: Candidate, counts: Ints, n_columns: int
    ) -> Violation | None:
        """Return a violation of the specialization on some ``n_columns`` columns, or None.

        counts: records per (refined entry, child) as for :func:`anonymize.partition.refine`. Toward insiders
        the cells of all columns are tested too, whatever ``n_columns`` is.
        """
        at, child = np.nonzero(counts)
        entry = table.entries_of(candidate)[at]
        weights = counts[at, child].astype(np.float64)
        n_children = len(candidate.children)
        groups = QidGroups(table, candidate, table.partition[entry])
        for codes, n_codes in groups.codings(n_columns - 1):
            sizes, protected = self._sums(
                codes * n_children + child, n_codes * n_children, table.cell[entry], weights
            )
            found = group_violation(self._schema, self._requirement, sizes, protected, self._view, n_columns)
            if found:
                return found
        return self._insider_violation(table, entry, child, weights) if self._requirement.insider else None

    def _insider_violation(
        self, table: GeneralizedTable, entry: Ints, child: Ints, weights: NDArray[np.float64]
    ) -> Violation | None:
        """Test C in every (leaf partition, class value) cell after the specialization."""
        classes = np.unravel_index(table.cell[entry], self._schema.cell_shape)[0]
        cells = np.stack([table.partition[entry], classes, child])
        present, keys = np.unique(cells, axis=1, return_inverse=True)
        sizes, protected = self._sums(keys, present.shape[1], table.cell[entry], weights)
        return confidence_violation(self._schema, sizes, protected, self._view, len(self._schema.qid))

    def _sums(
        self, keys: Ints, n_keys: int, cells: Ints, weights: NDArray[np.float64]
    ) -> tuple[Ints, list[Ints]]:
        """Sum up records per key, and per viewed column those with each protected value."""
        protected = []
        sizes: Ints | None = None
        for n_values, value in zip(self._view.n_values, self._view.values, strict=True):
            by_value = tally(keys * n_values + value[cells], weights, n_keys * n_values)
            by_value = by_value.reshape(n_keys, n_values)
            protected.append(by_value[:, :-1])
            sizes = by_value.sum(axis=1)
        return (tally(keys, weights, n_keys) if sizes is None else sizes), protected


class QidGroups:
    """Codings of the partitions a candidate refines by the qid groups they fall into, subset by subset."""

    def __init__(self, table: GeneralizedTable, candidate: Candidate, partition: Ints) -> None:
        """``partition``: partition of every item to be coded, shape (n_items,)."""
        present, self._rank = np.unique(partition, return_inverse=True)
        self._n_partitions = len(present)
        self._columns: list[tuple[Ints, int]] = []
        for column in range(table.nodes.shape[0]):
            values, codes = np.unique(table.nodes[column, present], return_inverse=True)
            if column != candidate.column and len(values) > 1:
                self._columns.append((codes, len(values)))
        self._columns.sort(key=lambda pair: -pair[1])

    def codings(self, n_others: int) -> Iterator[tuple[Ints, int]]:
        """Yield (group of each item, number of groups) for every subset of ``n_others`` other columns.

        Subsets with the finest columns come first. Columns with one value among these partitions tell
        nothing apart and are left out; a subset that already tells all partitions apart stands for all
        that contain it.
        """
        n = min(n_others, len(self._columns))
        for codes, n_codes in self._subsets(0, n, np.zeros(self._n_partitions, dtype=np.int64), 1):
            yield codes[self._rank], n_codes

    def _subsets(self, start: int, n: int, codes: Ints, n_codes: int) -> Iterator[tuple[Ints, int]]:
        """Extend a dense coding of the partitions by ``n`` of the columns from ``start`` on."""
        if n == 0 or n_codes == self._n_partitions:
            yield codes, n_codes
            return
        for i in range(start, len(self._columns) - n + 1):
            column, radix = self._columns[i]
            finer, n_finer = codes * radix + column, n_codes * radix
            if n > 1 or n_finer > 4 * self._n_partitions:
                distinct, finer = np.unique(finer, return_inverse=True)
                n_finer = len(distinct)
            yield from self._subsets(i + 1, n - 1, finer, n_finer)


class PairTest:
    """Validity for L <= 2 from two-dimensional tables of leaf counts: no leaf partitions needed.

    With L = 2 the leaf partitions become almost as many as the records, while all that is ever tested are
    pairs of columns; each pair's table is counted once.
    """

    def __init__(self, table: CodedTable, requirement: Lkc) -> None:
        self._table = table
        self._requirement = requirement
        self._view = sensitive_view(table.schema)
        self._tables: dict[tuple[int, int | None], list[Ints]] = {}

    @staticmethod
    def fits(schema: Schema, requirement: Lkc) -> bool:
        """Return whether L <= 2, the pair tables are small, and nothing but pairs is tested."""
        n_values = 1 + sum(len(c.protected) for c in schema.sensitive)
        leaves = sum(c.n_leaves for c in schema.qid)
        small = leaves * leaves // 2 * n_values <= _DENSE_LIMIT
        return requirement.max_known <= 2 and small and not requirement.insider

    def violation(self, cut: Cut, candidate: Candidate, n_columns: int) -> Violation | None:
        """Return a violation of the specialization on some ``n_columns`` columns, or None."""
        refined = [c for c in range(len(cut.nodes)) if c != candidate.column and cut.is_refined(c)]
        partners: list[int | None] = [*refined] if n_columns > 1 and refined else [None]
        for other in partners:
            starts = [0] if other is None else [node.first for node in cut.nodes[other]]
            sizes, protected = self._sums(candidate, other, starts)
            found = group_violation(
                self._table.schema, self._requirement, sizes, protected, self._view, n_columns
            )
            if found:
                return found
        return None

    def _sums(self, candidate: Candidate, other: int | None, starts: list[int]) -> tuple[Ints, list[Ints]]:
        """Sum up records per (child, node of the other column), and those with each protected value."""
        grouped = []
        for counts in self._counted(candidate.column, other):
            by_group = np.add.reduceat(child_counts(candidate.children, counts), starts, axis=1)
            grouped.append(by_group.reshape(-1, by_group.shape[2]))
        protected = [by_value[:, :-1] for by_value in grouped] if self._view.columns else []
        return grouped[0].sum(axis=1), protected

    def _counted(self, column: int, other: int | None) -> list[Ints]:
        """Per viewed column: counts of (leaf, leaf of the other column, protected value or none)."""
        if (column, other) not in self._tables:
            schema, table = self._table.schema, self._table
            n_leaves = schema.qid[column].n_leaves
            n_other = 1 if other is None else schema.qid[other].n_leaves
            keys = table.qid[column].astype(np.int64) * n_other
            if other is not None:
                keys = keys + table.qid[other]
            tables = []
            axes = list(zip(self._view.n_values, self._view.values, strict=True))
            for n_values, value in axes or [(1, np.zeros(schema.n_cells, dtype=np.int64))]:
                size = n_leaves * n_other * n_values
                counts = tally(keys * n_values + value[table.cells], table.weights, size)
                tables.append(counts.reshape(n_leaves, n_other, n_values))
            self._tables[column, other] = tables
            if other is not None:
                self._tables[other, column] = [counts.swapaxes(0, 1) for counts in tables]
        return self._tables[column, other]
