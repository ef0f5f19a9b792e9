"""`coordinator budget`: the charges in a single holder's privacy ledger."""

from __future__ import annotations

from pathlib import Path

import click

from coordinator.arguments import ledger_option, source_of_job
from coordinator.owner_figures import charged_fields, charged_words
from jobs.errors import ConfigError
from jobs.options import Options
from jobs.owner.ledger import charges
from party.cli.console import format_option, say
from party.cli.job_file import JobFile, job_argument
from party.cli.records import entry_fields
from party.owner.budget import entry_lines


@click.command()
@job_argument
@ledger_option
@click.option("--accept", is_flag=True, help="Accept the present ledger, even if runs are missing.")
@format_option
def budget(job: JobFile, ledger: Path | None, accept: bool) -> None:
    """Show the charges of a single holder's table.

    Shows the releases, too. JOB names the table; all jobs of the table are shown.
    """
    table = job.load().job.table
    if table is None:
        raise ConfigError(
            "usage",
            "the job has several holders, and each holder has a ledger",
            remedy="each owner looks with `party budget`",
        )
    source = source_of_job(job, table)
    own = Options(ledger=ledger).own_ledger(source)
    if accept:
        own.accept()
    entries = own.entries()
    charged = charges(entries)
    lines = [*charged_words(charged), *(line for entry in entries for line in entry_lines(entry))]
    say(lines, {**charged_fields(charged), "releases": [entry_fields(entry) for entry in entries]})
