"""Waits for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.support.network import GUARD_S

_PAUSE_S = 0.02


def until(met: Callable[[], object], otherwise: str = "") -> None:
    """Return once a condition holds. Fails if the condition never holds. otherwise: words for the failure."""
    deadline = time.monotonic() + GUARD_S
    while not met():
        assert time.monotonic() < deadline, otherwise
        time.sleep(_PAUSE_S)
