"""Weights of columns: the score of a candidate counts as many times as its column weighs (semantics §10.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from anonymize.candidates import Proposal
from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable
from anonymize.scores.score import CandidatePool, Followed, Ranked, Score, Terms, Wanted
from anonymize.table import Ints, Schema
from anonymize.tds import Step


@dataclass(frozen=True)
class Weighted:
    """Score of a single holder with a weight for each column. Published scores, and split points, have no weight.

    inner:    the score.
    weights:  positive, by number of the column; 1 for all other columns.
    """

    inner: Score
    weights: Mapping[int, Fraction]

    @property
    def needs_class(self) -> bool:
        return self.inner.needs_class

    @property
    def no_candidate(self) -> str:
        return self.inner.no_candidate

    @property
    def wants_sums(self) -> bool:
        return self.inner.wants_sums

    @property
    def follows_partitions(self) -> bool:
        return self.inner.follows_partitions

    def published(self, step: Step, class_counts: Ints) -> tuple[float, int]:
        return self.inner.published(step, class_counts)

    def merit(self, left: Ints, right: Ints) -> Ints:
        return self.inner.merit(left, right)

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> Followed:
        return self.inner.followed(schema, table, terms)

    def pool(self, followed: Followed) -> RankedByWeight:
        return RankedByWeight(self, followed)


@dataclass
class RankedByWeight:
    """Pool of :class:`Weighted`: a pool of the score for each column."""

    score: Weighted
    followed: Followed
    pools: dict[int, CandidatePool] = field(default_factory=dict)

    def add(self, proposal: Proposal) -> bool:
        column = proposal.candidate.column
        if column not in self.pools:
            self.pools[column] = self.score.inner.pool(self.followed)
        return self.pools[column].add(proposal)

    def told(self, wanted: Wanted, sums: Ints) -> None:
        self.pools[wanted.candidate.column].told(wanted, sums)

    def best(self) -> Ranked | None:
        ranked = [self._weighted(best) for pool in self.pools.values() if (best := pool.best()) is not None]
        return min(
            ranked, key=lambda r: (-Fraction(r.numerator, r.denominator), r.candidate.order), default=None
        )

    def _weighted(self, best: Ranked) -> Ranked:
        weight = self.score.weights.get(best.candidate.column, Fraction(1))
        return Ranked(
            best.candidate, best.numerator * weight.numerator, best.denominator * weight.denominator
        )

    def pop(self) -> Candidate | None:
        best = self.best()
        return None if best is None else self.pools[best.candidate.column].pop()

    def ahead(self, most: int) -> list[Candidate]:
        best = self.best()
        return [] if best is None else [best.candidate]

    def drop(self, applied: Candidate) -> None:
        if applied.column in self.pools:
            self.pools[applied.column].drop(applied)
