"""Patience of a coordinator: it waits for approvals and for its turn, and tries again after a failure on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from coordinator.completing import completed
from coordinator.proposing import Answers, propose
from coordinator.run import conduct
from coordinator.voice import CONSOLE, Note, Voice
from jobs.data.counted import counted
from jobs.errors import CATALOGUE, ConfigError, Exit, PartyError
from jobs.file.fields import duration_of, seconds_of
from jobs.options import NO_OPTIONS, Options
from jobs.release.folder import refuse_existing
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


@dataclass(frozen=True)
class Patience:
    """Delays and failures that a coordinator accepts on the way to a release.

    wait_s:   seconds to wait in all, for the owners' approvals and for other jobs to end.
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
    refuse_existing(out)
    completed(
        _conduct(task, config, patience, lambda: conduct(task, config, out, options, voice), voice.note)
    )
    return out


async def _conduct(
    task: Task,
    config: CoordinatorConfig,
    patience: Patience,
    attempt: Callable[[], Awaitable[None]],
    note: Note,
) -> None:
    """Make attempts until one succeeds, or until the patience is over."""
    until = asyncio.get_running_loop().time() + patience.wait_s
    number, most = 1, 1 + patience.retries
    while True:
        try:
            if not patience.wait_s:
                await attempt()
                return
            await _approvals(task, config, until, note)
            async with _turns(task, config, until, note):
                await attempt()
            return
        except PartyError as error:
            problem = error.problem
            if problem.error_id == "busy" and asyncio.get_running_loop().time() < until:
                await asyncio.sleep(PAUSE_S)  # another job came between: wait for the next turn
                continue
            if number > 1:
                note(f"attempt {number} of {most} failed", event="attempt", attempt=number, most=most)
            if CATALOGUE[problem.error_id].exit_code != Exit.UNREACHABLE or number == most:
                raise
            pause_s = min(PAUSE_S * 2 ** (number - 1), LONGEST_PAUSE_S)
            number += 1
            said = f"{problem.text(to_owner=False)}; attempt {number} of {most} in {pause_s:g} s"
            note(said, event="retry", attempt=number, most=most, error=problem.error_id)
            await asyncio.sleep(pause_s)


async def _approvals(task: Task, config: CoordinatorConfig, until: float, note: Note) -> None:
    """Hand the job to its parties, and wait until all owners have approved it.

    Raises JobFailed for a denial, for a party that gives no decision, and when the time is over.
    """
    answers, told = await propose(task, config, ask=False), ""
    while True:
        answers.require_heard()
        waiting = _not_approved(answers)
        if not waiting or asyncio.get_running_loop().time() + ASK_S > until:
            answers.require_approved()
            return
        if waiting != told:
            note(f"waits for the approval of {waiting}", event="approval", parties=waiting.split(", "))
            told = waiting
        await asyncio.sleep(ASK_S)
        answers = await propose(task, config, ask=True)


def _not_approved(answers: Answers) -> str:
    return ", ".join(name for name, state in answers.states().items() if state != "approved")


@asynccontextmanager
async def _turns(task: Task, config: CoordinatorConfig, until: float, note: Note) -> AsyncIterator[None]:
    """Wait for the turn at every party, and keep the turns during the block.

    The parties come one after the other, by name: so two coordinators never wait for each other's parties. Raises
    PartyError (busy) when the time is over.
    """
    async with AsyncExitStack() as stack:
        calls = Calls(config, credentials_of(config), peers_of(config))
        stack.push_async_callback(calls.close)
        for name in sorted(task.job.roster):
            stream = await calls.open_wait(name, address_of(config, task.job, name))
            stack.push_async_callback(stream.close)
            signs = asyncio.create_task(_still_here(stream))
            stack.push_async_callback(stopped, signs)
            await _turn(name, stream, until, note)
        yield


async def _turn(name: str, stream: WaitStream, until: float, note: Note) -> None:
    """Wait until no job is before ours at a party. Raises PartyError (busy) when the time is over."""
    ahead: int | None = None
    try:
        async with asyncio.timeout_at(until):
            while (ahead := await stream.read()) != 0:
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
