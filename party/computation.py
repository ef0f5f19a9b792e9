"""The protocol of a job: connect to the peers, run it, and tell the coordinator how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from anonymize.tds import Observer, Step
from crypto.rng import SystemRng
from crypto.rounds import Rounds
from jobs.modes import protocol_of
from jobs.task import Result
from party.admission import addresses_after_us
from party.net import control
from party.net.runner import Meter, drive, finish
from party.net.waiting import together
from party.requests import unless_told
from party.states import Admitted, Computed, Session


async def compute(session: Session, admitted: Admitted, _: control.Start) -> Computed:
    """Connect to the peers and run the protocol, unless the coordinator stops it."""
    session.log(f"started by {session.coordinator}")
    return await unless_told(_computed(session, admitted), session.requests)


async def _computed(session: Session, admitted: Admitted) -> Computed:
    timeouts, loop = session.config.timeouts, asyncio.get_running_loop()
    observer = _Reporter(
        session, lambda event: asyncio.run_coroutine_threadsafe(session.emit(event), loop), Meter()
    )
    await session.mesh.connect(addresses_after_us(session), timeouts.connect_s)
    generator = protocol_of(session.task, session.me, admitted.table, SystemRng(), observer, admitted.account)
    work = _driven(session, generator, observer.meter, timeouts.round_s)
    result = await session.mesh.unless_broken(work)
    return Computed(admitted.table, admitted.account, result, observer.n_matched, observer.meter)


async def _driven(session: Session, generator: Rounds[Result], meter: Meter, patience_s: float) -> Result:
    links = session.mesh.links
    result = await drive(generator, links, meter, patience_s)
    await together(*(finish(link, patience_s) for link in links.values()))
    return result


@dataclass
class _Reporter(Observer):
    """Passes progress on, from the protocol's thread."""

    session: Session
    post: Callable[[control.Event], object]
    meter: Meter
    n_matched: int | None = field(default=None, repr=False)

    def phase(self, name: str) -> None:
        self.meter.phase(name)
        self.session.phase = name

    def gates(self, count: int) -> None:
        self.meter.gates(count)

    def aligned(self, n_common: int) -> None:
        self.n_matched = n_common

    def turn(self, iteration: int, step: Step) -> None:
        column = self.session.task.job.generalized[step.candidate.column]
        self.post(control.Progress(self.session.phase, iteration, column, step.applied))
