"""Sums of a validity check with counts from several holders.

The leaf partitions and their counts before a specialization are public; the counts per child are not. A plan lists,
in an order that every holder derives alike, the sums that decide validity. These are every tally of the criteria in
every non-empty qid group of every concerned entry, for every child but the last. The last child follows from the
group's public total. Side counts have no public total and are added up for every child. Groups of the same leaf
partitions are tested once for all columns and entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.clear import first_violation
from anonymize.criteria.criterion import (
    RECORDS,
    Bools,
    Criterion,
    Measure,
    SideCount,
    Tally,
    Violation,
    sides_of,
    tallies_of,
)
from anonymize.criteria.size import least_size
from anonymize.criteria.views import sensitive_codes
from anonymize.cut import Candidate
from anonymize.linked_columns import CountedBlock
from anonymize.lkc.requirement import Entry, concerned, criteria_of
from anonymize.lkc.validity import SidesOfGroups
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import Groups, Names, distinct_groups
from anonymize.table import Codes, Ints, tally

N = TypeVar("N", bound=np.generic)
Part: TypeAlias = tuple[CountedBlock, GeneralizedTable]
"""Block and its part of T_g."""


@dataclass(frozen=True)
class GroupPlan:
    """Sums of a check.

    entries:   entries that the candidate concerns.
    criteria:  criteria of the entries, without repetitions.
    tallies:   tallies summed in every (group, child but the last), records first.
    sides:     side counts summed in every (group, child).
    totals:    public tallies of each group before the specialization: int64, shape (n_groups, n_tallies).
    """

    candidate: Candidate
    entries: tuple[Entry, ...]
    criteria: tuple[Criterion, ...]
    tallies: tuple[Tally, ...]
    sides: tuple[SideCount, ...]
    totals: Ints = field(repr=False)
    _counted: tuple[Bools, ...] = field(repr=False)
    _groups: Groups

    @property
    def n_groups(self) -> int:
        return len(self.totals)

    @property
    def n_children(self) -> int:
        return len(self.candidate.children)

    @property
    def sizes(self) -> Ints:
        """Records of each group: int64, shape (n_groups,)."""
        return self.totals[:, 0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sums: groups, children but the last, tallies; with side counts groups and all sums of each."""
        of_cells = self.n_groups, self.n_children - 1, len(self.tallies)
        return (self.n_groups, self._n_of_cells + self._n_side_counts) if self.sides else of_cells

    @property
    def _n_of_cells(self) -> int:
        return (self.n_children - 1) * len(self.tallies)

    @property
    def _n_side_counts(self) -> int:
        return self.n_children * len(self.sides)

    @property
    def names(self) -> Names:
        """Names of the groups that depend on the records and on the entries with the group: shape (n_groups,)."""
        return self._groups.names_by_scope

    def among(self, chosen: Bools) -> GroupPlan:
        """Return the plan of the chosen groups; chosen: shape (n_groups,)."""
        return replace(self, totals=self.totals[chosen], _groups=self._groups.among(chosen))

    def tallied(self, at: Ints, column: Codes, weights: Ints, n_columns: int) -> Ints:
        """Return the tallies of every (group, column) of a holder's rows: int64, shape (n_groups, n_columns,
        n_tallies).

        at, column, weights:  of every row with the node: place of its refined entry, number of its column below
                              ``n_columns``, weight; shape (n_rows,) each.
        """
        taken, size = self._taken(), self.n_groups * n_columns
        total = np.zeros((len(self.tallies), size), dtype=np.int64)
        for coding in self._groups.codings:
            group = coding.group[at]
            for number, counted in enumerate(self._counted):
                rows = np.flatnonzero((group >= 0) & counted[at])
                total[number] += tally(group[rows] * n_columns + column[rows], weights[rows], size)
        shaped = total.reshape(len(self.tallies), self.n_groups, n_columns)
        for by_group, tallied in zip(shaped, self.tallies, strict=True):
            by_group[~taken[tallied]] = 0
        return np.moveaxis(shaped, 0, 2)

    def sums(self, counts: Ints, sides: SidesOfGroups | None = None) -> Ints:
        """Add up a holder's records per (refined entry, child), shape (n_entries, n_children).

        sides:  makes the holder's side counts, if any. A sum is 0 if no entry with the group takes the measure.
        """
        return self.joined(self.sums_of_cells(counts[:, :-1]), self.sums_of_sides(sides))

    def sums_of_cells(self, counts: NDArray[N]) -> NDArray[N]:
        """Return the tallies of every (group, child but the last): shape (n_groups, n_children - 1, n_tallies).

        counts:  per (refined entry, child but the last), or shares of them: int64 or uint64, sums modulo 2^64.
        """
        taken = self._taken()
        by_tally = zip(self.tallies, self._counted, strict=True)
        return np.stack([self._by_group(counts, chosen, taken[t]) for t, chosen in by_tally], axis=2)

    def own_records(self, counts: Ints) -> Ints:
        """Return a holder's records of every (group, child): int64, shape (n_groups * n_children,).

        counts:  the holder's records per (refined entry, child), shape (n_entries, n_children).
        """
        return self._by_group(counts, self._counted[0], np.ones(self.n_groups, dtype=bool)).reshape(-1)

    def own_count(self, side: SideCount, sides: SidesOfGroups) -> Ints:
        """Return a holder's side count of every (group, child): int64, shape (n_groups * n_children,).

        Groups of entries that do not take the side count are included.
        """
        return self._side_counts(side, sides, np.ones(self.n_groups, dtype=bool)).reshape(-1)

    def sums_of_sides(self, sides: SidesOfGroups | None, wanted: Bools | None = None) -> Ints:
        """Return a holder's side counts of every (group, child): int64, shape (n_groups, n_children, n_sides).

        wanted:  side counts to compute, shape (n_sides,); the rest are 0. None: all.
        """
        if not self.sides:
            return np.zeros((self.n_groups, self.n_children, 0), dtype=np.int64)
        assert sides is not None
        taken = self._taken()
        total = np.zeros((self.n_groups, self.n_children, len(self.sides)), dtype=np.int64)
        for number, side in enumerate(self.sides):
            if wanted is None or wanted[number]:
                total[:, :, number] = self._side_counts(side, sides, taken[side])
        return total

    def joined(self, of_cells: NDArray[N], side_counts: NDArray[N]) -> NDArray[N]:
        """Join the sums of cells and of side counts into an array of :attr:`shape`."""
        if not self.sides:
            return of_cells
        flat = (
            of_cells.reshape(self.n_groups, self._n_of_cells),
            side_counts.reshape(self.n_groups, self._n_side_counts),
        )
        return np.concatenate(flat, axis=1)

    def cells_of(self, sums: NDArray[N]) -> NDArray[N]:
        """Return the part of joined sums from :meth:`sums_of_cells`."""
        flat = sums.reshape(self.n_groups, self._n_of_cells + self._n_side_counts)
        return flat[:, : self._n_of_cells].reshape(self.n_groups, self.n_children - 1, len(self.tallies))

    def _by_group(self, counts: NDArray[N], chosen: Bools, taken: Bools) -> NDArray[N]:
        total = np.zeros((self.n_groups, counts.shape[1]), dtype=counts.dtype)
        for coding in self._groups.codings:
            rows = np.flatnonzero((coding.group >= 0) & chosen)
            np.add.at(total, coding.group[rows], counts[rows])
        total[~taken] = 0
        return total

    def _side_counts(self, side: SideCount, sides: SidesOfGroups, taken: Bools) -> Ints:
        total = np.zeros((self.n_groups, self.n_children), dtype=np.int64)
        for coding in self._groups.codings:
            total += sides.of(side, coding.group, self.n_groups)
        return total * taken[:, None]

    def _taken(self) -> Mapping[Measure, Bools]:
        """Return the groups in which some entry takes each measure; shape (n_groups,)."""
        by_entry = [{*tallies_of(entry.criteria), *sides_of(entry.criteria)} for entry in self.entries]
        measures: tuple[Measure, ...] = (*self.tallies, *self.sides)
        return {m: self._asked([m in taken for taken in by_entry]) for m in measures}

    def _asked(self, asking: Sequence[bool]) -> Bools:
        """Return the groups of the selected entries. asking: for every entry, True if selected."""
        asked: Bools = np.logical_or.reduce(self._groups.asked[np.array(asking, dtype=bool)], axis=0)
        return asked

    def at_stake(self, criterion: Criterion) -> Bools:
        """Return the cases of a criterion that a child could break: shape (n_groups, n_cases)."""
        return self._stakes[criterion]

    @cached_property
    def _stakes(self) -> Mapping[Criterion, Bools]:
        totals, least = dict(zip(self.tallies, self.totals.T, strict=True)), self._least()
        found = {}
        for criterion in self.criteria:
            asked = self._asked([criterion in entry.criteria for entry in self.entries])
            found[criterion] = criterion.at_stake(totals, least) & asked[:, None]
        return found

    @property
    def sides_at_stake(self) -> Bools:
        """Side counts in some case at stake: shape (n_groups, n_children, n_sides)."""
        place = {side: number for number, side in enumerate(self.sides)}
        found = np.zeros((self.n_groups, len(self.sides)), dtype=bool)
        for criterion in self.criteria:
            if sides_of([criterion]):
                for forms, stake in zip(criterion.cases, self._stakes[criterion].T, strict=True):
                    taken = {place[m] for form in forms for m, _ in form.terms if m in place}
                    found[:, list(taken)] |= stake[:, None]
        return np.repeat(found[:, None], self.n_children, axis=1)

    def _least(self) -> Ints:
        """Return the greatest K of each group: a child with fewer records always fails. Shape (n_groups,)."""
        of_entries = np.array([least_size(entry.criteria) for entry in self.entries])
        least: Ints = np.where(self._groups.asked, of_entries[:, None], 1).max(axis=0)
        return least

    def by_child(self, sums: NDArray[N], totals: NDArray[N]) -> dict[Measure, NDArray[N]]:
        """Return the measures of every (group, child). The last child of a tally is the remainder of the totals.

        sums: of shape :attr:`shape`. totals: the public totals, or a share of the totals. Each of shape (groups,
        children).
        """
        flat = sums.reshape(self.n_groups, self._n_of_cells + self._n_side_counts)
        side_counts = flat[:, self._n_of_cells :].reshape(self.n_groups, self.n_children, len(self.sides))
        measured = self._tallies_by_child(self.cells_of(sums), totals)
        return measured | dict(zip(self.sides, np.moveaxis(side_counts, 2, 0), strict=True))

    def _tallies_by_child(self, of_cells: NDArray[N], totals: NDArray[N]) -> dict[Measure, NDArray[N]]:
        last = totals[:, None, :] - of_cells.sum(axis=1, keepdims=True, dtype=of_cells.dtype)
        by_tally = np.moveaxis(np.concatenate([of_cells, last], axis=1), 2, 0)
        return dict(zip(self.tallies, by_tally, strict=True))

    def violation(self, sums: Ints) -> Violation | None:
        """Judge the global sums, shape :attr:`shape`. Return a violation or None."""
        return self._violation(self.by_child(sums, self.totals))

    def violation_of_cells(self, counts: Ints) -> Violation | None:
        """Judge the criteria without side counts, whose counts are public once a specialization is applied.

        counts:  of all parties together, per (refined entry, child): int64, shape (n_entries, n_children).
        """
        return self._violation(self._tallies_by_child(self.sums_of_cells(counts[:, :-1]), self.totals))

    def _violation(self, measured: Mapping[Measure, Ints]) -> Violation | None:
        """Return the first criterion not met, among the criteria with measured side counts."""
        for entry, groups in zip(self.entries, self._groups.asked, strict=True):
            criteria = [c for c in entry.criteria if all(side in measured for side in sides_of([c]))]
            own = {measure: values[groups] for measure, values in measured.items()}
            found = first_violation(criteria, own, entry.scope.size)
            if found:
                return found
        return None


def plan_groups(
    parts: Sequence[Part],
    entries: Sequence[Entry],
    candidate: Candidate,
    names: Names | None = None,
    within: int | None = None,
) -> GroupPlan:
    """List the sums that decide a candidate's validity, from public state alone.

    parts:  T_g of every block, with the same leaf partitions. Refined entries stand block after block. The first
            block with the columns of a tally counts the tally.
    names:  name of every leaf partition; None: names from the partition numbers.
    within: further column; only groups on columns that include this column count.
    """
    refined = [table.entries_of(candidate) for _, table in parts]
    partition = np.concatenate([t.partition[own] for (_, t), own in zip(parts, refined, strict=True)])
    count = np.concatenate([t.count[own] for (_, t), own in zip(parts, refined, strict=True)])
    asking = concerned(entries, candidate.column)
    criteria = criteria_of(asking)
    scopes = [entry.scope for entry in asking]
    groups = distinct_groups(parts[0][1], candidate, partition, scopes, names, within)
    tallies, cells = tallies_of(criteria), [t.cell[own] for (_, t), own in zip(parts, refined, strict=True)]
    counted = _counted([block for block, _ in parts], cells, tallies)
    totals = np.stack([groups.summed(count * chosen) for chosen in counted], axis=1)
    return GroupPlan(candidate, asking, criteria, tallies, sides_of(criteria), totals, counted, groups)


def _counted(
    blocks: Sequence[CountedBlock], cells: Sequence[Ints], tallies: Sequence[Tally]
) -> tuple[Bools, ...]:
    """Return the refined entries counted by each tally. cells: cells of the refined entries of every block."""
    codes = [sensitive_codes(block.schema, own) for block, own in zip(blocks, cells, strict=True)]
    ends = np.cumsum([len(own) for own in cells])
    found = []
    for each in tallies:
        place = next(i for i, block in enumerate(blocks) if block.tells(each))
        counted = np.zeros(ends[-1], dtype=bool)
        own = slice(ends[place] - len(cells[place]), ends[place])
        counted[own] = each == RECORDS or blocks[place].renumbered(each).among(codes[place])
        found.append(counted)
    return tuple(found)
