"""`coordinator validate`."""

from __future__ import annotations

import click

from jobs.description import description_fields, description_lines
from party.cli.console import format_option, say
from party.cli.job_file import JobFile, job_argument


@click.command()
@job_argument
@format_option
def validate(job: JobFile) -> None:
    """Check a job file and its taxonomies, without data."""
    task = job.load()
    say([f"{job} is valid", *description_lines(task)], description_fields(task))
