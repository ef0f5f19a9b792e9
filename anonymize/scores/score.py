"""Scores: the best candidate, and the place where an interval is split (semantics §3, §10.4).

A score is an object: what it follows of T_g, and its exact integer comparison where one holder, or a leader, has the
counts. Its comparison inside circuits is the same object's in :mod:`anonymize.joint.lkc.scores`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Generic, Protocol, TypeVar

from anonymize.candidates import Proposal
from anonymize.criteria.clear import met_by_group
from anonymize.criteria.criterion import RECORDS, Criterion
from anonymize.cut import Candidate, Order
from anonymize.partition import GeneralizedTable, Refinement
from anonymize.qid_groups import Scope
from anonymize.scores.names import WITH_CONTEXTS, By
from anonymize.table import Ints, Schema
from anonymize.tds import Step


@dataclass(frozen=True)
class Wanted:
    """Sums over the holders that a score wants of a candidate before the next one is chosen.

    They are linear in the records per (refined entry of T_g, child), as leaf partitions, groups and contexts are.

    name:     by which a leader is told them, in the reveal ledger.
    entries:  which of the entries that the candidate refines count, ascending: int64, shape (n_entries,).
    of:       one holder's sums, from its records in them, shape (n_entries, n_children): int64, shape (n,
              n_children - 1, ...); those of the last child follow.
    totals:   of all children together, which are public: int64, shape (n, ...).
    """

    candidate: Candidate
    name: str
    entries: Ints = field(repr=False)
    of: Callable[[Ints], Ints] = field(repr=False)
    totals: Ints = field(repr=False)


@dataclass(frozen=True)
class Terms:
    """Terms of a requirement that scores go by.

    scopes:   of its entries.
    of_size:  by column what children of its nodes must meet by their size alone, each by itself.
    """

    scopes: tuple[Scope, ...]
    of_size: tuple[tuple[Criterion, ...], ...]

    def about(self, column: int) -> tuple[int, ...]:
        """The entries that speak of a column, by number."""
        return tuple(i for i, scope in enumerate(self.scopes) if column in scope.columns)

    def allow(self, candidate: Candidate, sizes: Ints) -> bool:
        """Return True if children of these sizes, shape (n_children,), could be valid by themselves."""
        of_size = self.of_size[candidate.column]
        return all(met_by_group(criterion, {RECORDS: sizes}).all() for criterion in of_size)


@dataclass(frozen=True)
class Ranked:
    """A candidate with its score as a fraction of integers: the greatest is the best."""

    candidate: Candidate
    numerator: int
    denominator: int


class Followed(Protocol):
    """Figures of T_g that a score follows; public among the parties of a run."""

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> int:
        """Account for a specialization, and return its score; 0 where that is computed from what is published."""
        ...

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        """Return the sums of public candidates that are to be added up anew, before one is chosen.

        Nothing where the turn before discarded its candidate: a joint run then knows the next one already.
        """
        ...


class _Nothing:
    """Of a score that depends on a node alone."""

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> int:
        """A node's counts are fixed."""
        return 0

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        return ()


NOTHING: Followed = _Nothing()


class CandidatePool(Protocol):
    """The candidates that were neither applied nor discarded yet. Ties go to the earlier column, then node."""

    def add(self, proposal: Proposal) -> bool:
        """Enter a node's specialization; False if it is no candidate by this score."""
        ...

    def told(self, wanted: Wanted, sums: Ints) -> None:
        """Take note of what was wanted: the sums over all holders."""
        ...

    def best(self) -> Ranked | None:
        """The best candidate, which stays."""
        ...

    def pop(self) -> Candidate | None:
        """Take out the best candidate."""
        ...

    def ahead(self, most: int) -> list[Candidate]:
        """At most so many of the best, which stay, in the order in which they are popped if none is applied."""
        ...

    def drop(self, applied: Candidate) -> None:
        """Take out the candidates of a node that was specialized, and so is no longer in the cut."""
        ...


class SettledPool:
    """Commons of the pools of scores that want nothing."""

    def told(self, wanted: Wanted, sums: Ints) -> None:
        raise ValueError(f"{wanted.name}: this score wants no sums")


class Known(Protocol):
    """Knowledge about a candidate."""

    @property
    def candidate(self) -> Candidate: ...


K = TypeVar("K", bound=Known)
S = TypeVar("S")


class MovingPool(ABC, Generic[K]):
    """Commons of the pools of scores that move with T_g: candidates by their order."""

    def __init__(self) -> None:
        self._known: dict[Order, K] = {}

    @abstractmethod
    def best(self) -> Ranked | None:
        """The best candidate, which stays."""

    def pop(self) -> Candidate | None:
        best = self.best()
        return None if best is None else self._known.pop(best.candidate.order).candidate

    def ahead(self, most: int) -> list[Candidate]:
        """The best one: all scores may move before the next one is due."""
        best = self.best()
        return [] if best is None else [best.candidate]

    def drop(self, applied: Candidate) -> None:
        self._known = {k: known for k, known in self._known.items() if not known.candidate.is_beside(applied)}


class Score(Protocol):
    """Objective of a run."""

    @property
    def needs_class(self) -> bool:
        """Return True if there must be a column whose values are told apart."""
        ...

    @property
    def no_candidate(self) -> str:
        """In words what all values have in common that could have been specialized and never were."""
        ...

    def published(self, step: Step, class_counts: Ints) -> tuple[float, int]:
        """The score of an applied step in its unit, and the exact integer that candidates were compared by.

        class_counts: of the published values of its column, by first leaf (docs/report.md).
        """
        ...

    @property
    def wants_sums(self) -> bool:
        """Return True if the score wants sums of candidates before one is chosen.

        Candidates must then be public: joint runs tell all parties, when a node appears, whether it is one, and its
        split point. A single holder keeps its leaf partitions by all cells, not only by what validity tells apart.
        """
        ...

    @property
    def follows_partitions(self) -> bool:
        """Return True if scores follow the leaf partitions, so that these must be kept."""
        ...

    def merit(self, left: Ints, right: Ints) -> Ints:
        """Return the merit of grid points: a :data:`anonymize.score.Merit`."""
        ...

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> Followed:
        """Return what the score follows, from T_g on.

        Raises PrivacyError for a table of which it cannot be computed exactly.
        """
        ...

    def pool(self, followed: Followed) -> CandidatePool:
        """An empty pool; ``followed``: of this score."""
        ...


SCORES: Mapping[str, tuple[str, str]] = {
    "added": ("anonymize.scores.added", "Added"),
    "infogain": ("anonymize.scores.infogain", "InfoGain"),
    "tdr": ("anonymize.scores.tdr", "Tdr"),
    "groups": ("anonymize.scores.groups", "Groups"),
    "records": ("anonymize.scores.groups", "Records"),
}
"""By the name that a job says the module and the class of a score: it is imported for a job that asks for it."""


def score_of(name: str, contexts: By | None) -> Score:
    """Return the score of a name; ``contexts``: what they tell apart, None for a score without any."""
    module, kind = SCORES[name]
    score: Score = made(getattr(import_module(module), kind), name, contexts)
    return score


def made(kind: Callable[..., S], name: str, contexts: By | None) -> S:
    """Make the score of a name. kind: its class; contexts: what they tell apart, None for a score without any."""
    return kind(contexts=contexts) if contexts is not None and name in WITH_CONTEXTS else kind()
