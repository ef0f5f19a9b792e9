"""`coordinator check`: the effects of a job on a single holder's table, before anything is made or charged."""

from __future__ import annotations

import click

from coordinator.arguments import source_of_job
from coordinator.owner_figures import tell_dates
from jobs.dp.budget import MOST_OUTSIDE, outside_words, settings
from jobs.errors import ConfigError
from jobs.file.job import require_confirmed
from jobs.synthetic.raw_order import order_words
from party.cli.console import format_option, say
from party.cli.job_file import JobFile, job_argument


@click.command()
@job_argument
@format_option
def check(job: JobFile) -> None:
    """Compare a single holder's table with the job; release nothing.

    Shows the rows and values that a run of JOB would leave out or move. Nothing is written or charged. The output is
    for the owner of the table.
    """
    task = job.load()
    table = task.job.table
    if table is None:
        raise ConfigError(
            "usage",
            "the job has several holders, and each holder has a table",
            remedy="each owner looks with `party check --job`",
        )
    source = source_of_job(job, table)
    tell_dates(source, task)
    rows = task.model.reading.load(source, task).rows
    lines = rows.words()
    if task.job.model.dp is not None:
        lines += [*outside_words(task, rows, source), *order_words(task, source)]
        share = settings(task.job).max_outside
        if names := rows.mostly_outside(MOST_OUTSIDE if share is None else share):
            lines.append(f"a run would be refused before a charge, for {', '.join(names)} (`max_outside`)")
    say(lines, rows.fields())
    require_confirmed(task.job)  # last, so that the owner reads the figures first
