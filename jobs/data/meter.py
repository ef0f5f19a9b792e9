"""Meter of the rows that a source reads, for the owner's own console."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Rows: TypeAlias = Callable[[], int | None]
"""Function that gives the number of rows of a table, about; None: unknown."""


class Meter:
    """Receiver of the progress of each pass over a table. This meter ignores everything."""

    def rows(self, read: int, of: Rows) -> None:
        """Note the number of rows that a pass has read so far. of: gives the rows of the table."""


NO_METER = Meter()
