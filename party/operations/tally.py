"""How jobs ended at a daemon, counted in words that say nothing of its table.

Many errors are answers about the table (docs/errors.md, Errors that are answers): here they are all `other`. So is a
refusal that comes when the table has been looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from jobs.errors import Exit, Problem

OVER, OTHER = "over", "other"
_BY_ID = {"busy": "busy", "cancelled": "cancelled", "config-changed": "configuration"}
_BY_EXIT = {Exit.UNREACHABLE: "unreachable", Exit.IDENTITY: "identity", Exit.BUG: "bug"}
REFUSED = "refused"
OUTCOMES = (OVER, REFUSED, *_BY_ID.values(), *_BY_EXIT.values(), OTHER)
"""All words there are: `over` is a job that came to its end."""
BEFORE_THE_TABLE = frozenset({"propose", "submit", "admit"})
"""Phases of a job in which its table has not been looked at."""


class Tally:
    """Counts since the daemon started. running: a job has the place. waiting: how many wait for it."""

    def __init__(self) -> None:
        self.running = False
        self.waiting = 0
        self._ended: Counter[str] = Counter()

    def note(self, problem: Problem | None, phase: str) -> None:
        """A job ended, in this phase of ours, with a problem or with none."""
        self._ended[outcome_of(problem, phase)] += 1

    def counts(self) -> Mapping[str, int]:
        """How many jobs ended how, each outcome there is."""
        return {outcome: self._ended[outcome] for outcome in OUTCOMES}


def outcome_of(problem: Problem | None, phase: str) -> str:
    """One word for how a job ended."""
    if problem is None:
        return OVER
    if problem.exit_code is Exit.REFUSED:
        return REFUSED if phase in BEFORE_THE_TABLE else OTHER
    return _BY_ID.get(problem.error_id) or _BY_EXIT.get(problem.exit_code, OTHER)
