"""Top-down specialization: the one loop, and the holder that answers it alone.

The loop is [T] Algorithm 3.1 in the form of DESIGN §3: candidates are kept in order, the best one is taken
and checked once, then applied or discarded for good (validity is anti-monotone). Who answers "which
candidate next?", "is it valid?" and "apply it" differs between single-holder, horizontal and vertical runs,
LKC and differential privacy: that is a :class:`Specializer`, whose methods are generators so that a joint
one can exchange messages in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from anonymize.cut import Candidate, Cut
from anonymize.privacy import Violation
from anonymize.table import Schema

R = TypeVar("R")
Turn: TypeAlias = Generator[Any, Any, R]
"""A step that may exchange messages on its way; what is yielded is the business of the driver."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the loop: a candidate that was applied, or discarded (``violation`` where it is known)."""

    candidate: Candidate
    applied: bool
    violation: Violation | None = None


Observer: TypeAlias = Callable[[Step], None]


def unobserved(step: Step) -> None:
    """Take no notice."""


class Specializer(Protocol):
    """Who answers the loop."""

    def choose(self) -> Turn[Candidate | None]:
        """Return the best remaining candidate, or None when there is none."""
        ...

    def verdict(self, candidate: Candidate) -> Turn[Step]:
        """Say whether the candidate is applied or discarded."""
        ...

    def apply(self, candidate: Candidate) -> Turn[None]:
        """Refine the table."""
        ...


def specialize_top_down(specializer: Specializer, observe: Observer = unobserved) -> Turn[tuple[Step, ...]]:
    """Specialize until no candidate is left; return every turn in order."""
    steps = []
    while (candidate := (yield from specializer.choose())) is not None:
        step = yield from specializer.verdict(candidate)
        if step.applied:
            yield from specializer.apply(candidate)
        observe(step)
        steps.append(step)
    return tuple(steps)


def at_once(value: R) -> Turn[R]:
    """A turn that needs no message: how a single holder answers."""
    return value
    yield


def run_alone(turn: Turn[R]) -> R:
    """Run a turn that exchanges no messages."""
    try:
        next(turn)
    except StopIteration as stop:
        result: R = stop.value
        return result
    raise RuntimeError("a single holder has nobody to wait for")


@dataclass(frozen=True)
class Outcome:
    """What a run decided: the final cut and every turn that led to it."""

    schema: Schema
    cut: Cut
    steps: tuple[Step, ...]

    @property
    def applied(self) -> tuple[Candidate, ...]:
        return tuple(step.candidate for step in self.steps if step.applied)
