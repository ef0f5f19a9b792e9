"""Top-down specialization: the loop, and the turns of a single holder.

The loop is [T] Algorithm 3.1 in the form of semantics §3.6. Candidates are kept in order; the best one is checked
once, then applied or discarded for good (validity is anti-monotone). When no candidate is left, a node with all
records in a single child is replaced by the child (§10.10), which may bring new candidates. Single-holder, horizontal
and vertical runs, LKC and differential privacy answer "which candidate next?", "is it valid?" and "apply it"
differently, each by a :class:`Specializer`. Its methods are generators, so that a joint one can exchange messages in
the middle.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from anonymize.criteria.criterion import Violation
from anonymize.cut import Candidate, Cut
from anonymize.table import Ints, Schema

if TYPE_CHECKING:
    from anonymize.grouping import Grouping

R = TypeVar("R")
Turn: TypeAlias = Generator[Any, Any, R]
"""Step that may exchange messages on its way; only the driver uses the yielded values."""


@dataclass(frozen=True, slots=True)
class Step:
    """Turn of the loop: a candidate that was applied or discarded.

    score:      for an applied candidate, the compared integer, if it follows from the public counts of the turn.
                InfoGain: 0; the score is computed later from published counts.
    naming:     True if the candidate was applied because all records of its node lie in a single child (semantics
                §10.10); score 0.
    violation:  reason for the discard, if known (a single holder).
    """

    candidate: Candidate
    applied: bool
    score: int = 0
    violation: Violation | None = None
    naming: bool = False


ROOT = "root"
"""Phase of the test that the whole table meets the requirement."""


class Observer:
    """Receiver of a run's progress, without influence on algorithms. This observer ignores everything."""

    def phase(self, name: str) -> None:
        """Begin a phase of the account of costs."""

    def gates(self, count: int) -> None:
        """Note that ``count`` AND gates will be garbled or evaluated."""

    def turn(self, iteration: int, step: Step) -> None:
        """Note a finished turn of the loop; iterations count from 1."""

    def trial(self, number: int, most: int) -> None:
        """Note a finished run of at most ``most`` runs that choose the rows to suppress; runs count from 1."""

    def front(self, number: int, n_open: int, n_cut: int) -> None:
        """Note for kd that ``n_cut`` of ``n_open`` groups were cut side by side; fronts count from 1."""

    def sweep(self, number: int) -> None:
        """Note for sequences the start of a pass over all possible sequences; passes count from 1."""

    def revealed(self, name: str, shape: tuple[int, ...], to: str) -> None:
        """Note a reveal of a joint run: its name, its shape, and its audience. If the method raises, the run ends."""

    def announced(self, own: int, others: Mapping[str, int]) -> None:
        """Note for vertical runs that the party enters ``own`` ids and each peer the given number. If the method
        raises, nothing made from own ids is sent, and the run ends.
        """

    def aligned(self, n_common: int) -> None:
        """Note for vertical runs the number of own records that all parties have."""

    def opening(self) -> None:
        """Note for differential privacy that values made from data may be opened from here on. The charge must be
        durable when the method returns. If the method raises, nothing is opened. The method may be called more than
        once.
        """

    def grouping(self, groups: Grouping) -> None:
        """Note for horizontal LKC the groups to be opened, as readers distinguish them. The call comes just before
        :meth:`opening_groups`. If the method raises, the own part of the groups' counts is not opened, and the run
        ends.
        """

    def opening_groups(self, own: Ints) -> None:
        """Note for horizontal LKC the own records in each group to be opened; 0: no own record.

        own:  int64, shape (n_groups,); number of own people if the requirement counts people. If the method raises,
              the own part of the groups' counts is not opened, and the run ends.
        """


class Specializer(Protocol):
    """Answers the loop."""

    def choose(self) -> Turn[Candidate | None]:
        """Return the best remaining candidate, or None."""
        ...

    def verdict(self, candidate: Candidate) -> Turn[Step]:
        """Say whether the candidate is applied or discarded."""
        ...

    def apply(self, candidate: Candidate) -> Turn[int]:
        """Refine the table. Return the score; 0 if it is computed from the publication."""
        ...

    def name(self) -> Turn[Sequence[Candidate]]:
        """Replace nodes with all records in a single child, when no candidate is left. Return the candidates applied.

        New candidates may follow. If nothing was replaced, the run ends.
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
    """Run the next turn. Return several steps if no candidate was left, an empty list at the end."""
    candidate = yield from specializer.choose()
    if candidate is None:
        return [Step(named, True, naming=True) for named in (yield from specializer.name())]
    step = yield from specializer.verdict(candidate)
    if step.applied:
        step = replace(step, score=(yield from specializer.apply(candidate)))
    return [step]


def at_once(value: R) -> Turn[R]:
    """Return a value as a turn without messages, the answer of a single holder."""
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
    """Decisions of a run: the final cut and all turns."""

    schema: Schema
    cut: Cut
    steps: tuple[Step, ...]

    @property
    def applied(self) -> tuple[Candidate, ...]:
        return tuple(step.candidate for step in self.steps if step.applied)
