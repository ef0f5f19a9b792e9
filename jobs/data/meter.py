"""Meter of the rows that a source reads, for the owner's own console."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

Rows: TypeAlias = Callable[[], int | None]
"""Function that gives the number of rows of a table, about; None: unknown."""


class Meter(Protocol):
    """Receiver of the progress of each pass over a table."""

    def rows(self, read: int, of: Rows) -> None:
        """Note the number of rows that a pass has read so far. of: gives the rows of the table."""
        ...


class NoMeter:
    """Meter that shows nothing."""

    def rows(self, read: int, of: Rows) -> None:
        return


NO_METER = NoMeter()
