"""`party budget | problems | verify`: the owner's records about a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from anonymize.errors import DataError
from jobs.data.tables import Table
from jobs.errors import PartyError, json_object
from jobs.loading import MADE
from jobs.owner.ledger import STATE_WORDS, Entry
from jobs.release.commitment import OPENINGS, kept_opening
from jobs.release.csv import REPORT
from jobs.release.report import SIGNATURES
from jobs.release.signatures import read_signatures
from jobs.release.sums import SUMS, check_folder
from jobs.task import Task
from party.cli.arguments import PATH, config_option
from party.cli.console import format_option, say
from party.cli.job_file import JobFile, job_argument
from party.owner.accounts import accounts, words_of
from party.owner.budget import answer_line, budget, delivery_words, entry_lines
from party.owner.config import PartyConfig, credentials_of, load_config
from party.owner.in_force import running
from party.owner.left import left
from party.owner.problems import ProblemBook
from party.owner.signing import check_signed, der_of, earlier_certificates, installed_certificates


@click.command(name="budget")
@click.option("--accept", is_flag=True, help="Accept the present ledger, even if runs are missing.")
@config_option
@format_option
def budget_command(config: Path, accept: bool) -> None:
    """Show charges, releases, and the privacy budget left."""
    settings = load_config(PartyConfig, config)
    if accept:
        settings.ledger.accept()
    found = budget(settings)
    first, *others = found.words()
    lines = [f"{settings.name}: {first}", *(f"  {words}" for words in others)]
    for entry in found.entries:
        lines += entry_lines(entry)
    lines += [f"  {answer_line(answer)}" for answer in found.given]
    counted = {key: value for each in found.spent for key, value in each.fields.items()}
    listed = [asdict(answer) | {"means": answer.words} for answer in found.given]
    releases = [entry_fields(entry) for entry in found.entries]
    say(lines, {**counted, **found.answers.fields(), "releases": releases, "answers": listed})


def entry_fields(entry: Entry) -> dict[str, Any]:
    """Return an entry of a ledger as fields for programs."""
    return {
        **asdict(entry),
        "epsilon": str(entry.epsilon),
        "charged": str(entry.charged),
        "means": STATE_WORDS[entry.state],
    }


_last_option = click.option(
    "--last", default=5, show_default=True, type=click.IntRange(1), help="How many, the newest last."
)


@click.command(name="problems")
@config_option
@_last_option
@format_option
def problems_command(config: Path, last: int) -> None:
    """Show why jobs failed here, to the owner alone.

    Shows rows, values and paths, which are in no log.

    Run this command where only the owner of the table reads along.
    """
    settings = load_config(PartyConfig, config)
    found = ProblemBook(settings.state_dir).entries(last)
    lines = [line for path, fields in found for line in _problem_lines(path, fields)]
    say(
        lines or f"{settings.name}: no problem is on record",
        {"problems": [fields | {"file": str(path)} for path, fields in found]},
    )


@click.command(name="accounts")
@config_option
@_last_option
@format_option
def accounts_command(config: Path, last: int) -> None:
    """Show the owner the effect of releases on our rows.

    Also shows inferences of readers about our rows, as far as tested. Shows numbers of our own table: run this
    command where only the owner of the table reads along.
    """
    settings = load_config(PartyConfig, config)
    found = accounts(settings.state_dir, last, lost=running(settings, config) is None)
    lines = [line for path, fields in found for line in _account_lines(path, fields)]
    say(
        lines or f"{settings.name}: no account of a release is on record",
        {"accounts": [fields | {"file": str(path)} for path, fields in found]},
    )


def _account_lines(path: Path, fields: dict[str, Any]) -> list[str]:
    asked = f"run {str(fields.get('run'))[:12]}, asked by {fields.get('coordinator')}"
    return [
        f"{fields.get('job')}  ({asked})",
        *(f"  {words}" for words in words_of(fields)),
        f"  file: {path}",
    ]


def _problem_lines(path: Path, fields: dict[str, Any]) -> list[str]:
    where = f"job {fields.get('job')}, asked by {fields.get('coordinator', 'nobody known')}"
    shown = [("cause", "cause"), ("private", "detail"), ("place", "in our code"), ("remedy", "what to do")]
    return [
        f"{fields.get('time')}  {fields.get('error')}: {fields.get('message')}  ({where})",
        *(f"  {words}: {fields[key]}" for key, words in shown if fields.get(key)),
        f"  file: {path}",
    ]


@click.command(name="verify")
@click.argument("folder", type=PATH)
@config_option
@format_option
def verify_command(folder: Path, config: Path) -> None:
    """Compare a result folder with the releases we agreed on.

    Compares byte for byte, and checks the signatures of the parties.
    """
    settings = load_config(PartyConfig, config)
    if not (folder / SUMS).is_file():
        raise PartyError(
            "file-missing", f"there is no {SUMS} in {folder}", remedy="name the folder of a release"
        )
    release = check_folder(folder, (*MADE, REPORT)).hex()
    for entry in settings.ledger.entries():
        for delivery in entry.deliveries:
            if delivery.release == release:
                text = f"{folder}: job {entry.job}, {delivery_words(delivery.agreed)} {delivery.delivered}"
                compared = _compared(settings, entry, folder)
                by = [f"{name}{_earlier(until)}" for name, until in compared.items()]
                signed = f"  signed  {', '.join(by)}" if compared else "  not signed"
                fields = {"job": entry.job, **asdict(delivery), "signed": list(compared)}
                say(f"{text}\n  digest  {release}\n{signed}", fields)
                return
    raise PartyError(
        "verification-failed",
        f"{settings.name} keeps no release with the digest of {folder}",
        remedy="compare with the folders under `releases` of our state; use no different files",
    )


def _earlier(until: str) -> str:
    return f" (an earlier certificate, installed here until {until})" if until else ""


def _compared(settings: PartyConfig, entry: Entry, folder: Path) -> dict[str, str]:
    """Return the signers of a report's run, by certificates that are or were installed here.

    The value is the last day of an earlier certificate, else empty. The result is empty if nobody signed.

    Raises PartyError for an invalid signature.
    """
    report = _report(folder)
    if SIGNATURES not in report:
        return {}
    job = bytes.fromhex(entry.job_sha256)
    return check_signed(
        read_signatures(report[SIGNATURES], job, report.get("parties", ())),
        _certificates(settings),
        earlier_certificates(settings),
    )


def _certificates(settings: PartyConfig) -> dict[str, bytes]:
    """Return the installed certificates, and our own: DER, by name."""
    return installed_certificates(settings) | {settings.name: der_of(credentials_of(settings).certificate)}


@click.command(name="opening")
@job_argument
@click.argument("folder", type=PATH)
@config_option
@format_option
def opening_command(job: JobFile, folder: Path, config: Path) -> None:
    """Check whether our table is the table of a signed run.

    Reads the table as JOB says, and compares the table with our commitment before the run of the report in FOLDER.
    The salt is in `openings` of our state. Plain columns are not covered.
    """
    settings, task = load_config(PartyConfig, config), job.load()
    report = _report(folder)
    if report.get("job_sha256") != task.digest.hex():
        raise PartyError(
            "verification-failed",
            f"the report in {folder} is about a different job than {job}",
            remedy="name the job file of the run",
        )
    signed = read_signatures(report.get(SIGNATURES), task.digest, task.job.roster)
    check_signed(signed, _certificates(settings), earlier_certificates(settings))
    statement = signed[0].statement
    opening = kept_opening(settings.state_dir / OPENINGS, statement.run)
    if statement.commitments.get(settings.name) != opening.commitment.hex():
        raise PartyError(
            "verification-failed", "the report has a different commitment of ours than our state"
        )
    if not opening.fits(task.load(settings.source, settings.name)):
        message = f"the table is not the table that {settings.name} committed to in run {statement.run}"
        raise PartyError("verification-failed", message, remedy="restore the table of the run")
    text = f"{settings.name}: the table, as {task.job.name} reads it, was committed to in run {statement.run}"
    say(text, {"run": statement.run, "commitment": opening.commitment.hex(), "fits": True})


def _report(folder: Path) -> dict[str, Any]:
    path = folder / REPORT
    if not path.is_file():
        raise PartyError(
            "file-missing", f"there is no {REPORT} in {folder}", remedy="name the folder of a release"
        )
    return json_object(path.read_bytes()) or {}


def check_ledger(
    settings: PartyConfig, task: Task, coordinator: str, table: Table | None, lines: list[str]
) -> PartyError | DataError | None:
    """Ask the privacy ledger for permission of a job; add a line on the rest. Return the problem, if any."""
    said, error = left(settings, task, coordinator, table)
    lines += [f"  {'' if i else 'ledger':12} {words}" for i, words in enumerate(said)]
    return error
