"""Marginals: tables of counts for a synthetic table, and the distance of records from expected counts.

A marginal crosses some columns, each through a map from its leaves to bins, and the class, last; without the class
(left out, or goal general) its axis has size 1. Every record is in a single cell of each marginal, so a record added
or removed changes a count by 1.

Rows are a :class:`anonymize.table.CodedTable` without sensitive and set-valued columns. A code is a leaf of the
taxonomy, with `?` and `other` if the job lists them, or a grid cell, with clamped outside numbers. With
:attr:`anonymize.table.QidColumn.missing_cell`, a value that is no number is the leaf after the last grid cell. No row
is left out for a missing value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import prod

import numpy as np

from anonymize.table import CodedTable, Ints, Schema, tally


@dataclass(frozen=True)
class Axis:
    """Column of a marginal. Public: bins follow from earlier releases.

    column:  number in the schema.
    bins:    bin of every leaf, from 0 without gaps.
    """

    column: int
    bins: tuple[int, ...]

    @property
    def n_bins(self) -> int:
        return max(self.bins) + 1


@dataclass(frozen=True)
class Marginal:
    """Columns crossed with each other and with the class. A *pair* has two columns.

    axes:       by column, ascending.
    n_classes:  of the schema; 1: the class is left out.
    """

    axes: tuple[Axis, ...]
    n_classes: int

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(axis.column for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the table: the bins of every axis, then the classes."""
        return (*(axis.n_bins for axis in self.axes), self.n_classes)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def labels(self, table: CodedTable) -> Ints:
        """Return the cell of every row, in C order of the axes without the class: int64, shape (n,)."""
        found = np.zeros(len(table.weights), dtype=np.int64)
        for axis in self.axes:
            found = found * axis.n_bins + np.array(axis.bins, dtype=np.int64)[table.qid[axis.column]]
        return found

    def counts(self, table: CodedTable) -> Ints:
        """Count the records of every cell: int64, of :attr:`shape`."""
        keys = self.labels(table)
        if self.n_classes > 1:
            keys = keys * self.n_classes + table.axis(0)
        return tally(keys, table.weights, self.size).reshape(self.shape)


def leaf_marginals(schema: Schema) -> tuple[Marginal, ...]:
    """Return every column by leaf without the class, in order."""
    leaves = (Axis(i, tuple(range(column.n_leaves))) for i, column in enumerate(schema.qid))
    return tuple(Marginal((axis,), 1) for axis in leaves)


def pairs_of(axes: Sequence[Axis], n_classes: int) -> tuple[Marginal, ...]:
    """Return every two columns over these axes, in the order of their numbers: ties between pairs go to the first."""
    return tuple(Marginal(two, n_classes) for two in combinations(axes, 2))


def score(counts: Ints, expected: Ints, penalty: int) -> int:
    """Return Σ |counts − expected| − penalty: the distance of a pair's records from expectation, less the part of
    noise.

    counts, expected:  int64, of equal shape; ``expected`` is public.

    A record added or removed changes the score by exactly 1, for any expectation.
    """
    return int(np.abs(counts - expected).sum()) - penalty


class Forest:
    """Pairs of columns without a cycle."""

    def __init__(self, pairs: Iterable[tuple[int, ...]] = ()) -> None:
        self._trees: dict[int, set[int]] = {}
        for pair in pairs:
            self.add(pair)

    def joins(self, pair: tuple[int, ...]) -> bool:
        """Return True if a pair would close no cycle."""
        one, other = map(self._tree, pair)
        return one is not other

    def add(self, pair: tuple[int, ...]) -> bool:
        """Add a pair unless it would close a cycle. Return True if the pair was added."""
        less, more = sorted(map(self._tree, pair), key=len)
        if less is more:
            return False
        more |= less
        self._trees.update(dict.fromkeys(less, more))
        return True

    def _tree(self, column: int) -> set[int]:
        return self._trees.setdefault(column, {column})


def closing_none(pairs: Sequence[tuple[int, ...]], chosen: Sequence[int]) -> tuple[int, ...]:
    """Return the pairs that close no cycle with the chosen pairs, by number, ascending. Public.

    pairs:   two columns each.
    chosen:  numbers of pairs that form a forest.
    """
    forest = Forest(pairs[number] for number in chosen)
    return tuple(number for number, pair in enumerate(pairs) if forest.joins(pair))


def best_forest(pairs: Sequence[tuple[int, ...]], merits: Sequence[int], n_edges: int) -> tuple[int, ...]:
    """Return the numbers of the best pairs by Kruskal, best first, ties to the first, without pairs that close a
    cycle.

    pairs, merits:  two columns and the merit of each pair; ``n_edges`` pairs can form a forest.
    """
    forest = Forest()
    best_first = sorted(range(len(pairs)), key=lambda number: -merits[number])
    return tuple(islice((number for number in best_first if forest.add(pairs[number])), n_edges))


def is_forest(pairs: Sequence[tuple[int, ...]], numbers: Sequence[int]) -> bool:
    """Return True if the numbers are valid and no pair closes a cycle with earlier pairs."""
    forest = Forest()
    return all(number in range(len(pairs)) and forest.add(pairs[number]) for number in numbers)
