"""Voices of runs in Python: notes are kept as values, and progress is drawn where somebody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from coordinator.progress import ForPeople, Progress, progress_of
from coordinator.voice import Voice


def listening(progress: bool | None) -> tuple[Voice, list[str]]:
    """Return the voice of a run, and the list of its notes.

    progress:  True or False: draw the progress or not. None: draw on a terminal and in a notebook.
    """
    notes: list[str] = []

    def note(text: str, **_: object) -> None:
        notes.append(text)

    return Voice(_chosen(progress), note), notes


def _chosen(progress: bool | None) -> Callable[[str, int], Progress]:
    is_terminal, is_notebook = sys.stderr.isatty(), "ipykernel" in sys.modules
    if progress is False or (progress is None and not is_terminal and not is_notebook):
        return Silent
    return progress_of if is_terminal else Rewritten


class Silent:
    """Progress that nobody sees."""

    def __init__(self, job: str = "", parties: int = 1) -> None:
        pass

    def phase(self, name: str) -> None: ...

    def turn(self, iteration: int, column: str, applied: bool) -> None: ...

    def front(self, number: int) -> None: ...

    def root(self) -> None: ...

    def sweep(self, number: int) -> None: ...

    def trial(self, number: int, most: int) -> None: ...

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


class Rewritten(ForPeople):
    """Line that is written again and again: the form that a notebook and a dumb terminal can draw."""

    _width = 0

    def _show(self) -> None:
        self._write(self._text())

    def _write(self, text: str) -> None:
        print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        self._write("")
        print("\r", end="", file=sys.stderr, flush=True)
