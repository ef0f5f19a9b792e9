"""The audit's lines about who was turned away: so many a minute for each caller, and how many were left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobs.errors import PartyError, Problem, printable
from party.net.waiting import in_thread
from party.owner.audit import Audit

log = logging.getLogger("party")

MOST = 10
"""Lines a caller gets in WINDOW_S. All callers whom we do not know share what one gets."""
WINDOW_S = 60.0
STRANGER = ""


@dataclass
class _Window:
    """A caller's lines since a moment, and how many there would have been since the last line."""

    since: float
    n_lines: int = 0
    left_out: int = 0


class Refusals:
    """Who was turned away here. For one event loop."""

    def __init__(self, audit: Audit, clock: Callable[[], float] = time.monotonic) -> None:
        self._audit = audit
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    async def note(self, caller: str, problem: Problem, **fields: Any) -> None:
        """Somebody was turned away, for this problem; caller: a peer's name, or STRANGER.

        Nobody was let in, so it does no harm if that cannot be written: the log says so.
        """
        left_out = self._due(caller)
        if left_out is not None:
            said = {"caller": caller, "error": problem.error_id, "phase": problem.phase, **fields}
            known = {key: printable(value) for key, value in said.items() if value}
            await self._write(**known, **({"left_out": left_out} if left_out else {}))

    async def settle(self) -> None:
        """Write how many were left out, of callers who were turned away too often."""
        for caller, window in self._windows.items():
            if left_out := window.left_out:
                window.left_out = 0
                await self._write(caller=caller, left_out=left_out)

    async def strangers(self, connections: int) -> None:
        """So many connections came over which no peer spoke (:mod:`party.net.handshakes`); nothing for none."""
        if connections:
            await self._write(error="tls-failed", connections=connections)

    def _due(self, caller: str) -> int | None:
        """How many were left out before this one; None if it is left out itself."""
        now = self._clock()
        window = self._windows.setdefault(caller, _Window(now))
        if now - window.since >= WINDOW_S:
            window.since, window.n_lines = now, 0
        if window.n_lines >= MOST:
            window.left_out += 1
            return None
        window.n_lines += 1
        left_out, window.left_out = window.left_out, 0
        return left_out

    async def _write(self, **fields: Any) -> None:
        try:
            await in_thread(lambda: self._audit.write("refusal", **fields))
        except PartyError as error:
            log.error("who was turned away is not in the audit: %s", error.problem.cause)
