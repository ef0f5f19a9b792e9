"""Goal general: Σ |T[qid_v]|² over the leaf partitions that hold v ([T] Eq. 3.4), and |T[v]| (the baseline of [CLU]).

Scores move with the partitions.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anonymize.candidates import Proposal
from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable, Refinement, occurring
from anonymize.scores.score import Followed, Ranked, SettledPool, Terms, Wanted
from anonymize.table import Ints, Schema
from anonymize.tds import Step


@dataclass(frozen=True)
class Groups:
    """All candidates, largest groups first.

    power:  exponent of the sizes of the leaf partitions in the sum.
    """

    power: ClassVar[int] = 2

    needs_class: ClassVar[bool] = False
    no_candidate: ClassVar[str] = (
        "all records of the value lie in a single cell of its grid or a single child (but not which)"
    )
    follows_partitions: ClassVar[bool] = True
    wants_sums: ClassVar[bool] = False

    def merit(self, left: Ints, right: Ints) -> Ints:
        """Return −(|c1|² + |c2|²): the least sum wins."""
        squares: Ints = left.sum(axis=1) ** 2 + right.sum(axis=1) ** 2
        return -squares

    def published(self, step: Step, class_counts: Ints) -> tuple[float, int]:
        """Return the sum as a share of its value for a single group of all records."""
        n_records = int(class_counts.sum())
        return step.score / n_records**self.power, step.score

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> GroupSizes:
        return GroupSizes(schema, table, self.power)

    def pool(self, followed: Followed) -> RankedByGroups:
        assert isinstance(followed, GroupSizes)
        return RankedByGroups(followed)


class RankedByGroups(SettledPool):
    """Pool of :class:`Groups`."""

    def __init__(self, followed: GroupSizes) -> None:
        self._followed = followed
        self._all: list[Candidate] = []

    def add(self, proposal: Proposal) -> bool:
        self._all.append(proposal.candidate)
        return True

    def best(self) -> Ranked | None:
        if not self._all:
            return None
        (best,) = self.ahead(1)
        return Ranked(best, self._followed.score(best), 1)

    def ahead(self, most: int) -> list[Candidate]:
        return heapq.nsmallest(most, self._all, key=lambda c: (-self._followed.score(c), c.order))

    def pop(self) -> Candidate | None:
        best = self.best()
        if best is None:
            return None
        self._all.remove(best.candidate)
        return best.candidate

    def drop(self, applied: Candidate) -> None:
        self._all = [candidate for candidate in self._all if not candidate.is_beside(applied)]


class GroupSizes:
    """Σ |T[qid_v]|^power over the leaf partitions that hold v, for every node v of the cut ([T] Eq. 3.4: squares)."""

    def __init__(self, schema: Schema, table: GeneralizedTable, power: int = 2) -> None:
        self._power = power
        self._sums = [np.zeros(column.n_leaves, dtype=np.int64) for column in schema.qid]
        self._count(table, np.arange(table.n_partitions), 1)

    def score(self, candidate: Candidate) -> int:
        """Return the present score of a specialization."""
        return int(self._sums[candidate.column][candidate.node.first])

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> int:
        """Account for a specialization: only the refined partitions change the sums."""
        after = refinement.table
        old = occurring(before.partition[refinement.entries], before.n_partitions)
        targets = refinement.targets
        new = occurring(after.partition[targets[targets >= 0]], after.n_partitions)
        self._count(before, old, -1)
        self._count(after, new, 1)
        return int((before.sizes()[old] ** self._power).sum())

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        """Return nothing: sizes of leaf partitions are public."""
        return ()

    def _count(self, table: GeneralizedTable, partitions: Ints, sign: int) -> None:
        of_partition = sign * table.sizes()[partitions] ** self._power
        for sums, nodes in zip(self._sums, table.nodes, strict=True):
            np.add.at(sums, nodes[partitions], of_partition)


@dataclass(frozen=True)
class Records(Groups):
    """All candidates, most records first: the sum of the sizes of the leaf partitions."""

    power: ClassVar[int] = 1
