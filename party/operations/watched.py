"""What a running daemon tells whoever runs it: alive, ready, figures."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from party.net.handshakes import Handshakes
from party.operations.figures import KIND, Seen, text_of
from party.operations.pages import Answer, Page, Pages
from party.operations.tally import Tally
from party.owner.config import Operations
from party.owner.identity import is_loopback
from party.owner.in_force import InForce
from party.owner.readiness import Readiness

log = logging.getLogger("party")


class Watched:
    """The pages of one daemon."""

    def __init__(self, in_force: InForce, readiness: Readiness, tally: Tally, handshakes: Handshakes) -> None:
        self._in_force = in_force
        self._readiness = readiness
        self._tally = tally
        self._handshakes = handshakes
        self._started_s = time.time()

    def pages(self) -> dict[str, Page]:
        """By path."""
        return {"/livez": self.alive, "/readyz": self.ready, "/metrics": self.figures}

    async def alive(self) -> Answer:
        """That the loop answers is all: whoever restarts a daemon that lives ends its job."""
        return Answer(b"alive\n")

    async def ready(self) -> Answer:
        """Whether a job would be taken, and if not, why in one word each."""
        why = await asyncio.to_thread(self._readiness.why_not)
        body = json.dumps({"ready": not why, "why_not": why}).encode() + b"\n"
        return Answer(body, HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK, "application/json")

    async def figures(self) -> Answer:
        """For Prometheus."""
        return Answer(await asyncio.to_thread(self._figures), kind=KIND)

    def _figures(self) -> bytes:
        tally, settings = self._tally, self._in_force.settings
        seen = Seen(
            started_s=self._started_s,
            why_not=self._readiness.why_not(),
            job_running=tally.running,
            jobs_waiting=tally.waiting,
            outcomes=tally.counts(),
            without_peer=self._handshakes.n_without_peer,
            settings=settings,
        )
        return text_of(seen)


@asynccontextmanager
async def watched(operations: Operations | None, daemon: Watched) -> AsyncIterator[str | None]:
    """Serve the pages while the block runs; gives their address. Raises ConfigError if that cannot be had."""
    if operations is None:
        yield None
        return
    pages = Pages(operations.listen, daemon.pages())
    address = await pages.start()
    if not is_loopback(operations.listen):
        log.warning(
            "operations are answered on %s: whoever reaches it reads them, without a password", address
        )
    try:
        yield address
    finally:
        await pages.stop()
