"""The only place for a job at a party, and the coordinators that wait for the place.

A coordinator of several parties waits at one party after the other, in the order of their names. So two coordinators
never wait for each other's parties.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from jobs.data.counted import counted
from jobs.errors import PartyError, TransportError
from party.net.waiting import stopped
from party.states import Session

MOST_WAITING = 16
"""Most coordinators' jobs that wait at a party."""
MOST_OF_ONE = 4
"""Most of them of the same coordinator."""
SILENCE_S = 30.0
"""Longest silence of a waiting coordinator, which says every few seconds that it is still there."""

Tell = Callable[[int], Coroutine[Any, Any, None]]
"""Tells a coordinator the number of jobs before its own."""


@dataclass(eq=False)
class Ticket:
    """Coordinator in the queue.

    served:  True once a job of the coordinator has the place.
    moved:   set when the queue changes.
    """

    caller: str
    served: bool = False
    moved: asyncio.Event = field(default_factory=asyncio.Event, repr=False)


@dataclass
class Place:
    """Only place for a job at a party. The place is taken before the bundle is read, so that bundles do not pile
    up.

    session:  the job in the place, once its bundle is here.
    closed:   True if no further job gets the place.
    n_begun:  number of jobs that got the place.
    n_ended:  number of jobs that left the place, with or without a release.
    """

    taken: bool = False
    session: Session | None = None
    closed: bool = False
    n_begun: int = 0
    n_ended: int = 0
    _queue: list[Ticket] = field(default_factory=list, repr=False)
    _left: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def n_waiting(self) -> int:
        """Number of jobs that wait for the place."""
        return len(self._queue)

    def take(self, me: str, caller: str) -> None:
        """Take the place. Raises PartyError if another job has the place, or another coordinator comes first."""
        self._require_open(me)
        if self.taken:
            raise PartyError("busy", f"{me} is running another job", party=me)
        if self._queue:
            first = self._queue[0]
            if first.caller != caller:
                raise PartyError("busy", f"{me} keeps its place for a job that waited", party=me)
            first.served = True
            self._quit(first)
        self.taken = True
        self.n_begun += 1
        self._left.clear()

    def leave(self) -> None:
        """Give the place back; only the taker does."""
        self.taken, self.session = False, None
        self.n_ended += 1
        self._left.set()
        self._moved()

    async def drain(self) -> None:
        """Refuse further jobs; return when the running job has left."""
        self.closed = True
        self._moved()
        if self.taken:
            await self._left.wait()

    async def keep(
        self, me: str, caller: str, signs: AsyncIterator[object], tell: Tell, most_s: float
    ) -> None:
        """Keep a coordinator's turn until its job has the place, or the coordinator leaves.

        signs:   whatever the coordinator says. Silence for ``SILENCE_S`` loses the turn.
        most_s:  longest time that the place is kept free for the coordinator.

        Raises PartyError if the queue is full or the turn is lost.
        """
        ticket = self._join(me, caller)
        hearing = asyncio.create_task(_hear(signs, caller))
        showing = asyncio.create_task(self._show(me, ticket, tell, most_s))
        try:
            await asyncio.wait({hearing, showing}, return_when=asyncio.FIRST_COMPLETED)
            for task in (hearing, showing):
                if task.done():
                    task.result()
        finally:
            self._quit(ticket)
            await stopped(hearing, showing)

    async def _show(self, me: str, ticket: Ticket, tell: Tell, most_s: float) -> None:
        """Tell the number of jobs before a ticket whenever it changes, until the ticket is served."""
        told: int | None = None
        while not ticket.served:
            self._require_open(me)
            ticket.moved.clear()
            if (ahead := self._queue.index(ticket) + self.taken) != told:
                async with asyncio.timeout(SILENCE_S):
                    await tell(ahead)
                told = ahead
                until = asyncio.get_running_loop().time() + most_s if ahead == 0 else None
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await ticket.moved.wait()
                    continue
            raise _lost(ticket.caller, f"started no job within {most_s:g} s after its turn came")

    def _join(self, me: str, caller: str) -> Ticket:
        self._require_open(me)
        own = sum(each.caller == caller for each in self._queue)
        if len(self._queue) >= MOST_WAITING or own >= MOST_OF_ONE:
            waiting = f"{counted(len(self._queue), 'job waits', 'jobs wait')}, {own} of {caller}"
            bounds = f"{MOST_WAITING} may wait, {MOST_OF_ONE} of one coordinator"
            raise PartyError("busy", f"{me} lets no further job wait: {waiting}; {bounds}", party=me)
        ticket = Ticket(caller)
        self._queue.append(ticket)
        return ticket

    def _quit(self, ticket: Ticket) -> None:
        if ticket in self._queue:
            self._queue.remove(ticket)
        self._moved(ticket)

    def _moved(self, *more: Ticket) -> None:
        for each in (*self._queue, *more):
            each.moved.set()

    def _require_open(self, me: str) -> None:
        if self.closed:
            raise PartyError(
                "busy",
                f"{me} is about to stop, and takes no further job",
                party=me,
                remedy="start the job again when the party is back; with `--wait 30m` the job waits for the party",
            )


async def _hear(signs: AsyncIterator[object], caller: str) -> None:
    """Return when the coordinator ends its stream. Raises TransportError when the coordinator falls silent."""
    said = aiter(signs)
    with suppress(StopAsyncIteration):
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    await anext(said)
            except TimeoutError:
                raise _lost(caller, f"was silent for {SILENCE_S:g} s") from None


def _lost(caller: str, why: str) -> TransportError:
    return TransportError("peer-timeout", f"{caller} {why}, and lost its turn", party=caller)
