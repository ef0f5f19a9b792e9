"""Progress of a job, on standard error: a bar on a terminal, else a line each, or JSON lines if asked for.

The voice of a run has the progress, and notes to the owner of a table.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from anonymize.tds import ROOT, Observer, Step
from jobs.data.rows_read import Meter, Rows
from jobs.errors import printable
from party.cli.console import note, tell, wants_json

_ROWS_S = 2.0
_MANY_ROWS = 1_000_000
"""Seconds between two lines about rows, or before a first estimate of the time left; and rows of a table with a line
at the begin of an engine's query."""
OWN_FIGURES = "own figures"
"""Name of the phase for the fate of each party's own records."""

_MEANING = {
    "connect": "reach the parties",
    "admit": "parties check policies and read tables",
    "read": "read the table",
    "run": "compute",
    "anonymize": "choose the level of detail of every value",
    "collect": "collect the result",
    "release": "make the table",
    "verify": "check every group of the table",
    "write": "write the files",
    "report": "write the report",
    "deliver": "parties check and keep the release",
    OWN_FIGURES: "tell each owner about its own records",
}
"""Phase in words for people, shown until something happens in the phase."""


class Progress(Protocol):
    """Shows how a job goes."""

    def phase(self, name: str) -> None: ...

    def turn(self, iteration: int, column: str, applied: bool) -> None: ...

    def front(self, number: int) -> None: ...

    def root(self) -> None: ...

    def sweep(self, number: int) -> None: ...

    def trial(self, number: int, most: int) -> None: ...

    def rows(self, read: int, of: int | None, left_s: float | None) -> None: ...

    def __enter__(self) -> Progress: ...

    def __exit__(self, *_: Any) -> None: ...


def progress_of(job: str, parties: int) -> Progress:
    """Choose the form by the request, and by the kind of standard error."""
    if wants_json():
        return _JsonLines(job, parties)
    return (_Live if sys.stderr.isatty() else _Lines)(job, parties)


class Pace:
    """Estimate of the time left of numbered runs, from the mean time of the runs so far.

    clock:  seconds, from any start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[int, float] | None = None

    def left_s(self, number: int, most: int) -> float | None:
        """Return the seconds of all runs from ``number`` on; None at the first runs, whose pace is not known yet."""
        now = self._clock()
        if self._first is None or number <= self._first[0]:
            self._first = number, now
        first, begin = self._first
        if now - begin < _ROWS_S:
            return None
        return (now - begin) / (number - first) * (most - number + 1)


class ForPeople:
    """Lines for people: the job, the parties, the state, the last turn, the time.

    share:  done part of the present pass or of all runs, from 0 to 1; None: unknown.
    """

    def __init__(self, job: str, parties: int, pace: Pace | None = None) -> None:
        self._job, self._parties = job, parties
        self._pace = pace or Pace()
        self._start = time.monotonic()
        self._phase, self._last = "", ""
        self.share: float | None = None

    def phase(self, name: str) -> None:
        self._phase = name
        self._now("")

    def turn(self, iteration: int, column: str, applied: bool) -> None:
        self._now(f"iteration {iteration}: {column} {'specialized' if applied else 'step refused'}")

    def front(self, number: int) -> None:
        self._now(f"groups are cut, round {number}")

    def root(self) -> None:
        self._now("the whole table is checked")

    def sweep(self, number: int) -> None:
        self._now(f"sweep {number}")

    def trial(self, number: int, most: int) -> None:
        words, left_s = f"run {number} of at most {most}", self._pace.left_s(number, most)
        if left_s is not None:
            words += f", at most about {max(round(left_s), 1):,} s left"
        self._now(words, (number - 1) / most)

    def rows(self, read: int, of: int | None, left_s: float | None) -> None:
        so_far = f"{read:,} of " if read and of is not None else ""
        words = f"{read:,} rows" if of is None else f"{so_far}about {of:,} rows"
        if left_s is not None:
            words += f", about {max(round(left_s), 1):,} s left"
        self._now(words, read / of if read and of else None)

    def _now(self, last: str, share: float | None = None) -> None:
        self._last, self.share = last, share
        self._show()

    def text(self) -> str:
        who = f"{self._parties} parties" if self._parties > 1 else "one holder"
        doing = self._last or _MEANING.get(self._phase, "")
        parts = [self._job, who, self._phase, doing, f"{time.monotonic() - self._start:.1f} s"]
        return " · ".join(part for part in parts if part)

    def _show(self) -> None:
        raise NotImplementedError


class _Live(ForPeople):
    """Bar with the line behind. The bar shows the share, or moves to and fro without a known share."""

    def __init__(self, job: str, parties: int) -> None:
        super().__init__(job, parties)
        bar = BarColumn(_BAR_CHARS, table_column=Column(no_wrap=True))
        self._bar = Bar(bar, _Share(), _Words(self), console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=None)

    def _show(self) -> None:
        if self.share is None:
            self._bar.reset(self._task, total=None)
        else:
            self._bar.update(self._task, total=1, completed=self.share)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.refresh()
        self._bar.stop()


_BAR_CHARS = 20
_PERCENT_CHARS = 5
"""Characters of "100 %"."""


class _Share(ProgressColumn):
    """Share in percent; empty if unknown."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True, min_width=_PERCENT_CHARS))

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.percentage:.0f} %")


class _Words(ProgressColumn):
    """Line for people, in the width that the bar leaves."""

    def __init__(self, line: ForPeople) -> None:
        super().__init__(Column(ratio=1))
        self._line = line

    def render(self, _: Task) -> Text:
        return Text(printable(self._line.text(), None), no_wrap=True, overflow="ellipsis")


class _Lines(ForPeople):
    def _show(self) -> None:
        tell(self.text())

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


class _JsonLines:
    def __init__(self, job: str, parties: int) -> None:
        self._job, self._parties = job, parties
        self._pace = Pace()
        self._start = time.monotonic()

    def phase(self, name: str) -> None:
        self._print({"event": "phase", "phase": name})

    def turn(self, iteration: int, column: str, applied: bool) -> None:
        self._print({"event": "turn", "iteration": iteration, "column": column, "applied": applied})

    def front(self, number: int) -> None:
        self._print({"event": "front", "front": number})

    def root(self) -> None:
        self._print({"event": "root"})

    def sweep(self, number: int) -> None:
        self._print({"event": "sweep", "sweep": number})

    def trial(self, number: int, most: int) -> None:
        left = _known(left_s=self._pace.left_s(number, most))
        self._print({"event": "trial", "trial": number, "most": most, **left})

    def rows(self, read: int, of: int | None, left_s: float | None) -> None:
        self._print({"event": "rows", "rows": read, **_known(of=of, left_s=left_s)})

    def _print(self, fields: dict[str, object]) -> None:
        elapsed = round(time.monotonic() - self._start, 3)
        line = {"job": self._job, "parties": self._parties, **fields, "elapsed_s": elapsed}
        tell(json.dumps(line))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


def _known(**numbers: float | None) -> dict[str, float]:
    """Return the numbers that are known, in tenths."""
    return {key: round(n, 1) for key, n in numbers.items() if n is not None}


class RowsShown(Meter):
    """Shows the rows of a single holder's table: a line every few seconds, with the time that is left of the pass.

    An engine tells only that a pass begins, since no engine tells how far a query is. A large table then has a line.

    clock:  seconds, from any start.
    """

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._clock = progress, clock
        self._begin = self._shown = clock()
        self._read = 0

    def rows(self, read: int, of: Rows) -> None:
        now = self._clock()
        if read <= self._read:  # another pass
            self._begin = self._shown = now
        self._read = read
        if read == 0 and (about := of()) is not None and about >= _MANY_ROWS:
            self._progress.rows(0, about, None)
        if now - self._shown < _ROWS_S:
            return
        self._shown = now
        about = of()
        about = None if about is None else max(about, read)
        left = None if about is None or not read else (now - self._begin) * (about - read) / read
        self._progress.rows(read, about, left)


class Turns(Observer):
    """Shows the turns of a run on the progress line."""

    def __init__(self, progress: Progress, columns: tuple[str, ...]) -> None:
        self._progress = progress
        self._columns = columns

    def phase(self, name: str) -> None:
        if name == ROOT:
            self._progress.root()

    def turn(self, iteration: int, step: Step) -> None:
        self._progress.turn(iteration, self._columns[step.candidate.column], step.applied)

    def front(self, number: int, n_open: int, n_cut: int) -> None:
        self._progress.front(number)

    def sweep(self, number: int) -> None:
        self._progress.sweep(number)

    def trial(self, number: int, most: int) -> None:
        self._progress.trial(number, most)


class Note(Protocol):
    """Function that takes a note for the owner: a text for people, fields for programs."""

    def __call__(self, text: str, **fields: object) -> None: ...


@dataclass(frozen=True)
class Voice:
    """Voice of a run.

    progress:  begins to show a job, by name and number of parties.
    note:      takes each note.
    """

    progress: Callable[[str, int], Progress]
    note: Note


CONSOLE = Voice(progress_of, note)
"""Voice of the commands: standard error."""
