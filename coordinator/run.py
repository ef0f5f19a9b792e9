"""Runs of jobs: alone, with daemons, or with all parties in this process. All end in the same folder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeAlias

from anonymize.errors import AnonymizeError
from anonymize.tds import ROOT, Observer
from coordinator.completing import completed
from coordinator.conduct import Conductor
from coordinator.owner_figures import keep_own_of_all, tell_own_of_all
from coordinator.progress import CONSOLE, OWN_FIGURES, Turns, Voice
from coordinator.single import tell_noted
from crypto.local import run_local
from crypto.mixing import OpeningKey
from crypto.rng import SystemRng
from jobs.data.sources import Source
from jobs.data.tables import Table
from jobs.errors import JobFailed, PartyError, problem_of
from jobs.modes import protocol_of
from jobs.options import NO_OPTIONS, Noted, Options
from jobs.owner.account import Unaccounted
from jobs.page.own import own_page_of_folder
from jobs.release.folder import make_durable, new_folder, refuse_existing
from jobs.release.making import write_joint_release
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Result, RunInputs, Task
from party.costs import account_of
from party.net import control
from party.owner.config import CoordinatorConfig

log = logging.getLogger("coordinator")

Attempt: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Begins a run of a job."""


def once(attempt: Attempt) -> Coroutine[Any, Any, None]:
    """Make a single attempt, at once."""
    return attempt()


def run_joint(
    task: Task,
    config: CoordinatorConfig,
    out: Path,
    options: Options = NO_OPTIONS,
    voice: Voice = CONSOLE,
    attempts: Callable[[Attempt], Coroutine[Any, Any, None]] = once,
) -> Path:
    """Conduct a joint job with the parties' daemons, into a new folder. attempts: says when, and how often."""
    refuse_existing(out)
    completed(attempts(partial(conduct, task, config, out, options, voice)))
    return out


async def conduct(
    task: Task,
    config: CoordinatorConfig,
    out: Path,
    options: Options = NO_OPTIONS,
    voice: Voice = CONSOLE,
) -> None:
    """Conduct a joint job with the parties' daemons, into a new folder."""
    job = task.job
    columns = job.generalized
    with voice.progress(job.name, len(job.roster)) as progress:
        watch = Stopwatch(progress.phase)

        def on_progress(party: str, turn: control.Progress) -> None:
            if party != job.leader_name:  # every party reports the same turns
                return
            if turn.column in columns:
                progress.turn(turn.iteration, turn.column, turn.applied)
            elif turn.phase == ROOT and not turn.iteration:
                progress.root()
            elif not columns and not turn.column and turn.iteration:
                progress.sweep(turn.iteration)

        conductor = Conductor(task, config, on_progress)
        with watch.phase("connect"):
            await conductor.connect()
        async with conductor:
            with watch.phase("admit"):
                await conductor.submit()
            with watch.phase("run"):
                await conductor.compute()
            with watch.phase("collect"):
                collected = await conductor.collect()
            with new_folder(out) as folder:
                written = await asyncio.to_thread(
                    write_joint_release, task, folder, collected, options, watch
                )
                await asyncio.to_thread(make_durable, folder)
                refuse_existing(out)
                with watch.phase("deliver"):
                    silent = await conductor.deliver(folder, written.digest)
            for name in silent:
                log.warning("%s did not confirm keeping the release", name, extra={"job": job.name})
    tell_noted(Noted(again=collected.result.repeated), voice=voice)


def run_in_process(
    task: Task,
    sources: Mapping[str, Source],
    out: Path,
    options: Options = NO_OPTIONS,
    voice: Voice = CONSOLE,
) -> Path:
    """Run all parties of a joint job in this process: the same protocol, without daemons, network and ledgers."""
    job = task.job
    with voice.progress(job.name, len(job.roster)) as progress, new_folder(out) as folder:
        watch = Stopwatch(progress.phase)
        with watch.phase("read"):
            tables = {party: _read(task, sources[party], party) for party in job.roster}
        key = OpeningKey(SystemRng()) if job.deliver == "coordinator" else None
        recipient = None if key is None else key.public
        run_inputs = {party: RunInputs(sources[party], recipient) for party in job.roster}
        with watch.phase("run"):
            results = _results(task, tables, run_inputs, Turns(progress, job.generalized))
        parts = _parts(task, sources, tables, results)
        collected = Collected(results[job.leader_name], parts, {}, key=key)
        seen = write_joint_release(task, folder, collected, options, watch).seen
        with watch.phase(OWN_FIGURES):
            accounts = _accounts(tables, results)
            pages = {party: own_page_of_folder(task, table, folder, seen) for party, table in tables.items()}
        keep_own_of_all(folder, accounts, pages)
    tell_own_of_all(accounts, voice.note)
    return out


def _read(task: Task, source: Source, party: str) -> Table:
    """Read the table of a party. Raises JobFailed, with the party, for a table that cannot be used.

    The advice is for the owner: the user owns all tables.
    """
    try:
        return task.load(source, party)
    except (AnonymizeError, PartyError) as error:
        problem = problem_of(error)
        raise JobFailed(replace(problem.at(party, "load"), remedy=problem.advice(to_owner=True))) from error


def _accounts(tables: Mapping[str, Table], results: Mapping[str, Result]) -> dict[str, dict[str, Any]]:
    """Return each party's account for its owner, without the cost of the run."""
    ids = [frozenset(table.ids) for table in tables.values() if table.ids is not None]
    n_matched = len(reduce(frozenset.intersection, ids)) if ids else None
    return {party: account_of(table, n_matched, results[party]) for party, table in tables.items()}


def _results(
    task: Task, tables: Mapping[str, Table], run_inputs: Mapping[str, RunInputs], shown: Observer
) -> Mapping[str, Result]:
    """Run the protocol; the leader's turns are shown."""
    observers = {task.job.leader_name: shown}
    results, _ = run_local(
        {
            me: protocol_of(
                task, me, table, SystemRng(), observers.get(me, Observer()), Unaccounted(), run_inputs[me]
            )
            for me, table in tables.items()
        },
        record=False,
    )
    return results


def _parts(
    task: Task,
    sources: Mapping[str, Source],
    tables: Mapping[str, Table],
    results: Mapping[str, Result],
) -> dict[str, dict[str, bytes]]:
    """Return the parties' parts beside the result, by name and party."""
    parts: dict[str, dict[str, bytes]] = {}
    for me in task.job.roster:
        for name in task.parts_of(me) - {"result"}:
            content = task.mode.part(task, name, me, sources[me], tables[me], results[me], SystemRng())
            parts.setdefault(name, {})[me] = content
    return parts
