"""Ends of runs, until the privacy ledger has the ends.

The owner reads in the ledger how each charged run ended: with a release, or with an error. A ledger that cannot be
written takes no end, so ends wait here. Only a bounded number waits: no run begins beyond, and no end is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from jobs.errors import BudgetError, PartyError
from party.net.waiting import in_thread

MOST_WAITING = 16
"""Most ends that wait for the ledger before a run begins."""


class Ends:
    """Ends of runs that the ledger does not have yet, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._noting = asyncio.Lock()

    def add(self, end: Callable[[], None]) -> None:
        """Take an end. The call notes the end in the ledger, or raises PartyError."""
        self._waiting.append(end)

    async def note(self) -> None:
        """Note the ends in the ledger, at the charges of the runs.

        Raises PartyError if the ledger does not take an end. This end and the later ends wait on.
        """
        async with self._noting:
            while self._waiting:
                await in_thread(self._waiting[0])
                self._waiting.popleft()

    async def note_or_tell(self, tell: Callable[[str], None]) -> None:
        """Note the ends; tell the error if the ledger does not take an end, which waits on."""
        try:
            await self.note()
        except PartyError as error:
            tell(f"how a run ended could not be noted in the ledger yet: {error.problem.error_id}")

    async def require_room(self) -> None:
        """Note the ends before a further run begins. Raises BudgetError if no further end may wait."""
        try:
            await self.note()
        except PartyError as error:
            if len(self._waiting) >= MOST_WAITING:
                raise BudgetError(
                    "budget-ledger",
                    "the privacy ledger cannot be written, and has no line yet of how earlier runs ended: no job "
                    "begins",
                    cause=error.problem.cause,
                ) from error
