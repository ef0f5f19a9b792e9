"""What a validity check adds up, when the counts come from several holders.

The leaf partitions and their counts before a specialization are public; only the counts per child are not.
A plan lists, in an order every holder derives alike, the sums that decide validity: for every non-empty qid
group on up to L columns and every child but the last, the records and the records with each protected
value. The last child is what the others leave of the group's public total. Groups made of the same leaf
partitions are tested once, whichever columns they come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable
from anonymize.privacy import Lkc, QidGroups, SensitiveView, Violation, group_violation, sensitive_view
from anonymize.table import Ints, Schema, tally

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True)
class Coding:
    """One subset of columns: the plan's group of each refined entry, or -1 where the group stands elsewhere."""

    group: Ints


@dataclass(frozen=True)
class GroupPlan:
    """The sums of one check.

    sizes:      public total of each group: int64, shape (n_groups,).
    protected:  per viewed sensitive column the public totals (n_groups, n_protected).
    """

    candidate: Candidate
    n_columns: int
    sizes: Ints
    protected: tuple[Ints, ...]
    _cells: Ints
    _codings: tuple[Coding, ...]
    _view: SensitiveView

    @property
    def n_groups(self) -> int:
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Values per (group, child): the size, and one per protected value."""
        return 1 + sum(n - 1 for n in self._view.n_values)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the sums: groups, children but the last, values."""
        return self.n_groups, len(self.candidate.children) - 1, self.width

    def sums(self, counts: Ints) -> Ints:
        """Add up one holder's records per (refined entry, child), shape (n_entries, n_children)."""
        parts = [self._by_group(counts, np.ones(len(self._cells), dtype=bool))]
        for n_values, value in zip(self._view.n_values, self._view.values, strict=True):
            parts += [self._by_group(counts, value[self._cells] == v) for v in range(n_values - 1)]
        return np.stack(parts, axis=2)

    def _by_group(self, counts: Ints, chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Ints:
        total = np.zeros((self.n_groups, len(self.candidate.children) - 1), dtype=np.int64)
        for coding in self._codings:
            rows = np.flatnonzero((coding.group >= 0) & chosen)
            for child in range(total.shape[1]):
                total[:, child] += tally(coding.group[rows], counts[rows, child], self.n_groups)
        return total

    def violation(self, schema: Schema, requirement: Lkc, sums: Ints) -> Violation | None:
        """Test the global sums, shape :attr:`shape`; return a violation or None."""
        totals = np.concatenate([self.sizes[:, None], *self.protected], axis=1)
        last = totals[:, None, :] - sums.sum(axis=1, keepdims=True)
        by_child = np.concatenate([sums, last], axis=1).reshape(-1, self.width)
        ends = np.cumsum([n - 1 for n in self._view.n_values])
        protected = np.split(by_child[:, 1:], ends[:-1], axis=1) if len(ends) else []
        return group_violation(schema, requirement, by_child[:, 0], protected, self._view, self.n_columns)


def plan_groups(schema: Schema, requirement: Lkc, table: GeneralizedTable, candidate: Candidate) -> GroupPlan:
    """List the sums that decide whether a candidate is valid, from public state alone."""
    view = sensitive_view(schema)
    entries = table.entries_of(candidate)
    partition, count, cells = table.partition[entries], table.count[entries], table.cell[entries]
    n_columns = min(requirement.max_known, len(schema.qid))
    codings, n_groups = distinct_groups(QidGroups(table, candidate, partition), partition, n_columns)
    protected = tuple(
        np.stack([_totals(codings, count * (value[cells] == v), n_groups) for v in range(n - 1)], axis=1)
        for n, value in zip(view.n_values, view.values, strict=True)
    )
    sizes = _totals(codings, count, n_groups)
    return GroupPlan(candidate, n_columns, sizes, protected, cells, codings, view)


def _totals(codings: tuple[Coding, ...], count: Ints, n_groups: int) -> Ints:
    total = np.zeros(n_groups, dtype=np.int64)
    for coding in codings:
        rows = coding.group >= 0
        total += tally(coding.group[rows], count[rows], n_groups)
    return total


def distinct_groups(groups: QidGroups, partition: Ints, n_columns: int) -> tuple[tuple[Coding, ...], int]:
    """Number the groups of all subsets of columns, each set of leaf partitions once."""
    present, first = np.unique(partition, return_index=True)
    prints = _fingerprints(present)
    known = np.zeros(0, dtype=np.uint64)
    codings = []
    for codes, n_codes in groups.codings(n_columns - 1):
        signature = np.zeros(n_codes, dtype=np.uint64)
        np.add.at(signature, codes[first], prints)
        occupied = np.flatnonzero(np.bincount(codes[first], minlength=n_codes))
        fresh = occupied[~np.isin(signature[occupied], known)]
        number = np.full(n_codes, -1, dtype=np.int64)
        number[fresh] = len(known) + np.arange(len(fresh))
        known = np.concatenate([known, signature[fresh]])
        if len(fresh):
            codings.append(Coding(number[codes]))
    return tuple(codings), len(known)


def _fingerprints(numbers: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """Spread partition numbers over 64 bits (the finalizer of splitmix64), so that sums identify sets.

    Two different sets share a sum with probability about 2**-64; the partitions are nobody's to choose.
    """
    x = (numbers.astype(np.uint64) + np.uint64(1)) * _MIX[0]
    x = (x ^ (x >> np.uint64(30))) * _MIX[1]
    x = (x ^ (x >> np.uint64(27))) * _MIX[2]
    return x ^ (x >> np.uint64(31))
