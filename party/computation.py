"""Protocol of a job: connect to the peers, run the protocol, and report progress to the coordinator."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from anonymize.tds import ROOT, Observer, Step
from crypto.errors import RemoteProtocolError
from crypto.mixing import checked_key
from crypto.rng import Rng, SystemRng
from crypto.rounds import Rounds
from jobs.errors import PartyError
from jobs.modes import protocol_of
from jobs.release.commitment import OPENINGS, commit, keep_opening, opening_of
from jobs.release.signatures import Signed, Statement, attest
from jobs.task import Result, RunInputs
from party.admission import addresses_after_us, wiring_of
from party.net import control
from party.net.runner import Meter, drive
from party.requests import unless_told
from party.states import Admitted, Computed, Session


async def compute(session: Session, admitted: Admitted, start: control.Start) -> Computed:
    """Connect to the peers and run the protocol, unless stopped by the coordinator."""
    session.log(f"started by {session.coordinator}")
    run_inputs = RunInputs(session.source, _recipient(session, start))
    return await unless_told(_computed(session, admitted, run_inputs), session.requests)


def _recipient(session: Session, start: control.Start) -> bytes | None:
    """Return the coordinator's key, if only the coordinator receives the release. Raises PartyError if invalid."""
    if session.task.job.deliver == "all":
        if start.key:
            raise PartyError("peer-protocol", "a key for a release that every party receives")
        return None
    try:
        return checked_key(start.key, session.coordinator, "start")
    except RemoteProtocolError as error:
        message = (
            f"{session.coordinator} gave no key for the release, which only the coordinator receives: "
            f"{error.reason}"
        )
        raise PartyError(
            "peer-protocol", message, remedy="compare the versions of Jointcut at the parties"
        ) from error


async def _computed(session: Session, admitted: Admitted, run_inputs: RunInputs) -> Computed:
    timeouts, loop = session.config.timeouts, asyncio.get_running_loop()
    observer = _Reporter(
        session, lambda event: asyncio.run_coroutine_threadsafe(session.emit(event), loop), Meter()
    )
    await connect(session)
    work = drive(
        _whole_run(session, admitted, run_inputs, observer, SystemRng()),
        session.mesh.links,
        observer.meter,
        timeouts.round_s,
    )
    result, signed = await session.mesh.unless_broken(work)
    return Computed(admitted.table, admitted.account, result, signed, observer.n_matched, observer.meter)


async def connect(session: Session) -> None:
    """Link us with every peer, directly or through the compute pair."""
    assert session.signer is not None  # the job is admitted
    config, task = session.config, session.task
    addresses, patience_s = addresses_after_us(config, task), config.timeouts.connect_s
    await session.mesh.connect(addresses, patience_s)
    await session.mesh.carry(wiring_of(session.me, task), addresses, session.signer, SystemRng(), patience_s)


def _whole_run(
    session: Session, admitted: Admitted, run_inputs: RunInputs, observer: _Reporter, rng: Rng
) -> Rounds[tuple[Result, list[Signed]]]:
    """Commit to our table, run the protocol, and sign the result; each step with all peers."""
    me, task, signer, run = session.me, session.task, session.signer, session.key.run
    assert signer is not None  # the job is admitted
    others = task.roster(me).others
    opening = opening_of(admitted.table, rng)
    keep_opening(session.config.state_dir / OPENINGS, task.job.name, run, opening)
    commitments = yield from commit(me, others, opening, rng)
    result = yield from protocol_of(task, me, admitted.table, rng, observer, admitted.account, run_inputs)
    transcripts = {peer: link.transcript() for peer, link in session.mesh.links.items()}
    ours = Statement(
        me,
        task.digest.hex(),
        run.hex(),
        {party: commitment.hex() for party, commitment in commitments.items()},
        {peer: sent for peer, (sent, _) in transcripts.items()},
        {peer: received for peer, (_, received) in transcripts.items()},
        hashlib.sha256(result.encoded).hexdigest(),
        task.mode.digests(task, result),
    )
    found = yield from attest(ours, others, signer.sign, signer.check)
    certificates = signer.certificates
    return result, [Signed(*found[party], certificates[party]) for party in task.job.roster]


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
        if name == ROOT:
            self.post(control.Progress(name))

    def gates(self, count: int) -> None:
        self.meter.gates(count)

    def revealed(self, name: str, shape: tuple[int, ...], to: str) -> None:
        self.session.note("reveal", {"name": name, "shape": shape, "to": to}, durable=False)

    def aligned(self, n_common: int) -> None:
        self.n_matched = n_common

    def turn(self, iteration: int, step: Step) -> None:
        self.session.turn = iteration
        column = self.session.task.job.generalized[step.candidate.column]
        self.post(control.Progress(self.session.phase, iteration, column, step.applied))

    def sweep(self, number: int) -> None:
        self.session.turn = number
        self.post(control.Progress(self.session.phase, number, "", applied=False))
