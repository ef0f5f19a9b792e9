"""`party jobs | show | approve | deny`: what coordinators propose, and what the owner decides."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.errors import printable
from party.cli.arguments import config_option
from party.cli.console import format_option, say
from party.owner.approvals import Approvals, Decision
from party.owner.asking import Asked, at, proposals
from party.owner.config import PartyConfig, load_config
from party.owner.deciding import end_of, user

_job_argument = click.argument("job")
_of_option = click.option("--coordinator", help="Whose proposal, where several have one of that name.")


@click.command()
@config_option
@format_option
def jobs(config: Path) -> None:
    """List the jobs that coordinators propose."""
    settings = load_config(PartyConfig, config)
    found = [fields for _, fields in proposals(settings)]
    lines = [
        f"{each['standing']:8}  {each['came']}  {each['job']}  {each['job_sha256'][:12]}  from {each['coordinator']}"
        for each in found
    ]
    asked = "" if settings.policy.approval == "required" else "; nobody is asked (`policy.approval`)"
    say([f"{settings.name}: {len(found)} proposed{asked}", *(f"  {line}" for line in lines)], {"jobs": found})


@click.command()
@_job_argument
@_of_option
@config_option
@format_option
def show(job: str, coordinator: str | None, config: Path) -> None:
    """Say in plain language what a proposed job would do.

    JOB is its name, or how its hash begins.
    """
    settings = load_config(PartyConfig, config)
    approvals = Approvals(settings.state_dir)
    proposal = approvals.found(job, coordinator)
    asked = Asked(settings, proposal, proposal.binding_now(settings), approvals.last_approved(proposal))
    say(
        [
            *asked.lines,
            f"To decide: party approve {proposal.job_sha256[:12]}, or party deny it with --reason",
        ],
        asked.fields,
    )
    approvals.show(proposal, asked.binding)


@click.command()
@_job_argument
@click.option("--runs", type=click.IntRange(1), help="How many runs may begin; default any number.")
@click.option(
    "--until", "until", metavar="DATE", help="The last day (UTC) on which one may begin, as 2030-12-31."
)
@_of_option
@config_option
@format_option
def approve(job: str, runs: int | None, until: str | None, coordinator: str | None, config: Path) -> None:
    """Let a proposed job that was shown run.

    It binds the job, its parties, all certificates and this version of the program; where one of them changes, the
    job waits again. JOB is its name, or how its hash begins.
    """
    settings = load_config(PartyConfig, config)
    approvals = Approvals(settings.state_dir)
    proposal = approvals.found(job, coordinator)
    end = None if until is None else end_of(until)
    approvals.approve(proposal, proposal.binding_now(settings), Decision(user(), runs, end))
    much = "any number of runs" if runs is None else f"runs: {runs}"
    say(
        f"{proposal.job} ({proposal.job_sha256}) of {proposal.coordinator} is approved; {much}"
        + ("" if end is None else f", until {at(end)}"),
        {"job": proposal.job, "job_sha256": proposal.job_sha256, "standing": "approved"},
    )


@click.command()
@_job_argument
@click.option("--reason", required=True, help="What its coordinator is told.")
@_of_option
@config_option
@format_option
def deny(job: str, reason: str, coordinator: str | None, config: Path) -> None:
    """Deny a proposed job, with a reason that its coordinator reads.

    Also takes an approval back: from now on no run begins. JOB is its name, or how its hash begins.
    """
    settings = load_config(PartyConfig, config)
    approvals = Approvals(settings.state_dir)
    proposal = approvals.found(job, coordinator)
    approvals.deny(proposal, printable(reason), user())
    say(
        f"{proposal.job} ({proposal.job_sha256}) of {proposal.coordinator} is denied",
        {"job": proposal.job, "job_sha256": proposal.job_sha256, "standing": "denied"},
    )
