"""Qid groups: records with the same generalized values on a subset of the columns that somebody may know.

A scope says how many columns somebody may know, and of which. A specialization changes the groups with leaf
partitions that hold its node. Groups of the same leaf partitions have a single number, in all columns and scopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools
from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable, Refinement
from anonymize.table import Ints

Names: TypeAlias = NDArray[np.uint64]
"""Names of record sets: 64 bits for every leaf partition, added up over a set of partitions.

Two different sets have the same sum with probability about 2**-64. The numbers are public. A party that invents rows
influences the partitions and could search for colliding sets (docs/security.md, N24).
"""

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

_ENTRIES = 1 << 62
"""First number of an entry: no partition has a number as large."""


def marks_of(n_entries: int) -> Names:
    """Return the mark of every entry of a requirement, which is added to the names of the entry's groups: uint64."""
    return names_of(_ENTRIES + np.arange(n_entries))


def names_of(partitions: Ints) -> Names:
    """Spread partition numbers over 64 bits (the finalizer of splitmix64): uint64, the shape of ``partitions``."""
    x = (partitions.astype(np.uint64) + np.uint64(1)) * _MIX[0]
    x = (x ^ (x >> np.uint64(30))) * _MIX[1]
    x = (x ^ (x >> np.uint64(27))) * _MIX[2]
    return x ^ (x >> np.uint64(31))


class RecordSets:
    """Lasting names: the names of a refined partition's parts add up to the partition's name.

    So a group keeps its name in a refinement that leaves its records unchanged.

    names:  name of every leaf partition of T_g: uint64, shape (n_partitions,).
    """

    def __init__(self, table: GeneralizedTable) -> None:
        self.names = names_of(np.arange(table.n_partitions))

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> None:
        """Account for a specialization: appended partitions get new names, and their parents keep the remainder."""
        after, n_before = refinement.table, before.n_partitions
        at, child = np.nonzero(refinement.targets >= 0)
        parent = np.empty(after.n_partitions, dtype=np.int64)
        parent[after.partition[refinement.targets[at, child]]] = before.partition[refinement.entries[at]]
        appended = np.arange(n_before, after.n_partitions)
        fresh = names_of(appended)
        self.names = np.concatenate([self.names, fresh])
        np.subtract.at(self.names, parent[appended], fresh)


N = TypeVar("N", bound=np.generic)


@dataclass(frozen=True)
class Scope:
    """Possible knowledge about a person: at most ``max_known`` of the columns.

    columns:  numbers in the schema, ascending.
    """

    columns: tuple[int, ...]
    max_known: int

    @property
    def size(self) -> int:
        """Number of columns that the finest groups agree on."""
        return min(self.max_known, len(self.columns))

    def among(self, n_columns: int) -> int:
        """Return the number of columns that groups agree on if at most ``n_columns`` are examined."""
        return min(n_columns, self.size)


_LOOKED_UP = 16
"""Size of the number range per given number up to which ranking by look-up is faster than sorting."""


def _ranked(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers, ascending, and the rank of each, by look-up: numbers are small and >= 0."""
    held = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=bool)
    held[numbers] = True
    return np.flatnonzero(held), (np.cumsum(held) - 1)[numbers]


def _dense(codes: Ints, n_codes: int) -> tuple[Ints, int]:
    """Return the rank of each code and the number of ranks; codes are below ``n_codes``."""
    if n_codes > _LOOKED_UP * len(codes):
        distinct, ranks = np.unique(codes, return_inverse=True)
        return ranks, len(distinct)
    held = np.zeros(n_codes, dtype=bool)
    held[codes] = True
    places = np.cumsum(held, dtype=np.int32)  # there are fewer than 2**31 partitions
    return places[codes] - np.int64(1), int(places[-1])


class QidGroups:
    """Codings of the refined partitions of a candidate by qid groups, subset by subset."""

    def __init__(
        self,
        table: GeneralizedTable,
        candidate: Candidate,
        partition: Ints,
        columns: Sequence[int],
        within: int | None = None,
    ) -> None:
        """Prepare the columns. ``partition``: partition of every item, shape (n_items,). ``columns``: columns of the
        scope.

        within:  further column that every subset contains.
        """
        present, self._rank = _ranked(partition)
        self._n_partitions = len(present)
        self._first: tuple[Ints, int] = np.zeros(self._n_partitions, dtype=np.int64), 1
        if within is not None:
            values, codes = _ranked(table.nodes[within, present])
            self._first = codes, len(values)
        self._columns: list[tuple[Ints, int]] = []
        for column in (column for column in columns if column not in (candidate.column, within)):
            nodes = table.nodes[column, present]
            codes, n_nodes = _dense(nodes, int(nodes.max(initial=0)) + 1)
            if n_nodes > 1:
                self._columns.append((codes, n_nodes))
        self._columns.sort(key=lambda pair: -pair[1])

    def codings(self, n_others: int) -> Iterator[tuple[Ints, int]]:
        """Yield (group of each item, number of groups) for every subset of ``n_others`` more columns.

        Subsets with the finest columns come first. A column with a single value among these partitions separates
        nothing and is left out. A subset that already separates all partitions stands for all its supersets.
        """
        for codes, n_codes in self.of_partitions(n_others):
            yield codes[self._rank], n_codes

    def of_partitions(self, n_others: int) -> Iterator[tuple[Ints, int]]:
        """Yield the same as (group of each partition, number of groups); for partitions see :meth:`places`."""
        yield from self._subsets(0, min(n_others, len(self._columns)), *self._first)

    def places(self, items: Ints) -> Ints:
        """Return the place in :meth:`of_partitions` of each item's partition. items: numbers of items."""
        return self._rank[items]

    def _subsets(self, start: int, n: int, codes: Ints, n_codes: int) -> Iterator[tuple[Ints, int]]:
        """Extend a dense coding of the partitions by ``n`` of the columns from ``start`` on."""
        if n == 0 or n_codes == self._n_partitions:
            yield codes, n_codes
            return
        for i in range(start, len(self._columns) - n + 1):
            column, radix = self._columns[i]
            finer, n_finer = codes * radix + column, n_codes * radix
            if n > 1 or n_finer > 4 * self._n_partitions:
                finer, n_finer = _dense(finer, n_finer)
            yield from self._subsets(i + 1, n - 1, finer, n_finer)


@dataclass(frozen=True)
class Coding:
    """Coding of a subset of columns: the plan's group of each refined entry, or -1 if in another coding."""

    group: Ints = field(repr=False)


@dataclass(frozen=True)
class Groups:
    """Distinct groups of some scopes.

    codings:  a coding for each subset of columns that has new groups.
    n_groups: number of groups of all codings together.
    asked:    True if a scope has a group: shape (n_scopes, n_groups).
    names:    names of the groups' record sets (:data:`Names`): uint64, shape (n_groups,).
    """

    codings: tuple[Coding, ...]
    n_groups: int
    asked: Bools = field(repr=False)
    names: Names = field(repr=False)

    @property
    def names_by_scope(self) -> Names:
        """Names of the groups that depend on the records and on the scopes with the group: shape (n_groups,)."""
        weights = marks_of(len(self.asked))
        names: Names = self.names + (self.asked * weights[:, None]).sum(axis=0, dtype=np.uint64)
        return names

    def among(self, chosen: Bools) -> Groups:
        """Return the chosen groups, renumbered in the same order; chosen: shape (n_groups,)."""
        number = np.full(self.n_groups + 1, -1, dtype=np.int64)  # the last stands for entries without a group
        number[:-1][chosen] = np.arange(int(chosen.sum()))
        codings = (Coding(number[coding.group]) for coding in self.codings)
        kept = tuple(coding for coding in codings if (coding.group >= 0).any())
        return Groups(kept, int(chosen.sum()), self.asked[:, chosen], self.names[chosen])

    def summed(self, values: NDArray[N]) -> NDArray[N]:
        """Add values of the items up by group: shape (n_groups, ...); uint64 modulo 2^64.

        values:  of every item, shape (n_items, ...).
        """
        total = np.zeros((self.n_groups, *values.shape[1:]), dtype=values.dtype)
        for coding in self.codings:
            rows = np.flatnonzero(coding.group >= 0)
            np.add.at(total, coding.group[rows], values[rows])
        return total


def distinct_groups(
    table: GeneralizedTable,
    candidate: Candidate,
    partition: Ints,
    scopes: Sequence[Scope],
    names: Names | None = None,
    within: int | None = None,
) -> Groups:
    """Number the groups of all subsets of the entries' columns. Each set of leaf partitions gets a single number.

    partition:  partition of every item, shape (n_items,).
    names:      names of every leaf partition; None: names from the partition numbers.
    within:     further column; only subsets with this column count.
    """
    present, rank = _ranked(partition)
    numbers = _Numbers(names_of(present) if names is None else names[present], rank)
    for number, scope in enumerate(scopes):
        for codes, n_codes in _codings(table, candidate, partition, scope, within):
            numbers.add(number, codes, n_codes)
    return numbers.groups(len(scopes))


_AT_ONCE = 1 << 18
"""Groups that are numbered at once: sorting takes a few megabytes."""


@dataclass(frozen=True)
class _Unnumbered:
    """Groups of a coding of partitions, without numbers yet.

    occupied:  codes with a partition, ascending: shape (n_occupied,).
    names:     of their groups: uint64, shape (n_occupied,).
    """

    scope: int
    codes: Ints = field(repr=False)
    n_codes: int
    occupied: Ints = field(repr=False)
    names: Names = field(repr=False)


class _Numbers:
    """Numbers of groups by their names, in the order of first appearance."""

    def __init__(self, names: Names, rank: Ints) -> None:
        """``names``: of every present partition. ``rank``: place of each item's partition among these."""
        self._names, self._rank = names, rank
        self._known = names[:0]
        self._codings: list[Coding] = []
        self._asked: list[tuple[int, Ints]] = []
        self._waiting: list[_Unnumbered] = []
        self._n_waiting = 0

    def add(self, scope: int, codes: Ints, n_codes: int) -> None:
        """Take a coding of the present partitions. ``scope``: number of its scope."""
        sums = np.zeros(n_codes, dtype=np.uint64)
        np.add.at(sums, codes, self._names)
        occupied = np.flatnonzero(np.bincount(codes, minlength=n_codes))
        self._waiting.append(_Unnumbered(scope, codes, n_codes, occupied, sums[occupied]))
        self._n_waiting += len(occupied)
        if self._n_waiting >= _AT_ONCE:
            self._number()

    def _number(self) -> None:
        """Give a number to every waiting group."""
        every = np.concatenate([self._known, *(each.names for each in self._waiting)])
        _, first, kind = np.unique(every, return_index=True, return_inverse=True)
        is_new = np.zeros(len(every), dtype=bool)
        is_new[first] = True
        numbers = (np.cumsum(is_new) - 1)[first][kind]
        start = len(self._known)
        for each in self._waiting:
            own = slice(start, start + len(each.names))
            self._asked.append((each.scope, numbers[own]))
            if is_new[own].any():
                of_codes = np.full(each.n_codes, -1, dtype=np.int64)
                of_codes[each.occupied[is_new[own]]] = numbers[own][is_new[own]]
                self._codings.append(Coding(of_codes[each.codes][self._rank]))
            start = own.stop
        self._known, self._waiting, self._n_waiting = every[is_new], [], 0

    def groups(self, n_scopes: int) -> Groups:
        """Return all groups."""
        self._number()
        asked = np.zeros((n_scopes, len(self._known)), dtype=bool)
        for scope, numbers in self._asked:
            asked[scope, numbers] = True
        return Groups(tuple(self._codings), len(self._known), asked, self._known)


def _codings(
    table: GeneralizedTable, candidate: Candidate, partition: Ints, scope: Scope, within: int | None
) -> Iterator[tuple[Ints, int]]:
    """Yield the codings of the present partitions by a scope; nothing if no subset contains both columns."""
    if within is None:
        return QidGroups(table, candidate, partition, scope.columns).of_partitions(scope.size - 1)
    if within not in scope.columns or scope.size < 2:
        return iter(())
    more = scope.size - 2
    columns = scope.columns if more else ()
    return QidGroups(table, candidate, partition, columns, within).of_partitions(more)
