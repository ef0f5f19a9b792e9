"""Side counts of groups at a holder, counted from the rows because cells do not determine them."""

from __future__ import annotations

import numpy as np

from anonymize.criteria.criterion import SideCount, SideInputs
from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable, LocalRecords
from anonymize.table import Ints


class SidesOfGroups:
    """Side counts of a holder's rows for a candidate."""

    def __init__(
        self, side_inputs: SideInputs, records: LocalRecords, table: GeneralizedTable, candidate: Candidate
    ) -> None:
        self._side_inputs = side_inputs
        self._latest: tuple[SideCount, Ints] | None = None
        self._rows, self._child = records.members(candidate)
        self._n_children = len(candidate.children)
        place = np.full(table.n_entries, -1, dtype=np.int64)
        entries = table.entries_of(candidate)
        self._n_entries = len(entries)
        place[entries] = np.arange(len(entries))
        self._at = place[records.entry[self._rows]]

    def of(self, side: SideCount, group: Ints, n_groups: int) -> Ints:
        """Return a side count of every (group, child): int64, shape (n_groups, n_children).

        group:  of every refined entry, -1 if its rows are not counted. Further elements are ignored.
        """
        if side.is_additive:
            return self._summed(self._of_entries(side), group, n_groups)
        own = group[self._at]
        counted = np.flatnonzero(own >= 0)
        keys = own[counted] * self._n_children + self._child[counted]
        found = self._side_inputs[side].count(self._rows[counted], keys, n_groups * self._n_children)
        return found.reshape(n_groups, self._n_children)

    def _of_entries(self, side: SideCount) -> Ints:
        """Return the side count of every (refined entry, child): int64, shape (n_entries, n_children).

        The latest result is kept for calls with further groups.
        """
        if self._latest is None or self._latest[0] != side:
            keys, shape = self._at * self._n_children + self._child, (self._n_entries, self._n_children)
            found = self._side_inputs[side].count(self._rows, keys, self._n_entries * self._n_children)
            self._latest = side, found.reshape(shape)
        return self._latest[1]

    def _summed(self, of_entries: Ints, group: Ints, n_groups: int) -> Ints:
        total = np.zeros((n_groups, self._n_children), dtype=np.int64)
        counted = np.flatnonzero(group[: self._n_entries] >= 0)
        np.add.at(total, group[counted], of_entries[counted])
        return total
