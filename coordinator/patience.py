"""Patience of a coordinator: it waits for approvals and for its turn, and tries again after a failure on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coordinator.progress import CONSOLE, Note, Voice
from coordinator.proposing import Answers, propose
from coordinator.run import Attempt, run_joint
from jobs.data.counted import counted
from jobs.errors import CATALOGUE, ConfigError, Exit, PartyError
from jobs.file.fields import duration_of, seconds_of
from jobs.options import NO_OPTIONS, Options
from jobs.task import Task
from party.net.client import Calls, WaitStream
from party.net.waiting import stopped
from party.owner.config import CoordinatorConfig, address_of, credentials_of, peers_of

SIGN_S = 5.0
"""Seconds between two signs that a coordinator still waits (:data:`party.place.SILENCE_S`)."""
ASK_S = 5.0
"""Seconds between two questions for the owners' decisions."""
PAUSE_S = 1.0
"""Pause before the second attempt. Each further pause is twice as long."""
LONGEST_PAUSE_S = 60.0
_ABSENT = frozenset({"peer-unreachable", "peer-lost", "peer-timeout", "busy"})
"""Errors of a party that is away, restarts, or has many waiting jobs, before a job has begun."""


@dataclass(frozen=True)
class Patience:
    """Delays and failures that a coordinator accepts on the way to a release.

    wait_s:   seconds to wait in all: for absent parties, the owners' approvals, and other jobs to end. The time of
              a run does not count.
    retries:  further attempts after failures with exit code 3. Each attempt is a run of its own at every party, with
              the limits and the ledger of the party.
    """

    wait_s: float = 0
    retries: int = 0


def patience_of(wait: str | None, retries: int) -> Patience:
    """Return the patience that a user asks for. wait: a time such as 30m. Raises ConfigError."""
    try:
        return Patience(0 if wait is None else seconds_of(duration_of(wait)), retries)
    except ValueError as error:
        raise ConfigError("usage", f"--wait {wait}: {error}") from None


def run_patiently(
    task: Task,
    config: CoordinatorConfig,
    out: Path,
    patience: Patience,
    options: Options = NO_OPTIONS,
    voice: Voice = CONSOLE,
) -> Path:
    """Conduct a joint job with the parties' daemons, into a new folder. Raises the error of the last attempt."""

    async def attempts(attempt: Attempt) -> None:
        if patience.wait_s:
            attempt = partial(Readiness(task, config, patience.wait_s, voice.note).awaited, attempt)
        await _retried(attempt, patience.retries, voice.note)

    return run_joint(task, config, out, options, voice, attempts)


async def _retried(attempt: Attempt, retries: int, note: Note) -> None:
    """Make attempts until one succeeds or fails for good. Raises PartyError of the last attempt.

    A party that is busy after a failed attempt may still be ending the run of that attempt: it is asked again.
    """
    most = 1 + retries
    for number in range(1, most + 1):
        try:
            await attempt()
            return
        except PartyError as error:
            problem = error.problem
            if number > 1:
                note(f"attempt {number} of {most} failed", event="attempt", attempt=number, most=most)
            passes = CATALOGUE[problem.error_id].exit_code == Exit.UNREACHABLE
            passes = passes or (problem.error_id == "busy" and number > 1)
            if not passes or number == most:
                raise
        pause_s = min(PAUSE_S * 2 ** (number - 1), LONGEST_PAUSE_S)
        said = f"{problem.text(to_owner=False)}; attempt {number + 1} of {most} in {pause_s:g} s"
        party = {} if problem.named is None else {"party": problem.named}
        note(said, event="retry", attempt=number + 1, most=most, error=problem.error_id, **party)
        await asyncio.sleep(pause_s)


@dataclass(frozen=True)
class _Obstacle:
    """Reason that a job cannot begin yet. error: for the user if the wait ends here."""

    error: PartyError
    said: str
    event: str
    parties: list[str]


class Readiness:
    """Readiness of all parties for a job: the owners' approvals, and the turn at every party."""

    def __init__(self, task: Task, config: CoordinatorConfig, wait_s: float, note: Note) -> None:
        """``wait_s``: seconds to wait in all."""
        self._task, self._config, self._note = task, config, note
        self._left_s = wait_s

    async def awaited(self, attempt: Attempt) -> None:
        """Make an attempt when the parties are ready. If another job comes between, wait for the next turn.

        Raises PartyError of the attempt, for a denial, and when the time is over.
        """
        while True:
            async with AsyncExitStack() as turns:
                async with self._waiting() as until:
                    await self._ready(turns, until)
                try:
                    await attempt()
                    return
                except PartyError as error:
                    if error.problem.error_id != "busy" or not self._left_s:
                        raise
            async with self._waiting():
                await asyncio.sleep(PAUSE_S)

    @asynccontextmanager
    async def _waiting(self) -> AsyncIterator[float]:
        """Take the time of the block from the time left; give the time at which nothing is left."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._left_s
        try:
            yield until
        finally:
            self._left_s = max(0, until - clock())

    async def _ready(self, turns: AsyncExitStack, until: float) -> None:
        """Wait until all owners have approved the job, and for the turn at every party; the turns are put on a stack.

        The wait goes on while a party restarts, or cannot be reached for a while. The first call that all parties
        hear hands the job over; later calls ask for the decisions alone. If an approval has ended meanwhile, the job
        is handed over again. Raises PartyError for a denial, and the last obstacle when the time is over.
        """
        note, handed_over = _unrepeated(self._note), False
        while True:
            try:
                answers = await propose(self._task, self._config, ask=handed_over)
                answers.require_heard()
                handed_over = "unknown" not in answers.states().values()
                obstacle = _unapproved(answers)
                if obstacle is None:
                    await turns.enter_async_context(self._turns(until, note))
                    return
            except PartyError as error:
                obstacle = _absence(error)
                handed_over = False  # the proposal may be lost, too
            if asyncio.get_running_loop().time() + ASK_S > until:
                raise obstacle.error
            note(obstacle.said, event=obstacle.event, parties=obstacle.parties)
            await asyncio.sleep(ASK_S)

    @asynccontextmanager
    async def _turns(self, until: float, note: Note) -> AsyncIterator[None]:
        """Wait for the turn at every party, and keep the turns during the block.

        The parties come one after the other, by name: so two coordinators never wait for each other's parties.
        Raises PartyError (busy) when the time is over.
        """
        config, job = self._config, self._task.job
        async with AsyncExitStack() as stack:
            calls = Calls(config, credentials_of(config), peers_of(config))
            stack.push_async_callback(calls.close)
            for name in sorted(job.roster):
                stream = await calls.open_wait(name, address_of(config, job, name))
                stack.push_async_callback(stream.close)
                signs = asyncio.create_task(_still_here(stream))
                stack.push_async_callback(stopped, signs)
                await _turn(name, stream, until, note)
            yield


def _unapproved(answers: Answers) -> _Obstacle | None:
    """Return the missing approvals, or None. answers: of parties that all gave a decision, none of them a denial."""
    try:
        answers.require_approved()
    except PartyError as error:
        waiting = [name for name, state in answers.states().items() if state != "approved"]
        return _Obstacle(error, f"waits for the approval of {', '.join(waiting)}", "approval", waiting)
    return None


def _absence(error: PartyError) -> _Obstacle:
    """Return a failure as an absence. Raises the error itself if no party is absent."""
    problem = error.problem
    if problem.error_id not in _ABSENT:
        raise error
    return _Obstacle(error, f"waits: {problem.message}", "absent", [problem.party or ""])


def _unrepeated(note: Note) -> Note:
    """Return a note function that passes over a text equal to the last."""
    last = ""

    def unrepeated(text: str, **fields: object) -> None:
        nonlocal last
        if text != last:
            last = text
            note(text, **fields)

    return unrepeated


async def _turn(name: str, stream: WaitStream, until: float, note: Note) -> None:
    """Wait until no job is before ours at a party. Raises PartyError (busy) when the time is over.

    Without time left the party still has ``ASK_S`` to tell our first place: a free place is taken.
    """
    ahead: int | None = None
    try:
        async with asyncio.timeout_at(max(until, asyncio.get_running_loop().time() + ASK_S)) as limit:
            while (ahead := await stream.read()) != 0:
                limit.reschedule(until)
                if ahead is None:
                    raise PartyError("busy", f"{name} ended the wait", party=name)
                jobs = counted(ahead, "job", "jobs")
                note(f"waits at {name}: {jobs} ahead", event="queued", party=name, ahead=ahead)
    except TimeoutError:
        left = "" if ahead is None else f": {counted(ahead, 'job is', 'jobs are')} ahead"
        raise PartyError(
            "busy",
            f"{name} runs other jobs{left}",
            party=name,
            remedy="wait longer (`--wait`)",
        ) from None


async def _still_here(stream: WaitStream) -> None:
    """Say again and again that we still wait. A broken stream is noticed by who reads it, or by the job."""
    with suppress(PartyError):
        while True:
            await stream.write(None)
            await asyncio.sleep(SIGN_S)
