"""The daemon of a data holder: one job at a time, from submission to delivery.

A job lives as long as the coordinator's stream. Whatever goes wrong, here or at a peer, ends it at once:
the links are told why, the coordinator is told why, and nothing half-done stays behind. Knows no gRPC.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import traceback
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from anonymize.tds import Observer, Step
from crypto.rng import SystemRng
from crypto.rounds import Rounds
from party import messages
from party.account import own_account, public_account
from party.bundle import MAX_BUNDLE_BYTES, Bundle, decode_bundle
from party.config import PartyConfig
from party.data import Loaded, LoadedColumns, load
from party.dp_release import check_dp_delivery, delivered_files
from party.dp_result import DpResult
from party.dp_run import Account
from party.errors import PartyError, PolicyError, Problem, TransportError, problem_of
from party.link import Duplex, Link, RunKey
from party.mailbox import Mailbox
from party.messages import Envelope, Event, pieces
from party.parts import encoded_result, part_of
from party.policy import check_policy, check_releases
from party.protocols import Result, protocol_of
from party.release_file import OWN_ACCOUNT, check_delivery, new_folder, write_files
from party.result import reveal_fields
from party.runner import Meter, drive, finish
from party.session import State, Trigger, next_state

T = TypeVar("T")
log = logging.getLogger("party")

_ABORT_S = 1.0
_MARGIN_S = 2.0

Emit = Callable[[Event], Coroutine[Any, Any, None]]
Requests = Mailbox[messages.Request]
"""What the coordinator says."""


class Dial(Protocol):
    """Opens a stream to a peer's mesh service."""

    async def __call__(self, peer: str, address: str) -> Duplex: ...


@dataclass
class Session:
    """One run of one job at this party."""

    key: RunKey
    bundle: Bundle
    coordinator: str
    state: State = State.NEW
    loaded: Loaded | LoadedColumns | None = field(default=None, repr=False)
    account: Account | None = field(default=None, repr=False)
    result: Result | None = field(default=None, repr=False)
    parts: dict[str, bytes] = field(default_factory=dict, repr=False)
    meter: Meter = field(default_factory=Meter, repr=False)
    incoming: dict[str, asyncio.Future[Duplex]] = field(default_factory=dict, repr=False)
    streams: list[Duplex] = field(default_factory=list, repr=False)
    links: dict[str, Link] = field(default_factory=dict, repr=False)
    pumps: list[asyncio.Task[None]] = field(default_factory=list, repr=False)
    phase: str = "submit"

    def fire(self, trigger: Trigger) -> None:
        """Take a step in the life of the job. Raises PartyError if it is out of order."""
        self.state = next_state(self.state, trigger)

    def log(self, text: str) -> None:
        """Note something in the log, with this run's fields."""
        log.info("%s", text, extra={"job": self.bundle.job.name, "phase": self.phase})

    async def fail(self, problem: Problem) -> None:
        """Tell every peer why the run ends here, as far as they can be told."""
        if self.state not in {State.FAILED, State.DELIVERED}:
            self.fire(Trigger.FAIL)
        aborts = [asyncio.create_task(_abort(link, problem)) for link in self.links.values()]
        if aborts:
            await asyncio.wait(aborts, timeout=_ABORT_S)
        await _stopped(*aborts)

    async def close(self) -> None:
        """End every stream of the run, those included that were opened and never used."""
        for future in self.incoming.values():
            future.cancel()
        await _stopped(*self.pumps)
        await asyncio.gather(*(stream.close() for stream in self.streams), return_exceptions=True)


class Daemon:
    """Answers coordinators and peers."""

    def __init__(self, config: PartyConfig, dial: Dial) -> None:
        self._config = config
        self._dial = dial
        self._session: Session | None = None

    @property
    def name(self) -> str:
        """Our name, as peers and jobs know us."""
        return self._config.name

    async def conduct(self, caller: str, requests: Requests, emit: Emit) -> None:
        """Serve one coordinator's stream from submission to delivery."""
        session: Session | None = None
        try:
            run, bundle = await _receive_bundle(requests)
            session = self._open(caller, run, bundle)
            await self._conduct(session, requests, emit)
        except asyncio.CancelledError:
            if session is not None:
                session.log(f"ended: {caller} went away")
                await session.fail(Problem("cancelled", f"{caller} went away", self.name, session.phase))
            raise
        except Exception as error:  # noqa: BLE001  the edge: every error becomes a problem, bugs included
            problem = problem_of(error).at(self.name, session.phase if session else "submit")
            _log_problem(problem, error, session)
            await emit(messages.Failed(problem))
            if session is not None:
                await session.fail(problem)
        finally:
            if session is not None:
                self._session = None
                await session.close()

    async def accept(self, sender: str, hello: Envelope, duplex: Duplex) -> None:
        """Take a stream that a peer opened for the current run. Raises PartyError if there is none."""
        session = self._session
        if hello.recipient != self.name:
            raise PartyError(
                "peer-protocol", f"{sender} opened a stream meant for somebody else", party=sender
            )
        if session is None or RunKey(hello.job, hello.run) != session.key:
            raise PartyError("job-hash-mismatch", f"{self.name} runs no such job", party=self.name)
        waiting = session.incoming.get(sender)
        if waiting is None or waiting.done():
            raise PartyError("peer-protocol", f"{sender} opened a stream that is not due", party=sender)
        session.streams.append(duplex)
        waiting.set_result(duplex)

    def _open(self, caller: str, run: bytes, bundle: Bundle) -> Session:
        """Begin a session; one at a time."""
        if self._session is not None:
            raise PartyError("busy", f"{self.name} is running another job", party=self.name)
        session = Session(RunKey(bundle.digest, run), bundle, caller)
        self._session = session
        return session

    async def _conduct(self, session: Session, requests: Requests, emit: Emit) -> None:
        await self._admit(session)
        await emit(messages.Admitted(session.key.job))
        await _expect(requests, messages.Start)
        session.fire(Trigger.START)
        session.log(f"started by {session.coordinator}")
        session.meter = Meter()  # counts from here
        session.result = await _unless_told(self._compute(session, emit), requests)
        session.fire(Trigger.FINISH)
        session.phase = "deliver"
        if isinstance(session.result, DpResult) and session.result.repeated:
            session.log("gave the result of an earlier run again: nothing was charged")
        if session.account is None:
            job = session.bundle.job
            await asyncio.to_thread(self._config.budget.note_lkc, job.name, session.bundle.digest)
        digest = hashlib.sha256(encoded_result(session.result)).digest()
        await emit(messages.Finished(digest, _summary(session)))
        await self._hand_over(session, requests, emit)
        session.log("done")

    async def _admit(self, session: Session) -> None:
        """Ask the policy, then read the table."""
        session.phase = "admit"
        job = session.bundle.job
        check_policy(self._config.policy, job, self.name, session.coordinator)
        self._know_peers(job.roster)
        await asyncio.to_thread(self._open_account, session)
        session.phase = "load"
        session.loaded = await asyncio.to_thread(load, self._config.source, session.bundle, self.name)
        loop = asyncio.get_running_loop()
        before = job.roster[: job.roster.index(self.name)]
        session.incoming = {peer: loop.create_future() for peer in before}
        session.fire(Trigger.ADMIT)

    def _open_account(self, session: Session) -> None:
        """Ask the privacy ledger: what is left for a DP job, how many LKC releases there were."""
        policy, budget = self._config.policy, self._config.budget
        if session.bundle.job.model.dp is None:
            check_releases(policy, budget.entries(), self.name)
            return
        limit = policy.epsilon_budget or policy.max_epsilon
        assert limit is not None, "the policy allows the job"
        session.account = Account(budget, session.bundle, limit)
        session.account.check()

    def _know_peers(self, roster: Sequence[str]) -> None:
        for party in roster:
            if party != self.name and party not in self._config.peers:
                raise PolicyError(
                    "identity-unknown",
                    f"{self.name} has no certificate of {party}",
                    party=self.name,
                    remedy=f"at {self.name}: party peers add {party} CERTIFICATE",
                )

    async def _compute(self, session: Session, emit: Emit) -> Result:
        """Connect to the peers and run the protocol."""
        session.phase = "connect"
        await self._connect(session)
        session.pumps = [asyncio.create_task(link.run()) for link in session.links.values()]
        loop = asyncio.get_running_loop()
        observer = _Reporter(session, lambda event: asyncio.run_coroutine_threadsafe(emit(event), loop))
        assert session.loaded is not None
        generator = protocol_of(
            session.bundle, self.name, session.loaded, SystemRng(), observer, session.account
        )
        return await _unless_broken(self._run(session, generator), session.pumps)

    async def _run(self, session: Session, generator: Rounds[Result]) -> Result:
        patience_s = self._config.timeouts.round_s
        result = await drive(generator, session.links, session.meter, patience_s)
        await _together(*(finish(link, patience_s) for link in session.links.values()))
        return result

    async def _connect(self, session: Session) -> None:
        """One stream with every peer: we open those to the parties after us, and await the others."""
        roster = session.bundle.job.roster
        after = roster[roster.index(self.name) + 1 :]
        await _together(
            *(self._call(session, peer) for peer in after),
            *(self._await_call(session, peer) for peer in session.incoming),
        )

    async def _call(self, session: Session, peer: str) -> None:
        parties = session.bundle.job.parties or {}
        address = self._config.peers[peer].address or parties[peer].address
        duplex = await self._dial(peer, address)
        session.streams.append(duplex)
        session.links[peer] = Link(self.name, peer, session.key, duplex, greeted=False)

    async def _await_call(self, session: Session, peer: str) -> None:
        try:
            async with asyncio.timeout(self._config.timeouts.connect_s + _MARGIN_S):
                duplex = await session.incoming[peer]
        except TimeoutError:
            raise TransportError("peer-unreachable", f"{peer} did not connect", party=peer) from None
        session.links[peer] = Link(self.name, peer, session.key, duplex, greeted=True)

    async def _hand_over(self, session: Session, requests: Requests, emit: Emit) -> None:
        """Send what the coordinator asks for, take what it delivers."""
        received = {name: bytearray() for name in delivered_files(session.bundle)}
        complete: set[str] = set()
        while (request := await requests.get()) is not None:
            match request:
                case messages.Fetch():
                    session.fire(Trigger.FETCH)
                    await self._send_parts(session, emit)
                case messages.Release(piece) if piece.name in received and piece.name not in complete:
                    received[piece.name] += piece.content
                    complete |= {piece.name} if piece.last else set()
                    if len(complete) == len(received):
                        files = {name: bytes(content) for name, content in received.items()}
                        await self._keep(session, files, requests, emit)
                case messages.Cancel():
                    raise _cancelled()
                case _:
                    raise _out_of_order(request)

    async def _send_parts(self, session: Session, emit: Emit) -> None:
        """Send what the table is made of, as far as it is ours to send."""
        for name in sorted(session.bundle.job.parts_of(self.name)):
            content = await asyncio.to_thread(self._part, session, name)
            session.parts[name] = content
            for piece in pieces(name, content):
                await emit(messages.ResultPart(piece))

    def _part(self, session: Session, name: str) -> bytes:
        assert session.loaded is not None
        assert session.result is not None
        source = self._config.source
        return part_of(name, session.bundle, self.name, source, session.loaded, session.result, SystemRng())

    async def _keep(self, session: Session, files: dict[str, bytes], requests: Requests, emit: Emit) -> None:
        """Check what was delivered and set it aside; keep it once every party has got that far."""
        name = f"{session.bundle.job.name}-{session.key.run.hex()[:12]}"
        with new_folder(self._config.state_dir / "releases" / name) as folder:
            await _in_thread(_set_aside, session, files, folder)
            session.fire(Trigger.CHECK)
            await emit(messages.Checked())
            await _expect(requests, messages.Commit)
        session.fire(Trigger.DELIVER)
        await emit(messages.Delivered())


class _Reporter(Observer):
    """Passes progress on, from the protocol's thread."""

    def __init__(self, session: Session, post: Callable[[Event], object]) -> None:
        self._session = session
        self._post = post

    def phase(self, name: str) -> None:
        self._session.meter.phase(name)
        self._session.phase = name

    def gates(self, count: int) -> None:
        self._session.meter.gates(count)

    def turn(self, iteration: int, step: Step) -> None:
        column = self._session.bundle.job.generalized[step.candidate.column]
        self._post(messages.Progress(self._session.phase, iteration, column, step.applied))


async def _receive_bundle(requests: Requests) -> tuple[bytes, Bundle]:
    """Take the bundle; return the run and the bundle."""
    parts = bytearray()
    while True:
        request = await requests.get()
        if request is None:
            raise _cancelled()
        if not isinstance(request, messages.Submit) or len(request.run) != messages.RUN_BYTES:
            raise PartyError("peer-protocol", "a job begins with its bundle")
        parts += request.bundle.content
        if len(parts) > MAX_BUNDLE_BYTES:
            raise PartyError("peer-protocol", f"a bundle of more than {MAX_BUNDLE_BYTES} bytes")
        if request.bundle.last:
            return request.run, await asyncio.to_thread(decode_bundle, bytes(parts))


def _set_aside(session: Session, files: dict[str, bytes], folder: Path) -> None:
    """Check files against what we computed ourselves, and write them, with what concerns us alone."""
    assert session.result is not None
    if isinstance(session.result, DpResult):
        check_dp_delivery(session.bundle, session.result, files)
        write_files(folder, files)
        return
    check_delivery(session.bundle, session.result, files, session.parts.get("columns"))
    if session.bundle.job.partition == "vertical":
        own = {
            "reveals": reveal_fields(session.result.ledger, private=True),
            "cost": own_account(session.meter, session.links),
        }
        files = {**files, OWN_ACCOUNT: (json.dumps(own, indent=1) + "\n").encode()}
    write_files(folder, files)


async def _expect(requests: Requests, kind: type[messages.Request]) -> None:
    request = await requests.get()
    if not isinstance(request, kind):
        raise _out_of_order(request)


def _out_of_order(request: messages.Request | None) -> PartyError:
    if request is None or isinstance(request, messages.Cancel):
        return _cancelled()
    return PartyError("peer-protocol", f"{type(request).__name__} is out of order")


def _cancelled() -> PartyError:
    return PartyError("cancelled", "the coordinator cancelled the job or went away")


async def _unless_told(work: Coroutine[Any, Any, T], requests: Requests) -> T:
    """Do the work, unless the coordinator cancels it or goes away meanwhile."""
    task, told = asyncio.create_task(work), asyncio.create_task(requests.get())
    try:
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise _out_of_order(told.result())
        return task.result()
    finally:
        await _stopped(task, told)


async def _unless_broken(work: Coroutine[Any, Any, T], pumps: Sequence[asyncio.Task[None]]) -> T:
    """Do the work, unless a link breaks meanwhile: then what broke it is raised at once."""
    task = asyncio.create_task(work)
    waiting: set[asyncio.Task[Any]] = {task, *pumps}
    try:
        while not task.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for pump in done - {task}:
                pump.result()
        return task.result()
    finally:
        await _stopped(task)


async def _together(*work: Coroutine[Any, Any, None]) -> None:
    """Do all of it at once; when one fails, stop the others."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        await _stopped(*tasks)


async def _in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Work in a thread; when we are stopped meanwhile, wait until it has ended: it may be writing."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _stopped(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _abort(link: Link, problem: Problem) -> None:
    try:
        await link.abort(problem)
    except PartyError as error:
        log.debug("link to %s is gone: %s", link.peer, error.problem.error_id)


def _summary(session: Session) -> str:
    """Public facts of the run: what was revealed, and what it cost us."""
    result = session.result
    assert result is not None
    if isinstance(result, DpResult):
        told: dict[str, Any] = {"reveals": list(result.reveals), "repeated": result.repeated}
    else:
        told = {"reveals": reveal_fields(result.ledger)}
    return json.dumps(told | public_account(session.bundle.job, session.meter, session.links))


def _log_problem(problem: Problem, error: Exception, session: Session | None) -> None:
    """The owner's own log: what is shared, and for bugs the place in our code, without the error's text."""
    fields = {
        "job": session.bundle.job.name if session else None,
        "error_id": problem.error_id,
        "party": problem.party,
        "phase": problem.phase,
    }
    log.error("%s: %s", problem.error_id, problem.message, extra=fields)
    if problem.error_id == "bug":
        frames = traceback.extract_tb(error.__traceback__)
        log.error("at %s", " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames)))
