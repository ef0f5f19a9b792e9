"""Daemon of a data holder: a single job at a time, from submission to delivery.

A job lives as long as the coordinator's stream, until we tell the peers that we checked the delivery. From then on
the job continues without the coordinator (:mod:`party.agreement`). Any failure, here or at a peer, ends the job at
once: the peers and the coordinator learn the reason, and nothing half-done stays. The module knows no gRPC.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from crypto.rng import SystemRng
from jobs.errors import IdentityError, JobFailed, PartyError, PolicyError, Problem, TransportError, problem_of
from jobs.owner.rules import coordinator_rule
from jobs.task import Task
from party.approval import answered, received
from party.delivery import begin_account, write_account
from party.ends import Ends
from party.memory import free_ended
from party.net import control
from party.net.carried import GREETING
from party.net.control import Emit, Envelope
from party.net.link import Duplex, RunKey
from party.net.mesh import Dial, Mesh
from party.net.waiting import Turns, in_thread, stopped
from party.owner.accounts import FAILED
from party.owner.audit import Audit, changes
from party.owner.config import PartyConfig, Timeouts
from party.owner.counts import Counts, Jobs
from party.owner.current import CurrentJob
from party.owner.in_force import Refresh
from party.owner.problems import FailedJob, ProblemBook, note_problem
from party.owner.repeated import Repeated
from party.owner.telling import Teller
from party.place import Place, Tell
from party.requests import Requests, receive_task
from party.session import BINDING, ENDS, fail, live
from party.states import Session, Submitted

log = logging.getLogger("party")

_MOMENT_S = 2.0
_FAREWELL_S = 5.0
CLOSING_S = 5.0
"""Longest wait of a stopped daemon for its runs: an ended run tells its peers, and parties agree on a release."""
ACCOUNTS_S = 20.0
"""Longest wait of a stopped daemon for the accounts of completed runs. Later accounts stay unfinished."""


class Daemon:
    """Answers coordinators and peers."""

    def __init__(
        self, config: PartyConfig, dialing: Callable[[PartyConfig], Dial], refresh: Refresh | None = None
    ) -> None:
        """``dialing`` makes the calls of a run, under the configuration of the run. ``refresh`` is asked before every
        job; without ``refresh``, ``config`` stays in force.
        """
        log.setLevel(config.log_level.upper())
        self._config = config
        self._dialing = dialing
        self._refresh = refresh
        self._place = Place()
        self._problems = ProblemBook(config.state_dir)
        self._repeated = Repeated()
        self._conducting: set[asyncio.Task[None]] = set()
        self._going_on: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._accounts: set[asyncio.Task[None]] = set()
        self._ends = Ends()
        self._adopting = asyncio.Lock()
        self._is_stopping = False
        self._turns = Turns("accounts")
        self._proposing: dict[str, asyncio.Lock] = {}
        self._teller = Teller()
        self._audit = Audit(config.state_dir, SystemRng())
        self.counts = Counts()

    @property
    def name(self) -> str:
        """Our name, as peers and jobs know us."""
        return self._config.name

    @property
    def jobs(self) -> Jobs:
        """Only place for a job."""
        return self._place

    def current(self) -> CurrentJob | None:
        """Return the job that runs now, if its bundle is here."""
        session = self._place.session
        return None if session is None else session.current()

    async def drain(self) -> None:
        """Take no further job; return when the running job has ended."""
        await self._place.drain()

    async def reload(self) -> Mapping[str, Any]:
        """Take over changes of the configuration now; return the changes. Raises PartyError for invalid files."""
        return {} if self._refresh is None else await self._adopt(await self._refresh())

    def stopping(self) -> None:
        """Hear that streams end from now on because the daemon stops, and not because coordinators leave."""
        self._is_stopping = True

    async def ended(self) -> None:
        """End all runs; return when the owner's accounts are written.

        Runs that end, or continue without their coordinator, have ``CLOSING_S`` to come to an end themselves. Return
        after further ``ACCOUNTS_S`` at the latest: an account can take minutes.
        """
        if self._conducting:
            await asyncio.wait(self._conducting, timeout=CLOSING_S)
        await stopped(*self._going_on)
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSING_S)
        await self._ends.note_or_tell(log.warning)
        self._repeated.close()
        if not self._accounts:
            return
        log.info("waiting up to %g s for accounts that only the owner may read", ACCOUNTS_S)
        _, left = await asyncio.wait(self._accounts, timeout=ACCOUNTS_S)
        if left:
            log.warning("unfinished accounts: %d; shown by `party accounts`", len(left))
        await stopped(*left)

    async def conduct(self, caller: str, requests: Requests, emit: Emit) -> None:
        """Serve a coordinator's stream from submission to delivery.

        If the stream breaks when the job is the parties' alone, or while its end is being noted and told, the work
        continues after the method has ended.
        """
        visit = _Visit(caller, requests, emit)
        work = asyncio.create_task(self._conduct(visit))
        _noted(work, self._conducting)
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            if visit.goes_on and not work.done():
                _noted(work, self._going_on)
            else:
                work.cancel()
                await asyncio.wait({work})  # a second cancellation does not reach the work
            raise

    async def _conduct(self, visit: _Visit) -> None:
        caller, emit = visit.caller, visit.emit
        try:
            await self._adopt(await let_in(caller, self._config, self._refresh))
            self._place.take(self.name, caller)
            visit.has_place = True
            await self._ends.require_room()
            await self._serve(visit, self._config.timeouts)
        except asyncio.CancelledError:
            if (session := visit.session) is not None:
                problem = self._explained(Problem("cancelled", f"{caller} went away"))
                problem = problem.at(self.name, session.phase)
                session.log(f"ended: {problem.message}")
                self._note_failure(caller, problem, session)
                await fail(session, problem)
            raise
        except Exception as error:  # noqa: BLE001  the edge: every error becomes a problem, bugs included
            visit.failing = True
            session = visit.session
            problem = self._explained(problem_of(error))
            problem = problem.at(self.name, session.phase if session else "submit")
            refused = session is None or isinstance(session.state, Submitted)
            self.counts.note(problem, at_the_door=refused)
            about = "" if session is None else session.task.digest.hex()[:12]
            if not (refused and self._repeated.is_told(caller, problem, about)):
                await asyncio.to_thread(note_problem, problem, error, _failed_job(session), self._problems)
                await asyncio.to_thread(self._note_failure, caller, problem, session)
            await _tell(emit, problem)
            if session is not None:
                await fail(session, problem)
        finally:
            if visit.session is not None:
                visit.session.add_failure()  # before another job has the place
            if visit.has_place:
                self._place.leave()
            if visit.session is not None:
                visit.session.forget_source()
                keeping = asyncio.create_task(self._keep_account(visit.session))
                _noted(keeping, self._accounts)
                keeping.add_done_callback(_free_soon)
                await visit.session.hear_peers()
                await self._ends.note_or_tell(visit.session.log)
                _noted(asyncio.create_task(visit.session.mesh.close()), self._closing)  # nobody waits

    def _explained(self, problem: Problem) -> Problem:
        """Return the problem that ended a run. While the daemon stops, the stop explains the end of a stream."""
        if self._is_stopping and problem.error_id == "cancelled":
            return Problem("peer-lost", f"{self.name} was stopped", self.name)
        return problem

    async def _keep_account(self, session: Session) -> None:
        """Keep the account of a run. The run stands, with or without an account."""
        if session.kept is None:
            return
        try:
            await self._turns.take(partial(write_account, session, session.kept))
        except Exception as error:  # noqa: BLE001  the edge: every error becomes a problem, bugs included
            problem = problem_of(error).at(self.name, "account")
            await asyncio.to_thread(note_problem, problem, error, _failed_job(session), self._problems)
            await asyncio.to_thread(begin_account, session, FAILED)

    async def _serve(self, visit: _Visit, timeouts: Timeouts) -> None:
        """Take the bundle and do the job. Raises every error that ends a job."""
        with visit.unfinished:
            session = await self._bound(visit, timeouts)
            await live(session)

    async def _bound(self, visit: _Visit, timeouts: Timeouts) -> Session:
        """Do the job to its end, or until the peers rely on us. Raises TransportError on timeout."""
        try:
            async with asyncio.timeout(timeouts.job_s) as whole:
                run, task = await receive_task(visit.requests, visit.caller, timeouts.submit_s)
                config = await self._in_force()
                dial = await asyncio.to_thread(self._dialing, config)
                session = self._session(visit, RunKey(task.digest, run), task, config, dial)
                visit.session = self._place.session = session
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

    async def wait(self, caller: str, signs: AsyncIterator[object], tell: Tell) -> None:
        """Keep a coordinator's turn in the queue for the place. Raises PartyError, noted.

        signs:  whatever the coordinator says while it waits.
        tell:   tells the coordinator the number of jobs before its own.
        """
        try:
            await self._adopt(await let_in(caller, self._config, self._refresh))
            log.debug("%s waits for its turn", caller)
            await self._place.keep(self.name, caller, signs, tell, self._config.timeouts.job_s)
        except Exception as error:  # the edge: each error becomes a problem, bugs included
            raise await self._refusal(caller, error, "wait", None) from error

    async def propose(self, caller: str, parts: AsyncIterator[control.Proposal]) -> control.Answer:
        """Take a proposal, one at a time of each peer; return the owner's decision. Raises PartyError, noted."""
        async with self._proposing.setdefault(caller, asyncio.Lock()):
            task = None
            try:
                await self._adopt(await let_in(caller, self._config, self._refresh))
                task, ask = await received(self._config, caller, parts)
                log.debug(
                    "%s %s",
                    caller,
                    "asks for the decision" if ask else "proposes",
                    extra={"job": task.job.name},
                )
                return await asyncio.to_thread(answered, self._config, task, caller, ask, self)
            except Exception as error:  # the edge: each error becomes a problem, bugs included
                raise await self._refusal(caller, error, "propose", task) from error

    async def _refusal(self, caller: str, error: Exception, phase: str, task: Task | None) -> JobFailed:
        """Note the error of a call that is no run; return the error for the caller. task: if one was read."""
        problem = problem_of(error).at(self.name, phase)
        self.counts.note(problem, at_the_door=True)
        about = "" if task is None else task.digest.hex()[:12]
        if not self._repeated.is_told(caller, problem, about):
            await asyncio.to_thread(note_problem, problem, error, None, self._problems)
            await asyncio.to_thread(self._note_refusal, caller, problem, task)
        return JobFailed(problem)

    async def accept(self, sender: str, hello: Envelope, duplex: Duplex) -> None:
        """Take a peer's stream for the current run. Raises PartyError without a current run."""
        session = self._place.session
        if hello.recipient != self.name:
            raise PartyError(
                "peer-protocol", f"{sender} opened a stream meant for somebody else", party=sender
            )
        if session is None or RunKey(hello.job, hello.run) != session.key:
            raise PartyError("job-hash-mismatch", f"{self.name} runs no such job", party=self.name)
        session.mesh.accept(sender, duplex, carriage=hello.payload == GREETING)

    def note(self, task: Task, coordinator: str) -> None:
        """Note a new proposal. Raises PartyError."""
        job = {"job": task.job.name, "job_sha256": task.digest.hex()}
        self._audit.note("proposal", {**job, "coordinator": coordinator})

    def tell(self, task: Task) -> None:
        """Tell the owner that a job waits. Nobody waits for the owner to be told."""
        self._teller.tell(self._config.telling, task.digest.hex())

    def refuse(self, error: IdentityError) -> None:
        """Note that somebody without an installed certificate was turned away."""
        self.counts.strangers += 1
        if not self._repeated.is_told("strangers", error.problem):
            self._note_refusal("a stranger", error.problem, None)

    async def turned_away(self, n_connections: int, addresses: Sequence[str]) -> None:
        """Note connections without a call, with some of their addresses. The daemon goes on without a line, too."""
        self.counts.strangers += n_connections
        said = f"connections without a call: {n_connections} (no certificate that we accept, or only opened)"
        log.warning("%s%s", said, f", from {', '.join(addresses)}" if addresses else "")
        facts = {"caller": "strangers", "error": "identity-unknown", "message": said}
        found = {"connections": n_connections, "addresses": list(addresses)}
        with _lines_missed():
            await in_thread(partial(self._audit.note, "refusal", {**facts, **found}, durable=False))

    def _note_failure(self, caller: str, problem: Problem, session: Session | None) -> None:
        """Note a refusal, or the failure of a run. The work has ended, with or without a line."""
        if session is None:
            self._note_refusal(caller, problem, None)
            return
        event = "refusal" if isinstance(session.state, Submitted) else "failure"
        heads = session.new_heads()
        with _lines_missed():
            session.note(
                event, {**_said(caller, problem), **({"heads": heads} if heads else {})}, durable=False
            )

    def _note_refusal(self, caller: str, problem: Problem, task: Task | None) -> None:
        """Note a refusal, of a job if one was read."""
        job = {} if task is None else {"job": task.job.name, "job_sha256": task.digest.hex()}
        with _lines_missed():
            self._audit.note("refusal", {**job, **_said(caller, problem)}, durable=False)

    def _session(self, visit: _Visit, key: RunKey, task: Task, config: PartyConfig, dial: Dial) -> Session:
        return Session(
            self.name,
            task,
            visit.caller,
            config,
            Mesh(self.name, key, dial, config.limits.message_bytes),
            visit.requests,
            visit.emit,
            visit.unfinished,
            self._audit,
            self._ends,
            self,
        )

    async def _in_force(self) -> PartyConfig:
        """Return the configuration in force now."""
        if self._refresh is not None:
            await self._adopt(await self._refresh())
        return self._config

    async def _adopt(self, config: PartyConfig) -> Mapping[str, Any]:
        """Take a configuration over; return the changes. A change is noted before the change has an effect."""
        async with self._adopting:
            if config is self._config:
                return {}
            found = changes(self._config, config)
            await asyncio.to_thread(self._audit.note, "configuration", found)
            self._config = config
        log.setLevel(config.log_level.upper())
        return found


def _free_soon(_: object) -> None:
    """Free what an ended run leaves, a moment later: then nobody uses the run any more."""
    asyncio.get_running_loop().call_later(_MOMENT_S, free_ended)


def _noted(task: asyncio.Task[None], among: set[asyncio.Task[None]]) -> None:
    """Keep a background task in a set until the task is done."""
    among.add(task)
    task.add_done_callback(among.discard)


def _said(caller: str, problem: Problem) -> dict[str, Any]:
    """Return the facts of a line about a problem."""
    about = {"error": problem.error_id, "message": problem.message, "party": problem.named}
    return {"caller": caller, **about}


@contextmanager
def _lines_missed() -> Iterator[None]:
    """Log that a line of the audit could not be written."""
    try:
        yield
    except PartyError as error:
        log.error("%s [%s]", error.problem.message, error.problem.cause)


@dataclass
class _Visit:
    """Visit of a coordinator's stream, from the door on."""

    caller: str
    requests: Requests
    emit: Emit
    unfinished: ExitStack = field(default_factory=ExitStack)
    has_place: bool = False
    session: Session | None = None
    failing: bool = False
    """True once the job has failed, while the failure is being noted and told."""

    @property
    def goes_on(self) -> bool:
        """True if the work continues without its coordinator."""
        return self.failing or (self.session is not None and isinstance(self.session.state, BINDING + ENDS))


async def _tell(emit: Emit, problem: Problem) -> None:
    """Tell the coordinator why the job ended. A coordinator that does not read must not hold up the next job."""
    try:
        async with asyncio.timeout(_FAREWELL_S):
            await emit(control.Failed(problem))
    except TimeoutError:
        log.warning("the coordinator did not take the reason why the job ended")


def _failed_job(session: Session | None) -> FailedJob | None:
    """Return the job of a session, if known yet."""
    if session is None:
        return None
    task = session.task
    return FailedJob(task.job.name, task.digest.hex(), session.key.run.hex(), session.coordinator)


async def let_in(caller: str, before: PartyConfig, refresh: Refresh | None) -> PartyConfig:
    """Return the configuration in force for the caller's job; ``before``: the configuration until now.

    Called before a byte of the job is read: a caller without permission hears a single sentence, the same for any
    job.

    Raises PolicyError for a caller who may start no jobs here, and ConfigError for a permitted caller if the
    changed files are invalid.
    """
    try:
        config = await refresh() if refresh is not None else before
    except PartyError:
        _check_right(caller, before)
        raise
    _check_right(caller, config)
    return config


def _check_right(caller: str, config: PartyConfig) -> None:
    for objection in coordinator_rule(caller).objections(config.policy):
        raise PolicyError("policy-refused", objection, party=config.name, phase="admit")
