"""Whoever asks for a joint table can wait for its turn, and try again: for how long, and after what."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from secrets import SystemRandom
from time import sleep
from typing import TypeVar

from coordinator.conduct import Conductor
from jobs.errors import ConfigError, Exit, JobFailed, Problem, problem_of
from party.cli.console import note

T = TypeVar("T")

_UNITS = {"s": 1, "m": 60, "h": 3600}
_MOST_S = 7 * 24 * 3600
_BACK_IN_LINE = {"busy", "turn-lost"}
_REST_S = (1.0, 5.0)
_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 60.0
"""Before the first repetition, and before any; each pause is twice the one before."""


def seconds_of(text: str) -> float:
    """The seconds of a duration such as 90s, 30m or 2h, at most a week. Raises ConfigError."""
    found = re.fullmatch(r"([0-9]{1,6})([smh])", text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < seconds <= _MOST_S:
        raise ConfigError("usage", f"--wait {text}: write a duration up to a week, such as 90s, 30m or 2h")
    return float(seconds)


async def connected(make: Callable[[], Conductor], wait_s: float) -> Conductor:
    """A conductor that is connected to all its parties; with ``wait_s``, waiting so long for its turn at each.

    Where a queue is full, or a turn that we had was given to the next while we waited elsewhere, we give up all
    turns, rest for a random moment and begin again. Raises JobFailed.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    while True:
        conductor = make()
        try:
            await conductor.connect(until - loop.time() if wait_s else 0)
            return conductor
        except JobFailed as error:
            rest_s = SystemRandom().uniform(*_REST_S)
            if error.problem.error_id not in _BACK_IN_LINE or loop.time() + rest_s >= until:
                raise
        await asyncio.sleep(rest_s)


def repeated(work: Callable[[], T], retries: int) -> T:
    """Do some work; repeat it up to so often when it fails with exit code 3. Raises what it failed with last."""
    pause_s = _PAUSE_S
    for left in range(retries, -1, -1):
        try:
            return work()
        except Exception as error:
            problem = problem_of(error)
            if not left or problem.exit_code is not Exit.UNREACHABLE:
                raise
            _tell(problem, left, pause_s)
        sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    raise AssertionError("the last turn returns or raises")


def _tell(problem: Problem, left: int, pause_s: float) -> None:
    times = f"{left} times more" if left > 1 else "once more"
    note(
        f"{problem.text(to_owner=problem.party is None)}. Tried again in {pause_s:g} s, {times} at most",
        retries_left=left,
        pause_s=pause_s,
        failed=problem.shared(),
    )
