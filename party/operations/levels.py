"""How much a daemon logs, changed while it runs: SIGUSR1 for more, SIGUSR2 for less; or on the owner's page.

Only our own loggers change. Libraries keep to warnings, whatever is asked for: what they say of their work in detail
may hold what no log of ours does.
"""

from __future__ import annotations

import logging

LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
OURS = ("party", "coordinator")


def more() -> str:
    """One level more; return its name."""
    return _move(1)


def less() -> str:
    """One level less; return its name."""
    return _move(-1)


def current() -> str:
    """The name of the level."""
    return logging.getLevelName(_now()).lower()


def _now() -> int:
    return logging.getLogger(OURS[0]).getEffectiveLevel()


def _move(by: int) -> str:
    now = _now()
    place = LEVELS.index(now) if now in LEVELS else LEVELS.index(logging.INFO)
    level = LEVELS[min(max(place + by, 0), len(LEVELS) - 1)]
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    return logging.getLevelName(level).lower()
