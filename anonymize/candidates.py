"""The candidates of a run, in order of preference (DESIGN §3)."""

from __future__ import annotations

import heapq
from fractions import Fraction

import numpy as np

from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable, Refinement
from anonymize.table import Schema


class ScoredCandidates:
    """Candidates of goal classification: InfoGain does not change when other columns are specialized."""

    def __init__(self) -> None:
        self._heap: list[tuple[Fraction, tuple[int, int], Candidate]] = []

    def add(self, candidate: Candidate, gain: int, size: int) -> None:
        """Take a candidate with InfoGain gain/size in units of 2**-20 bits; without gain it is none."""
        if gain > 0:
            heapq.heappush(self._heap, (-Fraction(gain, size), candidate.order, candidate))

    def pop(self) -> Candidate | None:
        return heapq.heappop(self._heap)[2] if self._heap else None


class GroupSizes:
    """Candidates of goal general: Σ |T[qid_v]|² over the leaf partitions that hold v ([T] Eq. 3.4)."""

    def __init__(self, schema: Schema, table: GeneralizedTable) -> None:
        self._candidates: dict[tuple[int, int], Candidate] = {}
        squares = int(table.sizes()[0]) ** 2
        self._squares = [np.zeros(column.n_leaves, dtype=np.int64) for column in schema.qid]
        for sums in self._squares:
            sums[0] = squares

    def add(self, candidate: Candidate) -> None:
        self._candidates[candidate.order] = candidate

    def pop(self) -> Candidate | None:
        """Take out the candidate with the greatest sum; ties in candidate order."""
        if not self._candidates:
            return None
        best = min(self._candidates, key=lambda order: (-self.score(*order), order))
        return self._candidates.pop(best)

    def score(self, column: int, first: int) -> int:
        return int(self._squares[column][first])

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> None:
        """Account for a specialization: only partitions that it refined count differently."""
        after = refinement.table
        old = np.unique(before.partition[refinement.entries])
        new = np.unique(after.partition[refinement.targets[refinement.targets >= 0]])
        for table, partitions, sign in ((before, old, -1), (after, new, 1)):
            squares = sign * table.sizes()[partitions] ** 2
            for sums, nodes in zip(self._squares, table.nodes, strict=True):
                np.add.at(sums, nodes[partitions], squares)
