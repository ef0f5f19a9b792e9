"""Modes: ways to compute a job of a model, a partition and a level. Each model lists the modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonymize.tds import Observer
from crypto.rng import Rng
from jobs.data.tables import Table
from jobs.file.job import Job
from jobs.task import NO_RUN_INPUTS, Account, HiddenCosts, Mode, Model, Result, RunInputs, Task

if TYPE_CHECKING:
    from crypto.rounds import Rounds

SECONDS = HiddenCosts(seconds=None, links=True)
"""Withheld costs of a run whose seconds depend, however little, on the data."""


def no_protocol(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[Result]:
    """Stand for the protocol of a single holder, who runs no protocol. Raises LocalProtocolError."""
    from crypto.errors import LocalProtocolError

    raise LocalProtocolError(f"{me} is a single holder, who runs no protocol")


def mode_of(model: Model, job: Job) -> Mode:
    """Return the mode of a job. Raises ValueError if model and partition have no mode of the job's level."""
    level, known = model.level(job), {mode.level: mode for mode in model.modes(job.partition)}
    if level not in known:
        levels = " or ".join(known)
        raise ValueError(f"a {job.partition} {model.name} job has no level `{level}`: say {levels}")
    return known[level]


def protocol_of(
    task: Task,
    me: str,
    table: Table,
    rng: Rng,
    observer: Observer,
    account: Account,
    run_inputs: RunInputs = NO_RUN_INPUTS,
) -> Rounds[Result]:
    """Return the generator of party ``me`` for a job, under the party's account."""

    def run(shown: Observer) -> Rounds[Result]:
        result: Result = yield from task.mode.run(task, me, table, rng, shown)
        result = yield from task.mode.finish(task, me, table, result, run_inputs, rng, shown)
        return result

    return account.conducted(task, task.roster(me).others, run, observer)
