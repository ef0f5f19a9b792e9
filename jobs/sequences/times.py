"""Cells of a time column: of numbers, or of local times, counted from the calendar or from a first reading.

A time is read as a whole number of *ticks*, millionths of its unit (numbers) or microseconds (local times), so that
differences are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.table import Ints
from jobs.data.arrow import pa, pc
from jobs.data.coders import numbers_of, widened
from jobs.file.columns import Clock
from jobs.file.fields import seconds_of

TICKS = 1_000_000
NO_TICKS = np.iinfo(np.int64).min
"""Ticks of a text that is no time."""
_FARTHEST = 4.0e12
"""Largest number with ticks."""
_DAY = seconds_of("1d")


class Times(Protocol):
    """Rule of a time column.

    relative:  True if cells count from the first reading of each record.
    labels:    the published lower edge of every cell.
    remedy:    for a time outside the domain; empty: the remedy of numbers.
    """

    @property
    def relative(self) -> bool: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def remedy(self) -> str: ...

    def ticks(self, texts: pa.Array) -> Ints:
        """Return the ticks of every text without blanks around: int64, NO_TICKS for a text that is no time."""
        ...

    def cells(self, ticks: Ints) -> Ints:
        """Return the cell of every time, counted in the column's way: int64, -1 outside the domain."""
        ...


@dataclass(frozen=True)
class GridTimes:
    """Cells of a grid."""

    grid: Grid
    relative: bool
    column: str
    remedy: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Raises SchemaError for an edge between two ticks."""
        for edge in self.grid.edges:
            if abs(edge) > _FARTHEST or edge * TICKS % 1:
                raise SchemaError(
                    "grid-invalid",
                    f"times of column {self.column} are read in millionths, and a cell begins at {edge}",
                    column=self.column,
                )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.grid.edge_label(i) for i in range(self.grid.n_cells))

    def ticks(self, texts: pa.Array) -> Ints:
        numbers = numbers_of(texts)
        bad = ~(np.abs(numbers) <= _FARTHEST)
        found: Ints = np.rint(np.where(bad, 0, numbers) * TICKS).astype(np.int64)
        found[bad] = NO_TICKS
        return found

    @cached_property
    def _edges(self) -> Ints:
        return np.array([int(edge * TICKS) for edge in self.grid.edges], dtype=np.int64)

    def cells(self, ticks: Ints) -> Ints:
        found = np.searchsorted(self._edges, ticks, side="right") - 1
        return np.where((ticks >= self._edges[0]) & (ticks < self._edges[-1]), found, -1)


@dataclass(frozen=True)
class LocalTimes:
    """Cells of a clock."""

    clock: Clock

    @property
    def relative(self) -> bool:
        return self.clock.start is None

    @property
    def remedy(self) -> str:
        return widened("`to`" if self.relative else "`from` and `to`")

    @property
    def _start(self) -> datetime:
        return datetime(1970, 1, 1) if self.clock.start is None else datetime.fromisoformat(self.clock.start)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of cells: moments; with `fold: 1d` times of day; else the time since the beginning, as 2d05:00."""
        clock, step = self.clock, seconds_of(self.clock.step)
        seconds = [i * step for i in range(clock.n_cells)]
        exact = "seconds" if step % 60 or self._start.second else "minutes"
        if clock.start is not None and clock.fold in (None, "1d"):
            moments = [self._start + timedelta(seconds=s) for s in seconds]
            if clock.fold is None:
                return tuple(moment.isoformat(timespec=exact) for moment in moments)
            return tuple(moment.time().isoformat(timespec=exact) for moment in moments)
        midnight = datetime(1970, 1, 1)
        times = [(midnight + timedelta(seconds=s % _DAY)).time().isoformat(timespec=exact) for s in seconds]
        return tuple(f"{s // _DAY}d{time}" for s, time in zip(seconds, times, strict=True))

    def ticks(self, texts: pa.Array) -> Ints:
        try:
            return _microseconds(texts)
        except pa.ArrowInvalid:  # some text is no time
            return np.array([_microsecond(text) for text in texts], dtype=np.int64)

    def cells(self, ticks: Ints) -> Ints:
        clock = self.clock
        first = 0 if self.relative else int(self._start.replace(tzinfo=UTC).timestamp()) * TICKS
        passed, step = ticks - first, seconds_of(clock.step) * TICKS
        inside = (passed >= 0) & (passed < clock.length * TICKS)
        if clock.fold is not None:
            passed = passed % (seconds_of(clock.fold) * TICKS)
        return np.where(inside, passed // step, -1)


def _microseconds(texts: pa.Array) -> Ints:
    found: Ints = pc.cast(pc.cast(texts, pa.timestamp("us")), pa.int64()).to_numpy(zero_copy_only=False)
    return found.astype(np.int64)


def _microsecond(text: pa.Scalar) -> int:
    try:
        return int(pc.cast(text, pa.timestamp("us")).value)
    except pa.ArrowInvalid:
        return int(NO_TICKS)


def inside(times: Times, ticks: Ints) -> NDArray[np.bool_]:
    """Return True for calendar times inside the domain, and for all valid relative times."""
    there = ticks != NO_TICKS
    found: NDArray[np.bool_] = there
    if not times.relative:
        found = there & (times.cells(np.where(there, ticks, 0)) >= 0)
    return found
