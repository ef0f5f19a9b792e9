"""Drives a protocol generator over links: the network side of :mod:`crypto.rounds`.

The generator computes in a worker thread, so that the event loop stays responsive; sending and receiving
happen here. Costs are counted per phase; no payload is kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from crypto.rounds import Inbox, Round, Rounds
from jobs.errors import TransportError, problem_of
from party.net.link import Link

log = logging.getLogger("party")

R = TypeVar("R")


@dataclass(slots=True)
class PhaseCost:
    """Cost of a phase for a party."""

    seconds: float = 0.0
    bytes_sent: int = 0
    bytes_received: int = 0
    rounds: int = 0
    gates: int = 0


class Meter:
    """Counts costs by phase. A round counts where the party had to wait for a message."""

    def __init__(self) -> None:
        self.phases: dict[str, PhaseCost] = {}
        self._since = time.perf_counter()
        self._current = self._open("start")

    def _open(self, name: str) -> PhaseCost:
        return self.phases.setdefault(name, PhaseCost())

    def phase(self, name: str) -> None:
        """Begin a phase. Everything that follows belongs to the phase."""
        now = time.perf_counter()
        self._current.seconds += now - self._since
        self._since, self._current = now, self._open(name)

    def sent(self, n_bytes: int) -> None:
        """Count a sent payload."""
        self._current.bytes_sent += n_bytes

    def received(self, n_bytes: int) -> None:
        """Count received payloads."""
        self._current.bytes_received += n_bytes

    def waited(self) -> None:
        """Count a round that needed a message."""
        self._current.rounds += 1

    def gates(self, count: int) -> None:
        """Count garbled or evaluated gates."""
        self._current.gates += count

    def close(self) -> None:
        """Stop counting; ``phases`` is complete."""
        self.phase("end")
        self.phases = {name: cost for name, cost in self.phases.items() if name != "end"}


@dataclass(frozen=True, slots=True)
class _Returned:
    """Output of a generator."""

    value: Any


def _advance(generator: Rounds[Any], inbox: Inbox | None) -> Round | _Returned:
    try:
        return next(generator) if inbox is None else generator.send(inbox)
    except StopIteration as stop:
        return _Returned(stop.value)


async def drive(generator: Rounds[R], links: Mapping[str, Link], meter: Meter, round_timeout_s: float) -> R:
    """Run a generator to its end over the links; return its output.

    Raises the generator's errors, and TransportError when a message is overdue. When cancelled, a running step
    completes in its thread, and nobody waits.
    """
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, "protocol")
    inbox: Inbox | None = None
    try:
        while True:
            turn = await loop.run_in_executor(thread, _advance, generator, inbox)
            if isinstance(turn, _Returned):
                return turn.value  # type: ignore[no-any-return]  # the generator returns R
            inbox = await _exchange(turn, links, meter, round_timeout_s)
    finally:
        thread.submit(generator.close).add_done_callback(_tell)
        thread.shutdown(wait=False)
        meter.close()


def _tell(closed: Future[None]) -> None:
    """Log that what an ended run began could not be undone. A charge that is not given back counts on."""
    if (error := closed.exception()) is not None:
        log.error("an ended run was not undone: %s", problem_of(error).error_id)


async def _exchange(turn: Round, links: Mapping[str, Link], meter: Meter, timeout_s: float) -> Inbox:
    """Send a round's messages, and gather the awaited messages at the same time."""
    peers = sorted(turn.wait_for)
    arriving = [asyncio.create_task(_receive(links[peer], turn.step, timeout_s)) for peer in peers]
    try:
        for recipient, payload in turn.outgoing.items():
            meter.sent(len(payload))
            await links[recipient].send(turn.step, payload)
        payloads = await asyncio.gather(*arriving)
    finally:
        for task in arriving:
            task.cancel()
    if payloads:
        meter.waited()
        meter.received(sum(map(len, payloads)))
    return dict(zip(peers, payloads, strict=True))


async def _receive(link: Link, step: str, timeout_s: float) -> bytes:
    async with _patience(link, f"step {step}", timeout_s):
        return await link.receive(step)


@asynccontextmanager
async def _patience(link: Link, what: str, timeout_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise TransportError(
            "peer-timeout",
            f"no message of {what} from {link.peer} within {timeout_s:g} s",
            party=link.suspects,
            remedy="look at the party's log; if the job is so large, raise `timeouts.round_s`",
        ) from error
