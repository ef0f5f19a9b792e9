"""Sums of a validity check when the counts come from several holders.

The leaf partitions and their counts before a specialization are public; only the counts per child are not.
A plan lists, in an order every holder derives alike, the sums that decide validity: for every non-empty qid
group of every entry that is concerned and every child but the last, whatever the criteria count of cells. The last
child is what the others leave of the group's public total; side counts, of which no total is public, are added up for
every child. Groups made of the same leaf partitions are tested once, whichever columns and entries they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.blocks import CountedBlock
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
from anonymize.lkc.requirement import Entry, concerned, criteria_of
from anonymize.lkc.sides import SidesOfGroups
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import Groups, distinct_groups
from anonymize.record_sets import Names
from anonymize.table import Codes, Ints, tally

N = TypeVar("N", bound=np.generic)
Part: TypeAlias = tuple[CountedBlock, GeneralizedTable]
"""Of T_g what is told of a block."""


@dataclass(frozen=True)
class GroupPlan:
    """The sums of one check.

    entries:   those that the candidate concerns.
    criteria:  what they ask for, each criterion once.
    tallies:   what is added up in every (group, child but the last), records first.
    sides:     what is added up in every (group, child).
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
        return (self.n_groups, self._n_of_cells + self._n_beside) if self.sides else of_cells

    @property
    def _n_of_cells(self) -> int:
        return (self.n_children - 1) * len(self.tallies)

    @property
    def _n_beside(self) -> int:
        return self.n_children * len(self.sides)

    @property
    def names(self) -> Names:
        """By which the records of each group, and the entries that ask for it, are told apart: shape (n_groups,)."""
        return self._groups.names_by_scope

    def among(self, chosen: Bools) -> GroupPlan:
        """The sums of some of the groups; chosen: shape (n_groups,)."""
        return replace(self, totals=self.totals[chosen], _groups=self._groups.among(chosen))

    def tallied(self, at: Ints, column: Codes, weights: Ints, n_columns: int) -> Ints:
        """The tallies of every (group, column) of one holder's rows: int64, shape (n_groups, n_columns, n_tallies).

        at, column, weights:  of every row that holds the node: its refined entry by place, where it belongs of
                              ``n_columns`` that rows are parted by, its weight; shape (n_rows,) each.
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
        """Add up one holder's records per (refined entry, child), shape (n_entries, n_children).

        sides:  makes its side counts, where there are any. A sum that no entry with the group asks for is 0.
        """
        return self.joined(self.sums_of_cells(counts[:, :-1]), self.sums_of_sides(sides))

    def sums_of_cells(self, counts: NDArray[N]) -> NDArray[N]:
        """The tallies of every (group, child but the last): shape (n_groups, n_children - 1, n_tallies).

        counts:  per (refined entry, child but the last), or shares of them: int64 or uint64, sums modulo 2^64.
        """
        taken = self._taken()
        by_tally = zip(self.tallies, self._counted, strict=True)
        return np.stack([self._by_group(counts, chosen, taken[t]) for t, chosen in by_tally], axis=2)

    def own_records(self, counts: Ints) -> Ints:
        """One holder's records of every (group, child): int64, shape (n_groups * n_children,).

        counts:  its records per (refined entry, child), shape (n_entries, n_children).
        """
        return self._by_group(counts, self._counted[0], np.ones(self.n_groups, dtype=bool)).reshape(-1)

    def own_count(self, side: SideCount, sides: SidesOfGroups) -> Ints:
        """One holder's side count of every (group, child): int64, shape (n_groups * n_children,).

        Also of groups of entries that do not ask for it.
        """
        return self._beside(side, sides, np.ones(self.n_groups, dtype=bool)).reshape(-1)

    def sums_of_sides(self, sides: SidesOfGroups | None, wanted: Bools | None = None) -> Ints:
        """One holder's side counts of every (group, child): int64, shape (n_groups, n_children, n_sides).

        wanted:  which of them, shape (n_sides,); 0 stands for the others. None: all.
        """
        if not self.sides:
            return np.zeros((self.n_groups, self.n_children, 0), dtype=np.int64)
        assert sides is not None
        taken = self._taken()
        total = np.zeros((self.n_groups, self.n_children, len(self.sides)), dtype=np.int64)
        for number, side in enumerate(self.sides):
            if wanted is None or wanted[number]:
                total[:, :, number] = self._beside(side, sides, taken[side])
        return total

    def joined(self, of_cells: NDArray[N], beside: NDArray[N]) -> NDArray[N]:
        """Sums of cells and of sides as one array of :attr:`shape`."""
        if not self.sides:
            return of_cells
        flat = (
            of_cells.reshape(self.n_groups, self._n_of_cells),
            beside.reshape(self.n_groups, self._n_beside),
        )
        return np.concatenate(flat, axis=1)

    def cells_of(self, sums: NDArray[N]) -> NDArray[N]:
        """Return the part of joined sums that :meth:`sums_of_cells` gave."""
        flat = sums.reshape(self.n_groups, self._n_of_cells + self._n_beside)
        return flat[:, : self._n_of_cells].reshape(self.n_groups, self.n_children - 1, len(self.tallies))

    def _by_group(self, counts: NDArray[N], chosen: Bools, taken: Bools) -> NDArray[N]:
        total = np.zeros((self.n_groups, counts.shape[1]), dtype=counts.dtype)
        for coding in self._groups.codings:
            rows = np.flatnonzero((coding.group >= 0) & chosen)
            np.add.at(total, coding.group[rows], counts[rows])
        total[~taken] = 0
        return total

    def _beside(self, side: SideCount, sides: SidesOfGroups, taken: Bools) -> Ints:
        total = np.zeros((self.n_groups, self.n_children), dtype=np.int64)
        for coding in self._groups.codings:
            total += sides.of(side, coding.group, self.n_groups)
        return total * taken[:, None]

    def _taken(self) -> Mapping[Measure, Bools]:
        """In which groups some entry takes each measure; shape (n_groups,)."""
        by_entry = [{*tallies_of(entry.criteria), *sides_of(entry.criteria)} for entry in self.entries]
        measures: tuple[Measure, ...] = (*self.tallies, *self.sides)
        return {m: self._asked([m in taken for taken in by_entry]) for m in measures}

    def _asked(self, asking: Sequence[bool]) -> Bools:
        """Return the groups that some of the entries have; asking: of every entry, True if it counts."""
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
        """Return the side counts that some case at stake takes: shape (n_groups, n_children, n_sides)."""
        place = {side: number for number, side in enumerate(self.sides)}
        found = np.zeros((self.n_groups, len(self.sides)), dtype=bool)
        for criterion in self.criteria:
            if sides_of([criterion]):
                for forms, stake in zip(criterion.cases, self._stakes[criterion].T, strict=True):
                    taken = {place[m] for form in forms for m, _ in form.terms if m in place}
                    found[:, list(taken)] |= stake[:, None]
        return np.repeat(found[:, None], self.n_children, axis=1)

    def _least(self) -> Ints:
        """The greatest K that a group is asked for: a child with fewer records fails that test, whatever else is
        asked of it. Shape (n_groups,)."""
        of_entries = np.array([least_size(entry.criteria) for entry in self.entries])
        least: Ints = np.where(self._groups.asked, of_entries[:, None], 1).max(axis=0)
        return least

    def by_child(self, sums: NDArray[N], totals: NDArray[N]) -> dict[Measure, NDArray[N]]:
        """The measures of every (group, child), of tallies the last child being what the others leave of the totals.

        sums: of shape :attr:`shape`. totals: the public ones, or a share of them. Each of shape (groups, children).
        """
        flat = sums.reshape(self.n_groups, self._n_of_cells + self._n_beside)
        beside = flat[:, self._n_of_cells :].reshape(self.n_groups, self.n_children, len(self.sides))
        measured = self._tallies_by_child(self.cells_of(sums), totals)
        return measured | dict(zip(self.sides, np.moveaxis(beside, 2, 0), strict=True))

    def _tallies_by_child(self, of_cells: NDArray[N], totals: NDArray[N]) -> dict[Measure, NDArray[N]]:
        last = totals[:, None, :] - of_cells.sum(axis=1, keepdims=True, dtype=of_cells.dtype)
        by_tally = np.moveaxis(np.concatenate([of_cells, last], axis=1), 2, 0)
        return dict(zip(self.tallies, by_tally, strict=True))

    def violation(self, sums: Ints) -> Violation | None:
        """Rule the global sums, shape :attr:`shape`; return a violation or None."""
        return self._violation(self.by_child(sums, self.totals))

    def violation_of_cells(self, counts: Ints) -> Violation | None:
        """Rule what is public once a specialization is applied: criteria that take no side counts.

        counts:  of all parties together, per (refined entry, child): int64, shape (n_entries, n_children).
        """
        return self._violation(self._tallies_by_child(self.sums_of_cells(counts[:, :-1]), self.totals))

    def _violation(self, measured: Mapping[Measure, Ints]) -> Violation | None:
        """The first criterion not met, of those whose side counts are measured."""
        for entry, groups in zip(self.entries, self._groups.asked, strict=True):
            criteria = [c for c in entry.criteria if all(side in measured for side in sides_of([c]))]
            own = {measure: values[groups] for measure, values in measured.items()}
            found = first_violation(criteria, own, entry.scope.size)
            if found:
                return found
        return None


def plan_groups(
    parts: Sequence[Part], entries: Sequence[Entry], candidate: Candidate, names: Names | None = None
) -> GroupPlan:
    """List the sums that decide whether a candidate is valid, from public state alone.

    parts:  T_g, of the same leaf partitions in all blocks. Refined entries are those of one after the other; each
            tally is counted in the first block that tells it.
    names:  of every leaf partition; None: those of its number.
    """
    refined = [table.entries_of(candidate) for _, table in parts]
    partition = np.concatenate([t.partition[own] for (_, t), own in zip(parts, refined, strict=True)])
    count = np.concatenate([t.count[own] for (_, t), own in zip(parts, refined, strict=True)])
    asking = concerned(entries, candidate.column)
    criteria = criteria_of(asking)
    scopes = [entry.scope for entry in asking]
    groups = distinct_groups(parts[0][1], candidate, partition, scopes, names)
    tallies, cells = tallies_of(criteria), [t.cell[own] for (_, t), own in zip(parts, refined, strict=True)]
    counted = _counted([block for block, _ in parts], cells, tallies)
    totals = np.stack([groups.summed(count * chosen) for chosen in counted], axis=1)
    return GroupPlan(candidate, asking, criteria, tallies, sides_of(criteria), totals, counted, groups)


def _counted(
    blocks: Sequence[CountedBlock], cells: Sequence[Ints], tallies: Sequence[Tally]
) -> tuple[Bools, ...]:
    """Of every tally which refined entries it counts; cells: of those of every block."""
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
