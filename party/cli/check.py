"""`party check`: the prospects of a start, and of a job."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from anonymize.errors import AnonymizeError
from jobs.description import description_fields, description_lines
from jobs.errors import ConfigError, PartyError, PolicyError, problem_of
from jobs.owner.objections import check_policy
from jobs.plain_columns import told_by_source
from jobs.reading import notes_on_dates
from jobs.task import Task
from party.cli.arguments import config_option
from party.cli.checks import (
    checks_of_certificates,
    checks_of_links,
    checks_of_peers,
    checks_of_relay,
    checks_of_state,
)
from party.cli.console import format_option, say
from party.cli.job_file import JobFile, job_option
from party.cli.records import check_ledger
from party.compiling import engine_line
from party.owner.config import (
    RELAYED,
    PartyConfig,
    certificate_warnings,
    credentials_of,
    load_config,
    peers_of,
    usable_peer,
)
from party.owner.identity import fingerprint, lax_files
from party.owner.in_force import running


@click.command()
@config_option
@job_option("Check table and policy against this job, too.")
@click.option("--coordinator", help="The coordinator the job would come from.")
@click.option(
    "--peers",
    "call",
    is_flag=True,
    help="Also call every peer that has an address in the configuration; with --job, the parties that we call in the "
    "job.",
)
@format_option
def check(config: Path, job: JobFile | None, coordinator: str | None, call: bool) -> None:
    """Check configuration, identity and table; start nothing.

    State folder and disk are looked at, too. Each check says PASS, WARN or FAIL, and what to do; a FAIL ends with
    exit code 1. With --peers, relay and peers are called: name, network, TLS, version, clock and round trip.

    With --job, the command also shows what the job asks of each party, what each party learns, and whether table
    and policy allow the job. The output has numbers of the table: for its owner alone.
    """
    settings = load_config(PartyConfig, config)
    own = fingerprint(credentials_of(settings).certificate)
    known = peers_of(settings)
    lines = [f"{settings.name}: configuration and identity are in order", f"  fingerprint  {own}"]
    lines += [f"  peer         {peer.name}  {peer.fingerprint}" for peer in known.values()]
    warnings = certificate_warnings(settings)
    checks = [*checks_of_certificates(settings, warnings), *checks_of_state(settings.state_dir)]
    task = None if job is None else job.load()
    if call:
        checks += checks_of_relay(settings)
        checks += checks_of_peers(settings) if task is None else checks_of_links(settings, task)
    lines += map(str, checks)
    daemon = running(settings, config)
    lines += _ways(settings)
    has_password = settings.proxy is not None and settings.proxy.basic
    lax = lax_files(
        [settings.tls.key, settings.state_dir, *([config] if has_password else [])],
        [config, settings.tls.certificate, *(entry.certificate for entry in settings.peers.values())],
    )
    lines += [f"  warning      {words}" for words in lax]
    lines.append(f"  daemon       {daemon or 'no daemon runs on this `state_dir`'}")
    lines.append(f"  circuits     {engine_line()}")
    lines.append(f"  columns      {', '.join(settings.source.column_names())}")
    lines += [f"  table        {words}" for words in settings.source.notes()]
    fields: dict[str, Any] = {"name": settings.name, "fingerprint": own, "lines": lines}
    fields |= {"warnings": warnings, "lax": lax, "checks": list(map(asdict, checks))}
    fields["daemon"] = asdict(daemon) if daemon else None
    problem = None
    if task is not None:
        fields["asked"] = description_fields(task)
        lines += description_lines(task)
        problem = _check_task(settings, task, coordinator, lines)
        lines += [] if call else ["  connections  not tested: see `party check --peers`"]
    say(lines, fields)
    if problem is not None:
        raise problem
    if failed := [each for each in checks if each.status == "FAIL"]:
        about = ", ".join(each.about for each in failed)
        raise ConfigError("check-failed", f"checks failed: {about}")


def _ways(settings: PartyConfig) -> list[str]:
    """Return lines on what lies between us and our peers."""
    lines = []
    if settings.proxy is not None:
        lines.append(f"  proxy        {settings.proxy}")
    if settings.relay is not None:
        through = [name for name, entry in settings.peers.items() if entry.address == RELAYED]
        lines.append(
            f"  relay        {settings.relay.name} at {settings.relay.address}; through the relay: "
            f"{', '.join(through) or 'nobody'}"
        )
    return lines


def _check_task(
    settings: PartyConfig, task: Task, coordinator: str | None, lines: list[str]
) -> Exception | None:
    """Load the table as the job would, and ask the policy; report both, return the first problem."""
    first: Exception | None = None
    table = None
    lines += [f"  table        {words}" for words in notes_on_dates(settings.source, task)]
    try:
        table = task.load(settings.source, settings.name)
        told = (*table.rows.words(), *task.model.for_owner(task, table))
        lines += [f"  table        {words}" for words in told]
        plain = [name for name in task.job.names("plain") if name in task.held_by(settings.name)]
        lines += [f"  published    {words}" for words in told_by_source(settings.source, plain)]
    except AnonymizeError as error:
        first = error
        lines.append(f"  table        {problem_of(error)}")
    caller = coordinator or next(iter(settings.policy.coordinators), "coordinator")
    try:
        check_policy(settings.policy, task, settings.name, caller)
        lines.append(f"  policy       allows the job from {caller}")
        needed = settings.policy.needs_approval(task.digest.hex())
        lines.append(f"  approval     {'needed: party show, party approve' if needed else 'not needed'}")
    except PolicyError as error:
        first = first or error
        problem = problem_of(error)
        lines.append(f"  policy       {problem.error_id}: {problem.own_message}")
    for peer in (each for each in (caller, *task.job.roster) if each != settings.name):
        try:
            usable_peer(settings, peer)
        except PartyError as error:
            first = first or error
            lines.append(f"  {peer:12} {problem_of(error)}")
    refused = check_ledger(settings, task, caller, table, lines)
    return first or refused
