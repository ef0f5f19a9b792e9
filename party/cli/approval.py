"""`party jobs | show | approve | deny`: the owner's decisions on proposed jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from jobs.errors import ConfigError
from jobs.loading import read_task
from party.cli.arguments import config_option
from party.cli.console import format_option, say
from party.cli.moments import end_of
from party.owner.approvals import Approvals, Decision, Proposal
from party.owner.asked import Part, asked, by_policy, decided, state_of
from party.owner.config import PartyConfig, load_config
from party.owner.deciding import MOST_RUNS, approve, deny, user
from party.owner.identity import in_words

_SHORT = 12
"""Digits of a job hash in lists."""
_DESPITE = "--despite-denial"

hash_argument = click.argument("digits", metavar="HASH")
coordinator_option = click.option("--coordinator", help="The coordinator, if several proposed the job.")


@dataclass(frozen=True)
class _Named:
    """Proposal that a command line names."""

    settings: PartyConfig
    proposal: Proposal
    now: datetime

    @property
    def denial(self) -> Decision | None:
        """Return the denial of the job, or of the same job as another coordinator proposed the job."""
        others = Approvals(self.settings.state_dir).same(self.proposal, self.now)
        return next((each.denial for each in (self.proposal, *others) if each.denial is not None), None)


def _named(config: Path, digits: str, coordinator: str | None) -> _Named:
    settings, now = load_config(PartyConfig, config), datetime.now(UTC)
    return _Named(settings, Approvals(settings.state_dir).named(digits, coordinator, now), now)


@click.command(name="jobs")
@config_option
@format_option
def jobs_command(config: Path) -> None:
    """List the proposed jobs, with our decisions."""
    settings, now = load_config(PartyConfig, config), datetime.now(UTC)
    found = Approvals(settings.state_dir).all(now)
    said = [state_of(settings, each, now) for each in found]
    lines = [
        f"{each.job_sha256[:_SHORT]}  {each.job}  from {each.coordinator}  {state}"
        for each, (_, state) in zip(found, said, strict=True)
    ]
    fields = [
        {
            "job_sha256": each.job_sha256,
            "job": each.job,
            "coordinator": each.coordinator,
            "proposed": in_words(each.proposed),
            "state": state,
            "words": words,
        }
        for each, (state, words) in zip(found, said, strict=True)
    ]
    say(lines or f"{settings.name}: no coordinator has proposed a job", {"jobs": fields})


@click.command(name="show")
@hash_argument
@coordinator_option
@config_option
@format_option
def show_command(digits: str, coordinator: str | None, config: Path) -> None:
    """Say in plain words what a proposed job asks of us.

    HASH is the job hash, or its first 8 digits or more. Shows numbers of our own ledger: run this command where only
    the owner of the table reads along.
    """
    named = _named(config, digits, coordinator)
    parts = asked(named.settings, named.proposal, named.now)
    lines = [line for part in parts for line in (_title(part), *(f"  {words}" for words in part.lines), "")]
    digest = named.proposal.job_sha256
    lines += [_title(part) for part in parts if part.warning]
    approving = digest[:_SHORT] if named.denial is None else f"{digest[:_SHORT]} {_DESPITE}"
    lines.append(f"To decide: party approve {approving}, or party deny {digest[:_SHORT]} --reason TEXT")
    fields = [{"title": p.title, "lines": list(p.lines), "warning": p.warning} for p in parts]
    say(lines, {"job_sha256": digest, "parts": fields})


def _title(part: Part) -> str:
    return f"WARNING: {part.title}" if part.warning else part.title


@click.command(name="approve")
@hash_argument
@click.option(
    "--runs", default=1, show_default=True, type=click.IntRange(1, MOST_RUNS), help="Runs that may begin."
)
@click.option(
    "--until", callback=end_of, metavar="DATE", help="Last day of the approval (UTC); default none."
)
@click.option(_DESPITE, "despite_denial", is_flag=True, help="Approve a job that was denied.")
@coordinator_option
@config_option
@format_option
def approve_command(
    digits: str,
    runs: int,
    until: datetime | None,
    despite_denial: bool,
    coordinator: str | None,
    config: Path,
) -> None:
    """Allow a proposed job to run.

    HASH is the job hash, or its first 8 digits or more. The approval holds for this job of this coordinator, and as
    long as the certificates of the others and the program stay the same. A denied job needs --despite-denial.
    """
    named = _named(config, digits, coordinator)
    denial = named.denial
    if denial is not None and not despite_denial:
        chosen = "" if coordinator is None else f" --coordinator {coordinator}"
        raise ConfigError(
            "usage",
            f"the job was {decided(denial)}",
            remedy=f"to replace the denial: party approve {digits}{chosen} {_DESPITE}",
        )
    decision = approve(named.settings, named.proposal, user(), named.now, runs=runs, until=until)
    policy = by_policy(named.settings, named.proposal, read_task(named.proposal.bundle))
    _say_decided(named.proposal, decision, policy)


@click.command(name="deny")
@hash_argument
@click.option("--reason", required=True, help="Words for the coordinator.")
@coordinator_option
@config_option
@format_option
def deny_command(digits: str, reason: str, coordinator: str | None, config: Path) -> None:
    """Deny a proposed job.

    HASH is the job hash, or its first 8 digits or more.
    """
    named = _named(config, digits, coordinator)
    _say_decided(named.proposal, deny(named.settings, named.proposal, user(), named.now, reason))


def _say_decided(proposal: Proposal, decision: Decision, *more: str) -> None:
    text = f"{proposal.job}, job {proposal.job_sha256}, from {proposal.coordinator}: {decided(decision)}"
    before = () if proposal.decision is None else (f"replaces: {decided(proposal.decision)}",)
    fields = {
        "job_sha256": proposal.job_sha256,
        "coordinator": proposal.coordinator,
        "approved": decision.approved,
        "runs": decision.runs,
        "until": None if decision.until is None else in_words(decision.until),
    }
    say([text, *(f"  {words}" for words in (*before, *more))], fields)
