"""`coordinator propose | status`: decisions of owners on a joint job."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from coordinator.arguments import config_option
from coordinator.proposing import Answers
from coordinator.proposing import propose as proposed
from jobs.errors import ConfigError
from jobs.file.job import require_confirmed
from jobs.task import Task
from party.cli.certificates import warn_of_certificates
from party.cli.console import format_option, say, set_up_logs
from party.cli.job_file import JobFile, job_argument
from party.owner.config import CoordinatorConfig, load_config


@click.command()
@job_argument
@config_option
@format_option
def propose(job: JobFile, config: Path) -> None:
    """Hand a joint job to its parties for their decisions.

    Each owner approves or denies the job. No table is read, and nothing is counted in a privacy ledger. `coordinator
    status` asks for the decisions.
    """
    task, answers = _asked(job, config, ask=False)
    _show(task, answers)
    answers.require_heard()


@click.command()
@job_argument
@config_option
@format_option
def status(job: JobFile, config: Path) -> None:
    """Ask the parties of a joint job for their decisions.

    Ends with exit code 4 unless all owners have approved the job.
    """
    task, answers = _asked(job, config, ask=True)
    _show(task, answers)
    answers.require_approved()


def _asked(job: JobFile, config: Path, *, ask: bool) -> tuple[Task, Answers]:
    set_up_logs("WARNING")
    task = job.load()
    if not task.job.roster:
        raise ConfigError(
            "usage",
            "the job has a single holder, who needs nobody's approval",
            remedy="run the job: coordinator run JOB --out DIR",
        )
    require_confirmed(task.job)
    settings = load_config(CoordinatorConfig, config)
    warn_of_certificates(settings)
    return task, asyncio.run(proposed(task, settings, ask=ask))


def _show(task: Task, answers: Answers) -> None:
    digest = task.digest.hex()
    lines = [f"{task.job.name}, job {digest}", *answers.lines()]
    say(lines, {"job": task.job.name, "job_sha256": digest, "parties": answers.states()})
