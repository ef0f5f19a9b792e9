"""Voices of runs in Python: notes are kept as values, and progress is drawn where somebody looks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any

from coordinator.progress import ForPeople, Progress, Voice, progress_of


def listening(progress: bool | None) -> tuple[Voice, list[str]]:
    """Return the voice of a run, and the list of its notes.

    progress:  True or False: draw the progress or not. None: draw on a terminal and in a notebook.
    """
    notes: list[str] = []

    def note(text: str, **_: object) -> None:
        notes.append(text)

    return Voice(_chosen(progress), note), notes


def _chosen(progress: bool | None) -> Callable[[str, int], Progress]:
    if progress is False:
        return Silent
    if _is_notebook():
        return CellOutput().progress
    if sys.stderr is None:  # as in a program without a console
        return Silent
    if sys.stderr.isatty():
        return progress_of
    return Rewritten if progress else Silent


def _is_notebook() -> bool:
    """Return True in a kernel of Jupyter: IPython with a kernel, and so with displays that change in place."""
    found = sys.modules.get("IPython")
    return found is not None and hasattr(found.get_ipython(), "kernel")


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

    def rows(self, read: int, of: int | None, left_s: float | None) -> None: ...

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


class Rewritten(ForPeople):
    """Line that is written again and again: the form that a notebook and a dumb terminal can draw."""

    _width = 0

    def _show(self) -> None:
        self._write(self.text())

    def _write(self, text: str) -> None:
        print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        self._write("")
        print("\r", end="", file=sys.stderr, flush=True)


class CellOutput:
    """Bar and line in the output of a notebook cell. A run with several parts has a single bar."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self._handle: Any = None

    def progress(self, job: str, parties: int) -> Progress:
        """Return the progress of a part of the run."""
        return _InCell(job, parties, self)

    def show(self, text: str, bar: str = "") -> None:
        """Show the bar and the line, or change both. bar: HTML; empty after the end of a run."""
        from IPython.display import display

        shown = {"text/plain": text, "text/html": f"<div>{bar}{escape(text)}</div>"}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


class _InCell(ForPeople):
    def __init__(self, job: str, parties: int, output: CellOutput) -> None:
        super().__init__(job, parties)
        self._start, self._output = output.start, output

    def _show(self) -> None:
        # Without a value the bar of a browser moves to and fro.
        value = "" if self.share is None else f' value="{self.share:.2f}"'
        self._output.show(self.text(), f'<progress{value} aria-label="progress"></progress> ')

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._phase, self._last = "", "done" if kind is None else "stopped"
        self._output.show(self.text())
