"""Scores: choice of the best candidate and of the split point of an interval (semantics §3, §10.4).

A score is an object with its figures of T_g and its exact integer comparison, for a single holder or a leader with
the counts. The same score's comparison inside circuits is in :mod:`anonymize.joint.lkc.scores`.
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
    """Sums over the holders that a score needs for a candidate before the next choice.

    The sums are linear in the records per (refined entry of T_g, child), as are leaf partitions, groups and contexts.

    name:     name of the sums, opened to a leader, in the reveal ledger.
    entries:  counted entries among the candidate's refined entries, ascending: int64, shape (n_entries,).
    of:       function from a holder's records, shape (n_entries, n_children), to the holder's sums: int64, shape (n,
              n_children - 1, ...). Sums of the last child follow.
    totals:   public sums of all children together: int64, shape (n, ...).
    """

    candidate: Candidate
    name: str
    entries: Ints = field(repr=False)
    of: Callable[[Ints], Ints] = field(repr=False)
    totals: Ints = field(repr=False)


@dataclass(frozen=True)
class Terms:
    """Terms of a requirement for scores.

    scopes:   scopes of the entries.
    of_size:  by column, the criteria on the size of a single child.
    """

    scopes: tuple[Scope, ...]
    of_size: tuple[tuple[Criterion, ...], ...]

    def about(self, column: int) -> tuple[int, ...]:
        """Return the numbers of the entries with a column."""
        return tuple(i for i, scope in enumerate(self.scopes) if column in scope.columns)

    def allow(self, candidate: Candidate, sizes: Ints) -> bool:
        """Return True if the sizes of the children, shape (n_children,), allow a valid specialization."""
        of_size = self.of_size[candidate.column]
        return all(met_by_group(criterion, {RECORDS: sizes}).all() for criterion in of_size)


@dataclass(frozen=True)
class Ranked:
    """Candidate with its score as a fraction of integers; the greatest fraction is the best."""

    candidate: Candidate
    numerator: int
    denominator: int


class Followed(Protocol):
    """Figures of T_g for a score; public among the parties of a run."""

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> int:
        """Account for a specialization and return its score; 0 if the score is computed from the publication."""
        ...

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        """Return the sums of public candidates to add up anew before the next choice.

        The result is empty if the last turn discarded its candidate: a joint run then already knows the next
        candidate.
        """
        ...


class _Nothing:
    """Figures of a score that depends on a node alone."""

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> int:
        """Return 0: a node's counts are fixed."""
        return 0

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        return ()


NOTHING: Followed = _Nothing()


class CandidatePool(Protocol):
    """Candidates neither applied nor discarded. Ties go to the earlier column, then node."""

    def add(self, proposal: Proposal) -> bool:
        """Enter a node's specialization; return False if the score rejects the candidate."""
        ...

    def told(self, wanted: Wanted, sums: Ints) -> None:
        """Store wanted sums over all holders."""
        ...

    def best(self) -> Ranked | None:
        """Return the best candidate without removing it."""
        ...

    def pop(self) -> Candidate | None:
        """Take out the best candidate."""
        ...

    def ahead(self, most: int) -> list[Candidate]:
        """Return at most ``most`` of the best candidates, which stay, in the order of :meth:`pop` if all are
        discarded.
        """
        ...

    def drop(self, applied: Candidate) -> None:
        """Remove the candidates of a specialized node, which is no longer in the cut."""
        ...


class SettledPool:
    """Base of the pools of scores without wanted sums."""

    def told(self, wanted: Wanted, sums: Ints) -> None:
        raise ValueError(f"{wanted.name}: this score wants no sums")


class Known(Protocol):
    """Knowledge about a candidate."""

    @property
    def candidate(self) -> Candidate: ...


K = TypeVar("K", bound=Known)
S = TypeVar("S")


class MovingPool(ABC, Generic[K]):
    """Base of the pools of scores that move with T_g: candidates by their order."""

    def __init__(self) -> None:
        self._known: dict[Order, K] = {}

    @abstractmethod
    def best(self) -> Ranked | None:
        """Return the best candidate without removing it."""

    def pop(self) -> Candidate | None:
        best = self.best()
        return None if best is None else self._known.pop(best.candidate.order).candidate

    def ahead(self, most: int) -> list[Candidate]:
        """Return only the best candidate: all scores may move before the next choice."""
        best = self.best()
        return [] if best is None else [best.candidate]

    def drop(self, applied: Candidate) -> None:
        self._known = {k: known for k, known in self._known.items() if not known.candidate.is_beside(applied)}


class Score(Protocol):
    """Objective of a run."""

    @property
    def needs_class(self) -> bool:
        """True if the score needs a class column."""
        ...

    @property
    def no_candidate(self) -> str:
        """Common property, in words, of all values that could have been specialized and never were."""
        ...

    def published(self, step: Step, class_counts: Ints) -> tuple[float, int]:
        """Return the score of an applied step in its unit, and the compared exact integer.

        class_counts: of the published values of the column, by first leaf (docs/report.md).
        """
        ...

    @property
    def wants_sums(self) -> bool:
        """True if the score needs sums of candidates before a choice.

        Candidates must then be public. For every new node, joint runs open to all parties whether the node is a
        candidate, and its split point. A single holder keeps leaf partitions by all cells, not only by the coarsest
        cells for validity.
        """
        ...

    @property
    def follows_partitions(self) -> bool:
        """True if the score needs the leaf partitions."""
        ...

    def merit(self, left: Ints, right: Ints) -> Ints:
        """Return the merit of grid points: a :data:`anonymize.score.Merit`."""
        ...

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> Followed:
        """Return the figures for the score, from T_g on.

        Raises PrivacyError for a table too large for exact figures.
        """
        ...

    def pool(self, followed: Followed) -> CandidatePool:
        """Return an empty pool. ``followed``: figures of this score."""
        ...


SCORES: Mapping[str, tuple[str, str]] = {
    "added": ("anonymize.scores.added", "Added"),
    "infogain": ("anonymize.scores.infogain", "InfoGain"),
    "tdr": ("anonymize.scores.tdr", "Tdr"),
    "groups": ("anonymize.scores.groups", "Groups"),
    "records": ("anonymize.scores.groups", "Records"),
}
"""Module and class of every score, by its name in a job. A module is imported only for a job with the score."""


def score_of(name: str, contexts: By | None) -> Score:
    """Return the score with a name; ``contexts``: kind of contexts, None for a score without contexts."""
    module, kind = SCORES[name]
    score: Score = made(getattr(import_module(module), kind), name, contexts)
    return score


def made(kind: Callable[..., S], name: str, contexts: By | None) -> S:
    """Make the score with a name. kind: its class; contexts: kind of contexts, None for a score without contexts."""
    return kind(contexts=contexts) if contexts is not None and name in WITH_CONTEXTS else kind()
