"""Progress of a job: one live line on a terminal, JSON lines otherwise. Both on standard error."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from party.console import wants_json


class Progress(Protocol):
    """Shows how a job goes."""

    def phase(self, name: str) -> None: ...

    def turn(self, iteration: int, column: str, applied: bool) -> None: ...

    def __enter__(self) -> Progress: ...

    def __exit__(self, *_: Any) -> None: ...


def progress_of(job: str, parties: int) -> Progress:
    """Choose the form by where standard error goes."""
    if sys.stderr.isatty() and not wants_json():
        return _Live(job, parties)
    return _Lines(job, parties)


class _Live:
    def __init__(self, job: str, parties: int) -> None:
        self._job, self._parties = job, parties
        self._start = time.monotonic()
        self._phase, self._last = "", ""
        self._status = Status("", console=Console(stderr=True))

    def phase(self, name: str) -> None:
        self._phase = name
        self._show()

    def turn(self, iteration: int, column: str, applied: bool) -> None:
        self._last = f"iteration {iteration}: {column} {'specialized' if applied else 'kept as it is'}"
        self._show()

    def _show(self) -> None:
        who = f"{self._parties} parties" if self._parties > 1 else "one holder"
        parts = [self._job, who, self._phase, self._last, f"{time.monotonic() - self._start:.1f} s"]
        self._status.update(escape(" · ".join(part for part in parts if part)))

    def __enter__(self) -> Progress:
        self._status.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._status.stop()


class _Lines:
    def __init__(self, job: str, parties: int) -> None:
        self._job, self._parties = job, parties
        self._start = time.monotonic()

    def phase(self, name: str) -> None:
        self._print({"event": "phase", "phase": name})

    def turn(self, iteration: int, column: str, applied: bool) -> None:
        self._print({"event": "turn", "iteration": iteration, "column": column, "applied": applied})

    def _print(self, fields: dict[str, object]) -> None:
        elapsed = round(time.monotonic() - self._start, 3)
        line = {"job": self._job, "parties": self._parties, **fields, "elapsed_s": elapsed}
        print(json.dumps(line), file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        return None
