"""`coordinator validate`."""

from __future__ import annotations

from pathlib import Path

import click

from coordinator.arguments import job_argument
from jobs.description import description_fields, description_lines
from jobs.loading import load_task
from party.cli.console import format_option, say


@click.command()
@job_argument
@format_option
def validate(job: Path) -> None:
    """Check a job file and its taxonomies, without any data."""
    task = load_task(job)
    say([f"{job} is valid", *description_lines(task)], description_fields(task))
