"""Seconds of the phases of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_DIGITS = 4


class Stopwatch:
    """Seconds by phase. ``show`` is called as a phase begins, once if the phase goes on after a pause."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._shown: str | None = None
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure a phase for the length of the block. Phases of the same name add up."""
        if name != self._shown:
            self._show(name)
        self._shown = name
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - start, _DIGITS)
