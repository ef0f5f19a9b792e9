"""Goal classification: InfoGain ([T] Eq. 3.2; semantics §3.4). Scores never change."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from anonymize.candidates import Proposal
from anonymize.cut import Candidate, Order
from anonymize.partition import GeneralizedTable
from anonymize.score import bits_per_record, impurity, information_gain
from anonymize.scores.score import NOTHING, Followed, Ranked, SettledPool, Terms
from anonymize.table import Ints, Schema
from anonymize.tds import Step


@dataclass(frozen=True)
class InfoGain:
    """Candidates with gain above 0, greatest InfoGain first."""

    needs_class: ClassVar[bool] = True
    no_candidate: ClassVar[str] = "no specialization of them tells the classes apart"
    follows_partitions: ClassVar[bool] = False
    wants_sums: ClassVar[bool] = False

    def merit(self, left: Ints, right: Ints) -> Ints:
        """Return the gain, less the part common to all grid points."""
        return -(impurity(left) + impurity(right))

    def published(self, step: Step, class_counts: Ints) -> tuple[float, int]:
        """Return InfoGain in bits per record, and the gain."""
        gain, size = information_gain(step.candidate, class_counts)
        return bits_per_record(gain, size), gain

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> Followed:
        return NOTHING

    def pool(self, followed: Followed) -> RankedByGain:
        return RankedByGain()


class RankedByGain(SettledPool):
    """Pool of :class:`InfoGain`."""

    def __init__(self) -> None:
        self._ranked: list[tuple[Fraction, Order, Proposal]] = []

    def add(self, proposal: Proposal) -> bool:
        if proposal.gain > 0:
            rank = -Fraction(proposal.gain, proposal.size)
            heapq.heappush(self._ranked, (rank, proposal.candidate.order, proposal))
        return proposal.gain > 0

    def best(self) -> Ranked | None:
        if not self._ranked:
            return None
        best = self._ranked[0][2]
        return Ranked(best.candidate, best.gain, best.size)

    def pop(self) -> Candidate | None:
        return heapq.heappop(self._ranked)[2].candidate if self._ranked else None

    def ahead(self, most: int) -> list[Candidate]:
        return [entry[2].candidate for entry in heapq.nsmallest(most, self._ranked)]

    def drop(self, applied: Candidate) -> None:
        self._ranked = [entry for entry in self._ranked if not entry[2].candidate.is_beside(applied)]
        heapq.heapify(self._ranked)
