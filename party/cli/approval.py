"""`party jobs | show | approve | deny`: the owner's decisions on proposed jobs."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from crypto.rng import SystemRng
from jobs.errors import MAX_SHARED_CHARS, ConfigError
from jobs.loading import read_task
from party.cli.arguments import config_option
from party.cli.console import format_option, say
from party.cli.moments import end_of
from party.owner.approvals import Approvals, Decision, Proposal, terms_of
from party.owner.asked import asked, decided
from party.owner.audit import Audit
from party.owner.config import PartyConfig, load_config
from party.owner.identity import in_words

_SHORT = 12
"""Digits of a job hash in lists."""

hash_argument = click.argument("digits", metavar="HASH")
coordinator_option = click.option("--coordinator", help="The coordinator, if several proposed the job.")


@dataclass(frozen=True)
class _Named:
    """Proposal that a command line names."""

    settings: PartyConfig
    approvals: Approvals
    proposal: Proposal
    now: datetime


def _named(config: Path, digits: str, coordinator: str | None) -> _Named:
    settings, now = load_config(PartyConfig, config), datetime.now(UTC)
    approvals = Approvals(settings.state_dir)
    return _Named(settings, approvals, approvals.named(digits, coordinator, now), now)


@click.command(name="jobs")
@config_option
@format_option
def jobs_command(config: Path) -> None:
    """List the proposed jobs, with our decisions."""
    settings, now = load_config(PartyConfig, config), datetime.now(UTC)
    found = Approvals(settings.state_dir).all(now)
    said = [_state(settings, each, now) for each in found]
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


def _state(settings: PartyConfig, proposal: Proposal, now: datetime) -> tuple[str, str]:
    """Return the state of a proposal, and the state in words."""
    decision = proposal.decision
    if decision is None:
        return "waiting", f"waits until {in_words(proposal.expires)}"
    task = read_task(proposal.bundle)
    standing = proposal.standing(terms_of(settings, task, proposal.coordinator), now)
    lapse = f"; waits again: {standing.own}" if standing.own else ""
    return standing.state, f"{decided(decision)}{lapse}"


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
    lines = [line for part in parts for line in (part.title, *(f"  {words}" for words in part.lines), "")]
    digest = named.proposal.job_sha256
    lines.append(f"To decide: party approve {digest[:_SHORT]}, or party deny {digest[:_SHORT]} --reason TEXT")
    say(lines, {"job_sha256": digest, "parts": [{"title": p.title, "lines": list(p.lines)} for p in parts]})


@click.command(name="approve")
@hash_argument
@click.option(
    "--runs", default=1, show_default=True, type=click.IntRange(1, 1_000_000), help="Runs that may begin."
)
@click.option(
    "--until", callback=end_of, metavar="DATE", help="Last day of the approval (UTC); default none."
)
@coordinator_option
@config_option
@format_option
def approve_command(
    digits: str, runs: int, until: datetime | None, coordinator: str | None, config: Path
) -> None:
    """Allow a proposed job to run.

    HASH is the job hash, or its first 8 digits or more. The approval holds for this job of this coordinator, and as
    long as the certificates of the others and the program stay the same.
    """
    named = _named(config, digits, coordinator)
    if until is not None and until <= named.now:
        raise ConfigError("usage", f"--until {in_words(until)} is over", remedy="name a later day")
    _decide(named, True, "", runs, until)


@click.command(name="deny")
@hash_argument
@click.option("--reason", required=True, help="Words for the coordinator.")
@coordinator_option
@config_option
@format_option
def deny_command(digits: str, reason: str, coordinator: str | None, config: Path) -> None:
    """Deny a proposed job.

    HASH is the job hash, or its first 8 digits or more."""
    if len(reason) > MAX_SHARED_CHARS:
        raise ConfigError(
            "usage", f"--reason has more than {MAX_SHARED_CHARS} characters", remedy="write less"
        )
    _decide(_named(config, digits, coordinator), False, reason, 0, None)


def _decide(named: _Named, approved: bool, reason: str, runs: int, until: datetime | None) -> None:
    """Keep a decision, and say so. Raises PartyError for a party without a usable certificate."""
    proposal = named.proposal
    terms = terms_of(named.settings, read_task(proposal.bundle), proposal.coordinator)
    decision = Decision(approved, named.now, _user(), terms, reason, runs, until)
    # The line comes first: a decision without a line would allow a run that nobody accounts for.
    Audit(named.settings.state_dir, SystemRng()).note(
        "decision",
        {
            "job": proposal.job,
            "job_sha256": proposal.job_sha256,
            "coordinator": proposal.coordinator,
            "user": decision.by,
            "approved": approved,
            "reason": reason,
            "runs": runs,
            "until": None if until is None else in_words(until),
        },
    )
    named.approvals.decide(proposal, decision)
    text = f"{proposal.job}, job {proposal.job_sha256}, from {proposal.coordinator}: {decided(decision)}"
    fields: dict[str, Any] = {
        "job_sha256": proposal.job_sha256,
        "coordinator": proposal.coordinator,
        "approved": approved,
        "runs": runs,
        "until": None if until is None else in_words(until),
    }
    say([text], fields)


def _user() -> str:
    """Return the operating system's name of the user, whatever the environment says."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
