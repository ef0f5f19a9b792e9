"""Counts of a daemon for its monitor. No count depends on a table, or on the result of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.errors import CATALOGUE, Exit, Problem
from party.owner.config import PartyConfig

_CODES = (Exit.UNREACHABLE, Exit.REFUSED, Exit.BUDGET, Exit.IDENTITY, Exit.BUG)
TOLD = frozenset(
    [error_id for error_id, kind in CATALOGUE.items() if kind.exit_code in _CODES]
    + ["busy", "config-changed", "peer-protocol"]
)
"""Errors that are counted: about the network, the job, the policy and the configuration, never about rows."""


@dataclass
class Counts:
    """Counts since the start of a daemon.

    begun:      jobs that got the place.
    ended:      jobs that left the place, with or without a release.
    problems:   refusals and failures by error id, of :data:`TOLD`.
    strangers:  connections without a call.
    """

    begun: int = 0
    ended: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    strangers: int = 0

    def note(self, problem: Problem) -> None:
        """Count a problem, if problems of its kind are counted."""
        if problem.error_id in TOLD:
            self.problems[problem.error_id] += 1


@dataclass(frozen=True)
class Watched:
    """Daemon as its monitor sees the daemon.

    running:   True while a job has the place.
    queued:    number of jobs that wait for the place.
    stopping:  True once no further job gets the place.
    config:    the configuration in force.
    refresh:   takes over the configuration as the next job would. Raises PartyError.
    """

    counts: Counts
    running: Callable[[], bool]
    queued: Callable[[], int]
    stopping: Callable[[], bool]
    config: Callable[[], PartyConfig]
    refresh: Callable[[], object]
