"""Top-down specialization: the one loop, and the holder that answers it alone.

The loop is [T] Algorithm 3.1 in the form of semantics §3.6: candidates are kept in order, the best one is taken
and checked once, then applied or discarded for good (validity is anti-monotone). When none is left, nodes of which
all records lie in one child are replaced by it (§10.10), which may bring new candidates. Who answers "which
candidate next?", "is it valid?" and "apply it" differs between single-holder, horizontal and vertical runs,
LKC and differential privacy: that is a :class:`Specializer`, whose methods are generators so that a joint
one can exchange messages in the middle.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

from anonymize.criteria.criterion import Violation
from anonymize.cut import Candidate, Cut
from anonymize.grouping import Grouping
from anonymize.table import Ints, Schema

R = TypeVar("R")
Turn: TypeAlias = Generator[Any, Any, R]
"""A step that may exchange messages on its way; what is yielded is the business of the driver."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the loop: a candidate that was applied, or discarded.

    score:      of one that was applied, the integer that candidates were compared by, where it follows from the
                public counts of that turn; InfoGain: 0, it is computed later from what is published.
    naming:     whether it was applied not for its score but because all records of its node lie in one child
                (semantics §10.10); its score is 0.
    violation:  why it was discarded, where that is known (a single holder).
    """

    candidate: Candidate
    applied: bool
    score: int = 0
    violation: Violation | None = None
    naming: bool = False


ROOT = "root"
"""The phase in which it is tested whether the whole table meets the requirement."""


class Observer:
    """Is told how a run goes; algorithms do not depend on what an observer does. This observer ignores everything."""

    def phase(self, name: str) -> None:
        """Begin a phase of the account of costs."""

    def gates(self, count: int) -> None:
        """So many AND gates are about to be garbled or evaluated."""

    def turn(self, iteration: int, step: Step) -> None:
        """A turn of the loop is done; iterations count from 1."""

    def trial(self, number: int, most: int) -> None:
        """Rows are withheld: of at most ``most`` runs to find which, this one is done; they count from 1."""

    def front(self, number: int, n_open: int, n_cut: int) -> None:
        """kd: of so many open groups so many were cut side by side; fronts count from 1."""

    def sweep(self, number: int) -> None:
        """Sequences: a pass over all that may still occur begins; they count from 1."""

    def announced(self, own: int, others: Mapping[str, int]) -> None:
        """Vertical: we enter so many ids, and each of the others so many. If it raises, nothing made from ours is
        sent, and the run ends.
        """

    def aligned(self, n_common: int) -> None:
        """Vertical: so many of our records all parties have."""

    def opening(self) -> None:
        """Differential privacy: from here on values made from data may be opened. The charge must be
        durable when this method returns; if it raises, nothing is opened. May be called more than once.
        """

    def grouping(self, groups: Grouping) -> None:
        """Horizontal LKC: groups are about to be opened that readers tell apart in this way. It is told just before
        :meth:`opening_groups`. If it raises, our part of the groups' counts is not opened, and the run ends.
        """

    def opening_groups(self, own: Ints) -> None:
        """Horizontal LKC: groups are about to be opened that have so many of our own records; 0: none of ours.

        own:  int64, shape (n_groups,); where the requirement counts people, so many of ours. If it raises, our part
              of the groups' counts is not opened, and the run ends.
        """


class Specializer(Protocol):
    """Answers the loop."""

    def choose(self) -> Turn[Candidate | None]:
        """Return the best remaining candidate, or None when there is none."""
        ...

    def verdict(self, candidate: Candidate) -> Turn[Step]:
        """Say whether the candidate is applied or discarded."""
        ...

    def apply(self, candidate: Candidate) -> Turn[int]:
        """Refine the table; return the score, 0 where it is computed from what is published."""
        ...

    def name(self) -> Turn[Sequence[Candidate]]:
        """No candidate is left: replace nodes of which all records lie in one child, and return how.

        That may bring new candidates. Where nothing was replaced, the run ends.
        """
        ...


def specialize_top_down(specializer: Specializer, observer: Observer) -> Turn[tuple[Step, ...]]:
    """Specialize until no candidate is left and nothing can be named; return every turn in order."""
    steps: list[Step] = []
    while made := (yield from _turns(specializer)):
        for step in made:
            steps.append(step)
            observer.turn(len(steps), step)
    return tuple(steps)


def _turns(specializer: Specializer) -> Turn[Sequence[Step]]:
    """The next turn; several where no candidate was left, none at the end."""
    candidate = yield from specializer.choose()
    if candidate is None:
        return [Step(named, True, naming=True) for named in (yield from specializer.name())]
    step = yield from specializer.verdict(candidate)
    if step.applied:
        step = replace(step, score=(yield from specializer.apply(candidate)))
    return [step]


def at_once(value: R) -> Turn[R]:
    """A turn that needs no message: how a single holder answers."""
    return value
    yield


def run_single(turn: Turn[R]) -> R:
    """Run a turn that exchanges no messages."""
    try:
        next(turn)
    except StopIteration as stop:
        result: R = stop.value
        return result
    raise RuntimeError("a single holder has nobody to wait for")


@dataclass(frozen=True)
class Outcome:
    """Decisions of a run: the final cut and every turn that led to it."""

    schema: Schema
    cut: Cut
    steps: tuple[Step, ...]

    @property
    def applied(self) -> tuple[Candidate, ...]:
        return tuple(step.candidate for step in self.steps if step.applied)
