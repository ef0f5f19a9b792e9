"""`party audit verify | export | heads`: what happened here, and whether the lines are as they were written."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from party.cli.arguments import config_option
from party.cli.console import format_option, say
from party.owner.audit import FOLDER
from party.owner.audit_check import check, compare, heads_of, lines_of, read_held
from party.owner.chain import Line
from party.owner.config import PartyConfig, load_config

_DAY, _MOMENT = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"
_COLUMNS = ("n", "at", "what", "job", "run", "fields")


@click.group(name="audit")
def audit() -> None:
    """What happened here, line by line, and whether the lines hold."""


@audit.command(name="verify")
@click.option(
    "--heads",
    type=click.Path(path_type=Path),
    multiple=True,
    help="What another party holds of us, as its `party audit heads` wrote it.",
)
@config_option
@format_option
def verify(heads: Sequence[Path], config: Path) -> None:
    """Check that every line follows the one before it.

    And that the ends which other parties hold, as they told our daemon and as the files of --heads say, are in the
    chain. Names the first line that is not as it was written.
    """
    settings = load_config(PartyConfig, config)
    found = check(settings.state_dir / FOLDER)
    told = [held for path in heads for held in read_held(path, settings.name)]
    n_told, n_given = compare(found, found.held), compare(found, told)
    last = f"; the last one is of {found.last_at}" if found.last_at else ""
    lines = [
        f"{settings.name}: lines: {found.head.n}, each follows the one before it{last}",
        f"  end          {found.head.digest}",
        f"  in it        {n_told} ends that others told us they hold, {n_given} of those that files name",
        *(f"  note: {note}" for note in found.notes),
    ]
    fields = {"lines": found.head.n, "end": found.head.digest, "told": n_told, "given": n_given}
    say(lines, {**fields, "notes": found.notes})


@audit.command(name="export")
@click.option(
    "--from", "since", type=click.DateTime([_DAY, _MOMENT]), help="UTC; from this day or moment on."
)
@click.option(
    "--to", "until", type=click.DateTime([_DAY, _MOMENT]), help="UTC; to the end of this day, or before."
)
@config_option
@format_option
def export(since: datetime | None, until: datetime | None, config: Path) -> None:
    """Write the lines of some days as CSV.

    Ends with an error, and writes nothing, if the chain is broken.
    """
    settings = load_config(PartyConfig, config)
    first, end = _moment(since), _moment(_after(until) if until else None)
    found = [
        line
        for line in lines_of(settings.state_dir / FOLDER)
        if (first is None or line.at >= first) and (end is None or line.at < end)
    ]
    say(_as_csv(found), {"lines": [_fields(line) for line in found]})


def _after(until: datetime) -> datetime:
    """The first moment that is not wanted any more: a day is wanted whole."""
    whole_day = not (until.hour or until.minute or until.second)
    return until + timedelta(days=1) if whole_day else until


def _moment(at: datetime | None) -> str | None:
    """As lines have it, so that texts compare as times do."""
    return None if at is None else at.replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _fields(line: Line) -> dict[str, Any]:
    return {"n": line.n, "at": line.at, "what": line.what, **line.fields}


def _as_csv(lines: Sequence[Line]) -> list[str]:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for line in lines:
        rest = {key: value for key, value in line.fields.items() if key not in _COLUMNS}
        told = (line.fields.get(key, "") for key in ("job", "run"))
        rows.writerow([line.n, line.at, line.what, *told, json.dumps(rest)])
    return out.getvalue().splitlines()


@audit.command(name="heads")
@click.argument("party")
@config_option
@format_option
def heads(party: str, config: Path) -> None:
    """Print the ends of PARTY's chain that we hold.

    As a file for its `party audit verify --heads`.
    """
    settings = load_config(PartyConfig, config)
    fields = {"of": party, "by": settings.name, "heads": heads_of(settings.state_dir / FOLDER, party)}
    say(json.dumps(fields, indent=1), fields)
