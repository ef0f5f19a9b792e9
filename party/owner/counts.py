"""Counts of a daemon for its monitor. No count depends on a table, or on the result of a job."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from jobs.errors import CATALOGUE, Exit, Problem
from party.owner.in_force import InForce

_CODES = (Exit.UNREACHABLE, Exit.REFUSED, Exit.BUDGET, Exit.IDENTITY)
TOLD = frozenset(
    [error_id for error_id, kind in CATALOGUE.items() if kind.exit_code in _CODES]
    + ["busy", "config-changed", "peer-protocol"]
)
"""Errors that are counted: about the network, the job, the policy and the configuration, never about rows.

A `bug` is not counted: rows may have caused it.
"""
_AT_THE_DOOR = "policy-refused"
"""Error that is about rows once a job is admitted: bounds such as `own_k` and `min_common` depend on the tables."""


@dataclass
class Counts:
    """Counts since the start of a daemon.

    problems:   refusals and failures by error id, of :data:`TOLD`.
    strangers:  connections without a call.
    """

    problems: Counter[str] = field(default_factory=Counter)
    strangers: int = 0

    def note(self, problem: Problem, *, at_the_door: bool) -> None:
        """Count a problem, if problems of its kind are counted. at_the_door: True for a job that is not admitted."""
        if problem.error_id in TOLD and (at_the_door or problem.error_id != _AT_THE_DOOR):
            self.problems[problem.error_id] += 1


class Jobs(Protocol):
    """Only place for a job, as the monitor sees the place."""

    @property
    def taken(self) -> bool:
        """True while a job has the place."""
        ...

    @property
    def closed(self) -> bool:
        """True once no further job gets the place."""
        ...

    @property
    def n_waiting(self) -> int:
        """Number of jobs that wait for the place."""
        ...

    @property
    def n_begun(self) -> int:
        """Number of jobs that got the place."""
        ...

    @property
    def n_ended(self) -> int:
        """Number of jobs that left the place, with or without a release."""
        ...


@dataclass(frozen=True)
class Watched:
    """Daemon as its monitor sees the daemon."""

    counts: Counts
    jobs: Jobs
    in_force: InForce
