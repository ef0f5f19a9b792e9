"""`coordinator draft`: a first job file for a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from anonymize.errors import DataError
from coordinator.arguments import delimiter_option, dialect_of
from jobs.data.sources import Csv, FileSource, source_of_file
from jobs.drafting.codes import without_codes
from jobs.drafting.counting import RARE, Counted, counted_columns
from jobs.drafting.guessing import MOST_CLASSES, Asked, Guess, guess
from jobs.drafting.ordering import order_of_dates
from jobs.drafting.writing import job_text, name_of, owner_lines, unnameable
from jobs.errors import ConfigError
from jobs.file.fields import NAME, NAME_RULE
from jobs.reading import header_of
from party.cli.arguments import PATH
from party.cli.console import format_option, note, say


@click.command()
@click.argument("table", type=PATH)
@click.option("--out", type=PATH, required=True, help="New job file, e.g. job.yaml.")
@click.option("--id", "ids", multiple=True, metavar="COL", help="Column that names the person of a row.")
@click.option("--sensitive", multiple=True, metavar="COL", help="Column whose values nobody may infer.")
@click.option("--class", "classes", multiple=True, metavar="COL", help="Column that the table is to predict.")
@click.option(
    "--model",
    type=click.Choice(["lkc", "dp"]),
    default="lkc",
    show_default=True,
    help="lkc: groups of records. dp: a synthetic table with differential privacy.",
)
@click.option(
    "--parties", metavar="NAME,NAME", help="A joint job of these parties, each with different people."
)
@click.option(
    "--mode",
    type=click.Choice(["sealed", "strict", "leader"]),
    help="With --parties: what the parties of an LKC job learn during a run (`disclosure`); default sealed.",
)
@delimiter_option
@format_option
def draft(
    table: Path,
    out: Path,
    ids: tuple[str, ...],
    sensitive: tuple[str, ...],
    classes: tuple[str, ...],
    model: str,
    parties: str | None,
    mode: str | None,
    delimiter: str | None,
) -> None:
    """Write a first job for a table, to edit.

    Roles, ranges and hierarchies are guessed; a comment gives each reason. Values of fewer than 10 records (of fewer
    than 10 people with --id, or where ids repeat) and columns that name people are shown here, and not written. The
    output is for the owner of the table. With --parties the job is joint, and TABLE is like the table of a party.
    """
    if out.exists():
        raise ConfigError("usage", f"--out {out} exists", remedy="name a new file: drafts overwrite nothing")
    if not table.is_file():
        raise ConfigError("file-missing", f"{table} is not a file")
    source = source_of_file(table, dialect_of(delimiter))
    for words in source.notes():
        note(words)
    asked = asked_of(ids, sensitive, classes, model, () if parties is None else parties.split(","), mode)
    found = drafted(source, asked, os.path.relpath(table, out.parent), name_of(table))
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(found.text)
    except OSError as error:
        raise ConfigError(
            "usage", f"--out {out}: {error.strerror}", remedy="name a file that can be written"
        ) from error
    _show(out, found, asked)


@dataclass(frozen=True)
class Drafted:
    """Draft of a job.

    guesses:  about all columns.
    owner:    lines of a configuration that the owner of the table needs, beside a joint job.
    """

    guesses: Sequence[Guess]
    text: str
    owner: Sequence[str] = ()


def asked_of(
    ids: Sequence[str],
    sensitive: Sequence[str],
    classes: Sequence[str],
    model: str,
    parties: Sequence[str],
    mode: str | None,
) -> Asked:
    """Return what a draft is asked for. parties: empty for a single holder. Raises ConfigError."""
    names, dp = [name.strip() for name in parties], model == "dp"
    if not names and mode is not None:
        raise ConfigError(
            "usage", f"--mode {mode} is for joint jobs", remedy="name the parties by --parties, too"
        )
    for name in names:
        if not NAME.fullmatch(name) or names.count(name) > 1:
            raise ConfigError(
                "usage", f"--parties: {name!r} cannot name a party", remedy=f"{NAME_RULE}; each name once"
            )
    fewest = 3 if mode == "leader" else 2
    if names and len(names) < fewest:
        raise ConfigError(
            "usage", f"--parties names {len(names)}", remedy=f"name {fewest} parties or more, split by commas"
        )
    if dp and mode not in (None, "sealed"):
        raise ConfigError(
            "usage", f"--mode {mode} is for LKC jobs", remedy="leave --mode out: noise is drawn sealed"
        )
    return Asked(ids, sensitive, classes, dp=dp, parties=names, mode=mode or "sealed")


def drafted(source: FileSource, asked: Asked, path: str, name: str) -> Drafted:
    """Return the guesses about all columns, and the text of the job. Raises ConfigError or DataError."""
    if isinstance(source, Csv):
        source = source.with_quote()
    names = header_of(source)
    unfit = unnameable(names)
    _check(asked, names, unfit)
    named = [each for each in names if each not in unfit]
    counted, guesses = _guessed(source, named, asked, asked.ids)
    found = [each.name for each in guesses if each.repeats]
    if found and not asked.ids:  # The rows of one person make no value frequent.
        first = guesses
        counted, guesses = _guessed(source, named, asked, found)
        guesses = [one if one.repeats else other for one, other in zip(first, guesses, strict=True)]
    _check_class(asked, counted, guesses)
    _check_mode(asked, counted)
    kept = [each for each in guesses if each.keys is not None]
    if not any(each.role == "qid" for each in kept):
        raise DataError(
            "data-unreadable",
            "no column of the table can be drafted as a quasi-identifier",
            remedy="write the job by hand (docs/guide/first-table.md); a draft needs values of at least 10 records, "
            "or of 10 people where ids repeat: name the ids by `--id COLUMN`",
            private="; ".join(f"{each.name}: {each.why}" for each in guesses),
        )
    order: list[str] = []
    if asked.dp:
        order, guesses = order_of_dates(source, guesses, counted)
    form = _form_of(source)
    text = job_text(path, name, kept, counted, asked, form=form, order=order)
    owner = owner_lines(kept, counted, form) if asked.parties else []
    return Drafted([*guesses, *(Guess(each, None, why) for each, why in unfit.items())], text, owner)


def _guessed(
    source: FileSource, names: Sequence[str], asked: Asked, ids: Sequence[str]
) -> tuple[dict[str, Counted], list[Guess]]:
    """Count columns and guess their roles. ids: columns that name the person of a row. Raises DataError."""
    found = counted_columns(source, names, ids)
    counted = {name: each if name in asked.classes else without_codes(each) for name, each in found.items()}
    return counted, [guess(column, asked) for column in counted.values()]


def _form_of(source: FileSource) -> dict[str, str]:
    """Return the separator and the quote, where the draft is not to leave them to the first lines of the file."""
    if not isinstance(source, Csv):
        return {}
    found = {"quote": source.dialect.quote, "delimiter": source.dialect.delimiter or "\t"}
    return {key: sign for key, sign in found.items() if sign not in ('"', "\t")}


def _check(asked: Asked, names: Sequence[str], unfit: Mapping[str, str]) -> None:
    """Refuse columns that table or job lack, and a column with two roles. Raises ConfigError.

    unfit:  the columns that no job can name, with the reason.
    """
    roles = {"--id": asked.ids, "--sensitive": asked.sensitive, "--class": asked.classes}
    given = [(option, name) for option, columns in roles.items() for name in columns]
    for option, name in given:
        if name not in names:
            raise ConfigError(
                "usage",
                f"{option} {name}: the table has no such column",
                remedy=f"name one of: {', '.join(names)}",
            )
        if name in unfit:
            raise ConfigError(
                "usage", f"{option} {name}: {unfit[name]}", remedy="rename the column in the table"
            )
        if [other for _, other in given].count(name) > 1:
            raise ConfigError("usage", f"column {name} is named twice", remedy="give each column one role")
    if len(asked.classes) > 1:
        raise ConfigError("usage", "--class is given twice", remedy="name one class")


def _check_class(asked: Asked, counted: Mapping[str, Counted], guesses: Sequence[Guess]) -> None:
    """Refuse a class with many values, or with a drafted domain of fewer than two. Raises ConfigError."""
    domains = {each.name: each.keys["domain"] for each in guesses if each.keys and "domain" in each.keys}
    for name in asked.classes:
        if not 2 <= len(counted[name].counts) <= MOST_CLASSES:
            raise ConfigError(
                "usage",
                f"--class {name}: a class has from 2 to {MOST_CLASSES} values, and is published as it is",
                remedy="name another column, or group the values",
            )
        if len(domains.get(name, counted[name].counts)) < 2:
            raise ConfigError(
                "usage",
                f"--class {name}: fewer than 2 of its values have {RARE} {counted[name].holders} or more, and only "
                "such values may stand in the `domain` of the job",
                remedy="name another column, or group the values",
            )


def _check_mode(asked: Asked, counted: Mapping[str, Counted]) -> None:
    """Refuse a mode that cannot count people for ids that repeat. Raises ConfigError."""
    repeated = [name for name in asked.ids if any(n > 1 for n in counted[name].counts.values())]
    if asked.parties and asked.mode == "strict" and repeated:
        raise ConfigError(
            "usage",
            f"--mode strict counts records only, and ids of {repeated[0]} repeat, so people have several records",
            remedy="write --mode sealed, which counts people",
        )


def _show(out: Path, found: Drafted, asked: Asked) -> None:
    """Show the draft, what it leaves out, and the next step."""
    n_kept = sum(each.keys is not None for each in found.guesses)
    lines = [f"{out}: a draft of {n_kept} columns", *draft_lines(found, asked)]
    tables = " ".join(f"--data {name}=TABLE" for name in asked.parties)
    then = f"simulate '{out}' {tables}" if asked.parties else f"run '{out}'"
    lines.append(f"next: read and edit the file, then: coordinator {then} --out result")
    say(lines, {"out": str(out), "columns": {each.name: _fields(each, asked) for each in found.guesses}})


def draft_lines(found: Drafted, asked: Asked) -> list[str]:
    """Return the guesses, and what the draft leaves out, for the owner of the table."""
    guesses = found.guesses
    kept = [each for each in guesses if each.keys is not None]
    lines = [f"  {each.name}: {_kind(each)}: {each.why}" for each in kept]
    lines += [f"  {each.name}: left out: {each.why}" for each in guesses if each.keys is None]
    if told := [words for each in guesses for words in each.told]:
        counts = "such values stop a run, unless the job lists them or the owner of a table maps them"
        if asked.dp:
            counts = "such values count as missing, or as the nearest number"
        elif not asked.parties:
            counts = "such values count as missing"
        lines += [f"not written, for you alone; {counts}:", *(f"  {words}" for words in told)]
    if found.owner:
        lines += [
            "the owner of this table writes in its configuration:",
            *(f"  {each}" for each in found.owner),
        ]
    lines += [f"warning: {words}" for each in guesses for words in _warnings(each, asked)]
    lines += _about_inferences([each.role for each in kept], asked)
    lines.append("warning: domains become public with the job: check every value and range in the file")
    if asked.dp:
        lines.append("a run refuses domains with `from_data: true`: replace or confirm each")
    return lines


def _about_inferences(roles: Sequence[str | None], asked: Asked) -> list[str]:
    """Say what bounds inferences of values, where the owner may expect something else."""
    if asked.dp:
        named = [f"`--sensitive {name}`" for name in asked.sensitive]
        alike = "a DP job protects all columns alike, and no column has the role `sensitive`"
        return [f"{', '.join(named)}: {alike}"] if named else []
    if "sensitive" in roles:
        return []
    return [
        "warning: no column is sensitive: nothing bounds inferences; name a column by `--sensitive COLUMN`"
    ]


def _kind(drafted: Guess) -> str:
    """Return the role of a column with the key of its values."""
    keys = drafted.keys or {}
    found = [
        key
        for key in ("numeric", "dates", "prefix", "order", "icd", "suppress", "taxonomy", "domain")
        if key in keys
    ]
    return ", ".join([str(keys["role"]), *found])


def _warnings(drafted: Guess, asked: Asked) -> list[str]:
    """Return the warnings about a column."""
    if not drafted.repeats or asked.ids:
        return list(drafted.warnings)
    counts = "epsilon protects a row" if asked.dp else "K counts rows"
    repeat = (
        f"values of {drafted.name} repeat, and {counts}: if a person has several rows, draft again with "
        f"`--id {drafted.name}`"
    )
    return [repeat, *drafted.warnings]


def _fields(drafted: Guess, asked: Asked) -> dict[str, Any]:
    """Return a guess for programs."""
    kind = {} if drafted.keys is None else {"role": drafted.role}
    warnings = _warnings(drafted, asked)
    return {**kind, "why": drafted.why, "not_written": list(drafted.told), "warnings": warnings}
