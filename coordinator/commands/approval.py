"""`coordinator propose | status`: a job before it runs, and what its parties' owners say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from coordinator.approval import Answers, check_approved, proposed, standings
from coordinator.arguments import config_option, job_argument
from jobs.errors import ConfigError, PartyError, PolicyError
from jobs.loading import load_task
from jobs.task import Task
from party.cli.certificates import warn_of_certificates
from party.cli.console import format_option, say
from party.net.control import Standing
from party.owner.approvals import in_words
from party.owner.config import CoordinatorConfig, load_config

_AGAINST = ("denied", "refused")


@click.command()
@job_argument
@config_option
@format_option
def propose(job: Path, config: Path) -> None:
    """Hand a job to its parties, for their owners to decide on.

    Ends at once. Exit code 4 if one of them is against it.
    """
    task, settings = _joint(job, config)
    answers = asyncio.run(proposed(task, settings))
    _show(task, answers)
    for name, answer in answers.items():
        if isinstance(answer, PartyError):
            raise answer
        if answer.state in _AGAINST:
            raise PolicyError("policy-refused", f"{name} {in_words(answer.state, answer.reason)}", party=name)


@click.command()
@job_argument
@config_option
@format_option
def status(job: Path, config: Path) -> None:
    """Ask the parties of a job who has approved it.

    Exit code 0 if it can run, else 4.
    """
    task, settings = _joint(job, config)
    answers = asyncio.run(standings(task, settings))
    _show(task, answers)
    check_approved(answers)


def _joint(job: Path, config: Path) -> tuple[Task, CoordinatorConfig]:
    task = load_task(job)
    if not task.job.roster:
        raise ConfigError(
            "usage", "the job has a single holder: nobody is asked", remedy="coordinator run JOB --out DIR"
        )
    settings = load_config(CoordinatorConfig, config)
    warn_of_certificates(settings)
    return task, settings


def _show(task: Task, answers: Answers) -> None:
    fields = {
        name: asdict(answer) if isinstance(answer, Standing) else answer.problem.shared()
        for name, answer in answers.items()
    }
    say(
        [f"{task.job.name} ({task.digest.hex()})", *_lines(answers)],
        {"job": task.job.name, "job_sha256": task.digest.hex(), "parties": fields},
    )


def _lines(answers: Answers) -> Iterator[str]:
    for name, answer in answers.items():
        if isinstance(answer, Standing):
            reason = answer.reason if answer.state != "automatic" else ""
            yield f"  {name} {in_words(answer.state, reason)}"
        else:
            yield f"  {name} did not say: {answer.problem.error_id}: {answer.problem.message}"
