"""The queue at the one place for a job: who has it, who waits, and how long a coordinator may keep others waiting.

Whoever comes while a job is done is refused, or waits if it asks for that: in the order of coming, a bounded number
of them in all and of each coordinator. It is told how many come before it, and says again and again that it is still
there; who is silent, and who does not hand in a job when its turn has come, loses its turn.

Coordinators wait at one party after the other, in the order of the parties' names (:mod:`coordinator.conduct`), and
so never for each other.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from jobs.errors import PartyError, TransportError
from party.net import control
from party.net.control import Emit
from party.net.waiting import stopped, unless_broken
from party.owner.config import Limits, Timeouts
from party.requests import Requests, hear, out_of_order
from party.states import Session


@dataclass(eq=False)
class Turn:
    """A coordinator's turn. before: how many jobs come before its own; 0 when it has the place.

    begun:    whether it is handing in its job, or has: then nothing takes the place from it.
    refused:  why it will not come to its turn.
    """

    caller: str
    before: int
    begun: bool = False
    refused: PartyError | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Place:
    """The one place for a job at a party. It is taken before the bundle is read, so that bundles do not pile up.

    session:  the job that has it, once its bundle is here.
    """

    def __init__(self, me: str) -> None:
        self.session: Session | None = None
        self._me = me
        self._line: list[Turn] = []
        self._closed = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def taken(self) -> bool:
        """Whether somebody has it."""
        return bool(self._line)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The coordinators that wait, in order."""
        return tuple(turn.caller for turn in self._line[1:])

    def take(self, caller: str) -> Turn:
        """Raises PartyError if another job has it, or no more are taken."""
        self._check_open()
        if self._line:
            raise PartyError("busy", f"{self._me} is running another job", party=self._me)
        turn = self._entered(caller)
        turn.begun = True
        return turn

    def queue(self, caller: str, limits: Limits) -> Turn:
        """Take the place, or the last in the queue. Raises PartyError if too many wait, or no more jobs are taken."""
        self._check_open()
        waiting = self._line[1:]
        if self._line and len(waiting) >= limits.waiting:
            raise PartyError("busy", f"at {self._me} no more coordinators may wait", party=self._me)
        if sum(turn.caller == caller for turn in waiting) >= limits.waiting_each:
            raise PartyError("busy", f"at {self._me} {caller} may not wait more often", party=self._me)
        return self._entered(caller)

    def leave(self, turn: Turn) -> None:
        """Give the place back, or leave the queue: the next moves up. Whoever took a turn does, once."""
        self._line.remove(turn)
        if turn.before == 0:
            self.session = None
        for before, each in enumerate(self._line):
            if each.before != before:
                each.before = before
                each.changed.set()
        if not self._line:
            self._empty.set()

    def close(self) -> None:
        """Take no more jobs; whoever has not begun to hand one in is refused."""
        self._closed = True
        for turn in self._line:
            if not turn.begun:
                turn.refused = self._stopping()
                turn.changed.set()

    async def emptied(self) -> None:
        """Return when nobody has the place, or waits."""
        await self._empty.wait()

    def _entered(self, caller: str) -> Turn:
        turn = Turn(caller, len(self._line))
        self._line.append(turn)
        self._empty.clear()
        return turn

    def _check_open(self) -> None:
        if self._closed:
            raise self._stopping()

    def _stopping(self) -> PartyError:
        return PartyError("stopping", f"{self._me} is about to stop", party=self._me)


async def in_turn(turn: Turn, requests: Requests, emit: Emit, timeouts: Timeouts) -> control.Submit:
    """Tell a coordinator how many come before it until it hands in a job in its turn; return how that begins.

    Raises TransportError when it is silent for too long, or hands in nothing when its turn has come; PartyError for
    what else it says, and when the place is closed.
    """
    telling = asyncio.create_task(_tell(turn, emit, timeouts.coordinator_s))
    try:
        return await unless_broken(_submission(turn, requests, timeouts.silent_s), [telling])
    finally:
        await stopped(telling)


async def _submission(turn: Turn, requests: Requests, patience_s: float) -> control.Submit:
    while True:
        match await hear(requests, turn.caller, patience_s, "silent_s"):
            case control.Still():
                continue
            case control.Submit() as request if turn.before == 0:
                turn.begun = True
                return request
            case request:
                raise out_of_order(request)


async def _tell(turn: Turn, emit: Emit, patience_s: float) -> None:
    """Say what changes; when the turn has come, wait so long for it to be used."""
    while turn.before:
        await emit(control.Queued(turn.before))
        await _change(turn)
    await emit(control.Queued(0))
    try:
        async with asyncio.timeout(patience_s):
            while True:
                await _change(turn)
    except TimeoutError:
        raise TransportError(
            "turn-lost",
            f"{turn.caller} did not hand in its job within {patience_s:g} s when its turn had come",
        ) from None


async def _change(turn: Turn) -> None:
    """Return when another comes next. Raises PartyError when the place is closed to it."""
    await turn.changed.wait()
    turn.changed.clear()
    if turn.refused is not None:
        raise turn.refused
