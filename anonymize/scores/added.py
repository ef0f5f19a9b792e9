"""Goal classification: gain of a specialization on the current table (semantics §10.6). The score moves with T_g."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from anonymize.candidates import Proposal
from anonymize.contexts import LEAST_PER_CLASS, Contexts, Large, added_by
from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable
from anonymize.score import FRACTION_BITS, impurity
from anonymize.scores.names import By
from anonymize.scores.score import Followed, MovingPool, Ranked, Terms, Wanted
from anonymize.table import Ints, Schema
from anonymize.tds import Step

COUNTS = "context_counts"


@dataclass(frozen=True)
class Added:
    """Candidates with gain and children of an allowed size, greatest addition first; only positive additions.

    contexts:   kind of contexts.
    per_class:  least number of records in a context, for each class value but one.
    """

    contexts: By = "cells"
    per_class: int = LEAST_PER_CLASS
    needs_class: ClassVar[bool] = True
    no_candidate: ClassVar[str] = (
        "no specialization of them adds to what the table tells about the class, or some child has too few records"
    )
    follows_partitions: ClassVar[bool] = True
    wants_sums: ClassVar[bool] = True

    def merit(self, left: Ints, right: Ints) -> Ints:
        """Return the gain, less the part common to all grid points."""
        return -(impurity(left) + impurity(right))

    def published(self, step: Step, class_counts: Ints) -> tuple[float, int]:
        """Return the addition of the specialization, in bits of all records together."""
        return step.score / (1 << FRACTION_BITS), step.score

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> FollowedContexts:
        return FollowedContexts(schema, table, terms, self)

    def pool(self, followed: Followed) -> RankedByAdded:
        assert isinstance(followed, FollowedContexts)
        return RankedByAdded(followed)


class FollowedContexts(Contexts):
    """Contexts of T_g, with the contexts opened for every candidate."""

    def __init__(self, schema: Schema, table: GeneralizedTable, terms: Terms, score: Added) -> None:
        super().__init__(schema, table, score.contexts, score.per_class)
        self.terms = terms
        self._told: dict[Candidate, int] = {}
        self._asked: dict[Candidate, Large] = {}

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        """Return the sums of all contexts of new candidates; of old candidates, of new contexts if any broke."""
        self._asked = {}
        of_node: dict[tuple[int, int, bool], Large | None] = {}
        for candidate in candidates:
            told = self._told.get(candidate)
            if told == self.turn:
                continue
            self._told[candidate] = self.turn
            # Candidates of the same node have the same contexts.
            node = candidate.column, candidate.node.first, told is None
            if node not in of_node:
                of_node[node] = self.of(candidate) if told is None else self.new_of(candidate)
            large = of_node[node]
            if large is not None:
                self._asked[candidate] = large
        return [self._wanted(c, large) for c, large in self._asked.items()]

    @staticmethod
    def _wanted(candidate: Candidate, large: Large) -> Wanted:
        return Wanted(candidate, COUNTS, large.entries, large.sums, large.totals)

    def asked(self, candidate: Candidate) -> Large:
        """Return the contexts of the candidate's sums in this turn."""
        return self._asked[candidate]


@dataclass
class _Sums:
    """Known sums of a candidate.

    of_node:    class counts of the children: int64, shape (n_children, n_classes).
    partition:  leaf partition of each context but the remainder of the node: int64, shape (n_contexts,).
    counts:     counts of each context: int64, shape (n_contexts, n_children, n_classes).
    added:      addition of each context: int64, shape (n_contexts,).
    total:      addition of all contexts.
    """

    candidate: Candidate
    of_node: Ints = field(repr=False)
    partition: Ints = field(repr=False)
    counts: Ints = field(repr=False)
    added: Ints = field(repr=False)
    total: int = 0

    def take(self, large: Large, sums: Ints, broken: Ints) -> None:
        """Replace the contexts of broken leaf partitions by the new contexts."""
        is_broken = np.zeros(max(self.partition.max(initial=-1), broken.max(initial=-1)) + 1, dtype=bool)
        is_broken[broken] = True
        kept = ~is_broken[self.partition]
        counts = large.with_last(sums)
        self.partition = np.concatenate([self.partition[kept], large.partition])
        self.counts = np.concatenate([self.counts[kept], counts])
        left = self.of_node - self.counts.sum(axis=0)
        *_, of_left = added = added_by(np.concatenate([counts, left[None]]))
        self.added = np.concatenate([self.added[kept], added[:-1]])
        self.total = int(self.added.sum() + of_left)


class RankedByAdded(MovingPool[_Sums]):
    """Pool of :class:`Added`."""

    def __init__(self, followed: FollowedContexts) -> None:
        super().__init__()
        self._followed = followed

    def add(self, proposal: Proposal) -> bool:
        candidate, of_node = proposal.candidate, proposal.counts
        if proposal.gain <= 0 or not self._followed.terms.allow(candidate, of_node.sum(axis=1)):
            return False
        none = np.zeros(0, dtype=np.int64)
        self._known[candidate.order] = _Sums(candidate, of_node, none, none.reshape(0, *of_node.shape), none)
        return True

    def told(self, wanted: Wanted, sums: Ints) -> None:
        large = self._followed.asked(wanted.candidate)
        self._known[wanted.candidate.order].take(large, sums, self._followed.broken)

    def best(self) -> Ranked | None:
        best = min(
            self._known.values(), key=lambda known: (-known.total, known.candidate.order), default=None
        )
        return None if best is None or best.total <= 0 else Ranked(best.candidate, best.total, 1)
