"""The daemon of a data holder: one job at a time, from submission to delivery.

A job lives as long as the coordinator's stream, until we told the other parties that we checked what was delivered:
then it goes on without (:mod:`party.agreement`). Whatever goes wrong, here or at a peer, ends it at once: the links
are told why, the coordinator is told why, and nothing half-done stays behind. Knows no gRPC.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from crypto.rng import SystemRng
from jobs.errors import JobFailed, PartyError, Problem, TransportError, problem_of
from jobs.task import Task
from party.approval import Desk
from party.auditing import RunAudit, came_to
from party.delivery import begin_account, write_account
from party.door import let_in
from party.net import control
from party.net.control import Emit, Envelope, Submit
from party.net.link import Duplex, RunKey
from party.net.mesh import Dial, Mesh
from party.net.protocol import OURS, Talked, check_greeting, check_spoken
from party.net.refusing import Refusals
from party.net.turns import Turns
from party.net.waiting import in_thread, stopped
from party.operations.tally import Tally
from party.owner.accounts import FAILED
from party.owner.audit import Audit
from party.owner.config import PartyConfig, Timeouts
from party.owner.in_force import Refresh
from party.owner.problems import FailedJob, ProblemBook, note_problem
from party.queue import Place, Turn, in_turn
from party.requests import Requests, receive_task
from party.session import BINDING, fail, live
from party.states import Session

log = logging.getLogger("party")

T = TypeVar("T")

_FAREWELL_S = 5.0
ACCOUNTS_S = 20.0
"""A daemon that is stopped waits so long for accounts of runs that are over. What is not finished then stays so."""


class Daemon:
    """Answers coordinators and peers."""

    def __init__(
        self,
        config: PartyConfig,
        dial: Dial,
        refresh: Refresh | None = None,
        tally: Tally | None = None,
        talked: Talked = OURS,
        place: Place | None = None,
    ) -> None:
        """``refresh`` is asked before every job; without it ``config`` stays in force. ``tally`` counts jobs;
        ``place`` is where others see which one runs.
        """
        self.talked = talked
        self._config = config
        self._dial = dial
        self._refresh = refresh
        self._place = Place(config.name) if place is None else place
        self._problems = ProblemBook(config.state_dir)
        self._audit = Audit(config.state_dir)
        self._refusals = Refusals(self._audit)
        self._going_on: set[asyncio.Task[None]] = set()
        self._accounts: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._turns = Turns("accounts")
        self._desk = Desk(self._known_to, self._check_spoken)
        self._tally = Tally() if tally is None else tally

    @property
    def name(self) -> str:
        """Our name, as peers and jobs know us."""
        return self._config.name

    @property
    def idle(self) -> bool:
        """No job has the place."""
        return not self._place.taken

    async def ended(self) -> None:
        """End what goes on without its coordinator; return when the owner's accounts are written, or after
        ``ACCOUNTS_S``: an account can take minutes.
        """
        await stopped(*self._going_on)
        await self._refusals.settle()
        await asyncio.gather(*self._closing, return_exceptions=True)
        if not self._accounts:
            return
        log.info("waiting up to %g s for accounts that only the owner may read", ACCOUNTS_S)
        _, left = await asyncio.wait(self._accounts, timeout=ACCOUNTS_S)
        if left:
            log.warning("accounts that were not finished: %d; shown by `party accounts`", len(left))
        await stopped(*left)

    async def drained(self) -> None:
        """Take no more jobs; return when the one that runs has ended, or after `timeouts.drain_s`."""
        self._place.close()
        if self.idle:
            return
        patience_s = self._config.timeouts.drain_s
        log.info("no more jobs are taken; the one that runs has %g s to end", patience_s)
        try:
            async with asyncio.timeout(patience_s):
                await self._place.emptied()
        except TimeoutError:
            log.warning("the job that runs is ended: it was not over within %g s", patience_s)

    async def conduct(self, caller: str, requests: Requests, emit: Emit, *, waits: bool = False) -> None:
        """Serve one coordinator's stream from submission to delivery; ``waits``: in its turn, if a job is done now.

        If the stream breaks when the job is the parties' alone, or when its end is being noted and told, that goes on
        after this has ended.
        """
        visit = _Visit(caller, requests, emit, waits)
        work = asyncio.create_task(self._conduct(visit))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            if visit.goes_on and not work.done():
                _noted(work, self._going_on)
            else:
                await stopped(work)
            raise

    async def _conduct(self, visit: _Visit) -> None:
        caller, emit = visit.caller, visit.emit
        try:
            await self._known_to(caller)
            first = await self._in_turn(visit)
            await self._refusals.settle()
            await self._serve(visit, first, self._config.timeouts)
            self._tally.note(None, visit.phase)
        except asyncio.CancelledError:
            left = Problem("cancelled", f"{caller} went away", self.name, visit.phase)
            self._tally.note(left, visit.phase)
            if (session := visit.session) is not None:
                session.log(f"ended: {caller} went away")
                await fail(session, left)
            raise
        except Exception as error:  # noqa: BLE001  the edge: every error becomes a problem, bugs included
            visit.failing = True
            session = visit.session
            problem = problem_of(error).at(self.name, visit.phase)
            self._tally.note(problem, visit.phase)
            await asyncio.to_thread(note_problem, problem, error, _failed_job(session), self._problems)
            await self._note_refusal(visit, problem)
            await _tell(emit, problem)
            if session is not None:
                await fail(session, problem)
        finally:
            if visit.turn is not None:
                self._place.leave(visit.turn)
                self._count_turns()
            if visit.session is not None:
                _noted(asyncio.create_task(self._keep_account(visit.session)), self._accounts)
                _noted(asyncio.create_task(visit.session.mesh.close()), self._closing)
                await _note_end(visit.session)

    async def _note_refusal(self, visit: _Visit, problem: Problem) -> None:
        """Note whom we turned away before a job began here, and why; how one ended that began is noted at its end."""
        session = visit.session
        if problem.error_id == "cancelled" or (session is not None and session.audit.begun):
            return
        job = _named(session.task) if session else {}
        await self._refusals.note(visit.caller, problem, **job)

    async def _keep_account(self, session: Session) -> None:
        """The run stands, whether or not its account can be kept."""
        if session.kept is None:
            return
        try:
            await self._turns.take(partial(write_account, session, session.kept))
        except Exception as error:  # noqa: BLE001  the edge: every error becomes a problem, bugs included
            problem = problem_of(error).at(self.name, "account")
            await asyncio.to_thread(note_problem, problem, error, _failed_job(session), self._problems)
            await asyncio.to_thread(begin_account, session, FAILED)

    async def _in_turn(self, visit: _Visit) -> Submit | None:
        """Take the place, at once or when it is this coordinator's turn; return what it has handed in by then.

        Raises PartyError if it is not to have it.
        """
        if not visit.waits:
            visit.turn = self._place.take(visit.caller)
            self._count_turns()
            return None
        visit.turn = self._place.queue(visit.caller, self._config.limits)
        self._count_turns()
        return await in_turn(visit.turn, visit.requests, visit.emit, self._config.timeouts)

    def _count_turns(self) -> None:
        self._tally.running, self._tally.waiting = self._place.taken, len(self._place.waiting)

    async def _serve(self, visit: _Visit, first: Submit | None, timeouts: Timeouts) -> None:
        """Take the bundle and do the job. Raises what ends a job."""
        with visit.unfinished:
            session = await self._bound(visit, first, timeouts)
            await live(session)

    async def _bound(self, visit: _Visit, first: Submit | None, timeouts: Timeouts) -> Session:
        """Do the job to its end, or until other parties count on us. Raises TransportError if it is not in time."""
        try:
            async with asyncio.timeout(timeouts.job_s) as whole:
                spoken = partial(self._check_spoken, visit.caller)
                key, task = await receive_task(visit.requests, visit.caller, timeouts.submit_s, spoken, first)
                session = visit.session = self._place.session = self._session(visit, key, task)
                await live(session, until=BINDING)
                return session
        except TimeoutError as error:
            if not whole.expired():
                raise
            raise TransportError(
                "peer-timeout",
                f"the job was not over within {timeouts.job_s:g} s",
                remedy=f"at {self.name}: raise `timeouts.job_s` if jobs need so long",
            ) from error

    async def propose(self, caller: str, requests: Requests) -> control.Standing:
        """Take a bundle for our owner to decide on; say how it stands. Raises PartyError."""
        task, standing = await self._answered(self._desk.propose(caller, requests))
        if standing.state == "refused":
            refused = Problem("policy-refused", standing.reason, self.name, "propose")
            await self._refusals.note(caller, refused, **_named(task))
        return standing

    async def standing(self, caller: str, job: bytes) -> control.Standing:
        """How a caller's job stands, by its hash. Raises PartyError."""
        return await self._answered(self._desk.standing(caller, job))

    async def _answered(self, answer: Coroutine[Any, Any, T]) -> T:
        """Note for our owner why there is none."""
        try:
            return await answer
        except Exception as error:
            problem = problem_of(error).at(self.name, "propose")
            self._tally.note(problem, "propose")
            await asyncio.to_thread(note_problem, problem, error, None, self._problems)
            raise JobFailed(problem) from error

    async def accept(self, sender: str, hello: Envelope, duplex: Duplex) -> None:
        """Take a stream that a peer opened for the current run. Raises PartyError if there is none."""
        session = self._place.session
        if hello.recipient != self.name:
            raise PartyError(
                "peer-protocol", f"{sender} opened a stream meant for somebody else", party=sender
            )
        if session is None or (hello.job, hello.run) != (session.key.job, session.key.run):
            raise PartyError("job-hash-mismatch", f"{self.name} runs no such job", party=self.name)
        check_greeting(hello.payload, session.key.protocol, self.name, sender)
        session.mesh.accept(sender, duplex)

    def _check_spoken(self, caller: str, protocol: int) -> None:
        check_spoken(self.talked, protocol, self.name, caller)

    def _session(self, visit: _Visit, key: RunKey, task: Task) -> Session:
        limits = self._config.limits
        mesh = Mesh(self.name, key, self._dial, limits.message_bytes)
        return Session(
            self.name,
            task,
            visit.caller,
            self._config,
            self._in_force,
            mesh,
            visit.requests,
            visit.emit,
            visit.unfinished,
            RunAudit(self._audit, task, key.run, visit.caller, key.protocol),
        )

    async def _known_to(self, caller: str) -> PartyConfig:
        """The configuration in force now, for whoever may start jobs. Raises PartyError to anybody else."""
        self._config = await let_in(caller, self._config, self._refresh)
        return self._config

    async def _in_force(self) -> PartyConfig:
        """The configuration in force now."""
        if self._refresh is not None:
            self._config = await self._refresh()
        return self._config


def _named(task: Task) -> dict[str, str]:
    """Which job a line of the audit is about."""
    return {"job": task.job.name, "job_sha256": task.digest.hex()}


def _noted(task: asyncio.Task[None], among: set[asyncio.Task[None]]) -> None:
    """Keep a task that goes on, though whoever called is answered, among others until it is done."""
    among.add(task)
    task.add_done_callback(among.discard)


async def _note_end(session: Session) -> None:
    """Note in the audit how a run ended, and in the ledger with what a failed one was charged."""
    await in_thread(session.audit.end, came_to(session.problem), SystemRng())
    if session.account is None or session.problem is None:
        return
    try:
        await in_thread(session.account.ended, session.problem)
    except PartyError as error:
        session.log(f"how the run ended could not be noted in the ledger: {error.problem.error_id}")


@dataclass
class _Visit:
    """A coordinator's stream, from the door on."""

    caller: str
    requests: Requests
    emit: Emit
    waits: bool
    unfinished: ExitStack = field(default_factory=ExitStack)
    turn: Turn | None = None
    session: Session | None = None
    failing: bool = False
    """Whether the job has failed, which is being noted and told."""

    @property
    def phase(self) -> str:
        """Where the job is, or where a job begins."""
        return self.session.phase if self.session else "submit"

    @property
    def goes_on(self) -> bool:
        """Whether what is done goes on without its coordinator."""
        return self.failing or (self.session is not None and isinstance(self.session.state, BINDING))


async def _tell(emit: Emit, problem: Problem) -> None:
    """Tell the coordinator why the job ended, if it listens: whoever does not must not hold up the next."""
    try:
        async with asyncio.timeout(_FAREWELL_S):
            await emit(control.Failed(problem))
    except TimeoutError:
        log.warning("the coordinator did not take the reason why the job ended")


def _failed_job(session: Session | None) -> FailedJob | None:
    """The job of a session, if it has come that far."""
    if session is None:
        return None
    task = session.task
    return FailedJob(task.job.name, task.digest.hex(), session.key.run.hex(), session.coordinator)
