"""Repeated refusals: logged once a minute, with their number."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from jobs.data.counted import counted
from jobs.errors import Problem

log = logging.getLogger("party")

WINDOW_S = 60.0
MOST = 40
"""Largest number of different refusals counted for a caller within the window; further refusals count together."""

_Refusal = tuple[str, str]


class Repeated:
    """Counter of refusals that the log need not repeat: the same words to the same caller."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._since: Counter[_Refusal] = Counter()
        self._ends: dict[_Refusal, asyncio.TimerHandle] = {}

    def is_told(self, caller: str, problem: Problem, about: str = "") -> bool:
        """Count a refusal; return True if the caller heard the same refusal within the window.

        about:  hash of the refused job, if one was read.
        """
        what = (caller, f"{problem.error_id}: {problem.message}" + (f" (job {about})" if about else ""))
        if what not in self._ends and sum(each == caller for each, _ in self._ends) >= MOST:
            what = (caller, "refusals of other words")
        if what in self._ends:
            self._since[what] += 1
            return True
        self._begin(what)
        return False

    def _begin(self, what: _Refusal) -> None:
        self._ends[what] = asyncio.get_running_loop().call_later(self._window_s, self._end, what)

    def _end(self, what: _Refusal) -> None:
        """End a window: log the number of its refusals, and begin another window if there were any."""
        del self._ends[what]
        if self._tell(what):
            self._begin(what)

    def _tell(self, what: _Refusal) -> bool:
        times, (caller, words) = self._since.pop(what, 0), what
        if times:
            log.error("%s more told to %s: %s", counted(times, "time", "times"), caller, words)
        return times > 0

    def close(self) -> None:
        """Log all counts not yet logged."""
        while self._ends:
            what, end = self._ends.popitem()
            end.cancel()
            self._tell(what)
