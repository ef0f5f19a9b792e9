"""`coordinator verify`."""

from __future__ import annotations

from pathlib import Path

import click

from coordinator.arguments import DEFAULT_CONFIG
from coordinator.verify import verify_folder
from party.cli.arguments import PATH
from party.cli.console import format_option, say
from party.cli.job_file import JobFile, job_argument
from party.owner.config import CoordinatorConfig, load_config
from party.owner.signing import earlier_certificates, installed_certificates


@click.command()
@job_argument
@click.argument("out", type=PATH)
@click.option(
    "--release",
    metavar="DIGEST",
    help="The digest of the release that a party keeps; verify fails if the folder has a different digest.",
)
@click.option(
    "--config",
    "-c",
    type=PATH,
    help=f"Configuration with the parties' certificates; default {DEFAULT_CONFIG}, if the file exists.",
)
@format_option
def verify(job: JobFile, out: Path, release: str | None, config: Path | None) -> None:
    """Check a released table against its job.

    OUT is a result folder or a CSV. Counts the requirement again from the rows, compares the bytes of every file of a
    folder with its digests, and checks what the parties signed.
    """
    if config is None and DEFAULT_CONFIG.is_file():
        config = DEFAULT_CONFIG
    settings = load_config(CoordinatorConfig, config) if config else None
    known = installed_certificates(settings) if settings else {}
    earlier = earlier_certificates(settings) if settings else {}
    checked = verify_folder(job.load(), out, release, known, earlier)
    say(checked.text, checked.fields)
