"""Refusals that come again and again: told once a minute, with their number."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from jobs.errors import Problem

log = logging.getLogger("party")

WINDOW_S = 60.0
MOST = 40
"""Refusals of different words that are told to one caller within the window; more count as one."""

_Refusal = tuple[str, str]


class Repeated:
    """Counts the refusals that the log need not tell again: those of the same words to the same caller."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._since: Counter[_Refusal] = Counter()
        self._ends: dict[_Refusal, asyncio.TimerHandle] = {}

    def is_told(self, caller: str, problem: Problem) -> bool:
        """Count a refusal; return whether the same one was told to this caller within the window."""
        what = (caller, f"{problem.error_id}: {problem.message}")
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
        """End a window: tell how many refusals it had, and begin another if there were any."""
        del self._ends[what]
        if self._tell(what):
            self._begin(what)

    def _tell(self, what: _Refusal) -> bool:
        times, (caller, words) = self._since.pop(what, 0), what
        if times:
            log.error("%d times more told to %s: %s", times, caller, words)
        return times > 0

    def close(self) -> None:
        """Tell what was counted and not told yet."""
        while self._ends:
            what, end = self._ends.popitem()
            end.cancel()
            self._tell(what)
