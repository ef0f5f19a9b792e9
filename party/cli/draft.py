"""`party draft`: our names and values for the names and values of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from anonymize.errors import AnonymizeError
from jobs.data.counted import counted
from jobs.data.sources import FileSource
from jobs.data.table_file import shown
from jobs.data.wording import AS_WRITTEN
from jobs.drafting.counting import texts_of
from jobs.drafting.fitting import Fitted, Own, Wanted, fitted, worded
from jobs.drafting.writing import yaml_lines
from jobs.errors import ConfigError
from jobs.task import Task
from party.cli.arguments import PATH, config_option
from party.cli.console import format_option, note, say
from party.cli.job_file import JobFile, job_option
from party.owner.config import PartyConfig, load_config
from party.owner.identity import private_files

_MOST_SHOWN = 5
_MOST_PAIRS = 12
_HEAD = """\
# A draft by `party draft`, for the configuration of {name} and job {job}. Every comment says what was guessed, and
# why: read, correct, and put the block in place of `data`. Only our own daemon reads the block.
"""


@click.command()
@config_option
@job_option("The job that our table is to fit.", required=True)
@click.option("--out", type=PATH, help="New file for the block `data`; default: shown only.")
@format_option
def draft(config: Path, job: JobFile, out: Path | None) -> None:
    """Fit our table to a job: names and values to write under `data`.

    Columns and values of our table are compared with the job. A guess says how our table would fit: `rename`, `map`
    and `missing`. The output is for the owner of the table. The table and the configuration stay as they are.
    """
    settings = load_config(PartyConfig, config)
    source = settings.source
    if not isinstance(source, FileSource):
        raise ConfigError(
            "usage", "the table is in no file", remedy="write the words of the job into the query"
        )
    if out is not None and out.exists():
        raise ConfigError("usage", f"--out {out} exists", remedy="name a new file: drafts overwrite nothing")
    for words in source.notes():
        note(words)
    task = job.load()
    table = _own(source)
    wanted = _wanted(task, settings.name)
    fits = fitted(wanted, table, source.wording, source.numerals)
    drafted = replace(source, wording=worded(fits, wanted, table, source.wording))
    block = _block(drafted, fits, settings.data.name)
    if out is not None:
        _write(out, _HEAD.format(name=settings.name, job=task.job.name) + block)
    problem = _problem(task, drafted, settings.name)
    is_changed = drafted.wording != source.wording
    lines = [f"{task.job.name}: columns of {settings.name}", *(words for fit in fits for words in _told(fit))]
    lines += _next(config, job, out, block if is_changed else None, problem)
    fields = {"columns": [_fields(fit) for fit in fits], "data": drafted.settings(), "fits": problem is None}
    say(lines, fields)
    if problem is not None:
        raise problem


def _wanted(task: Task, me: str) -> list[Wanted]:
    """Return our columns of the job, with their rules."""
    coded = task.job.names("qid", "class", "sensitive", "party")
    coder = task.model.reading.coder
    return [Wanted(name, coder(task, name) if name in coded else None) for name in task.held_by(me)]


def _own(source: FileSource) -> list[Own]:
    """Count the texts of the table in one pass. A name of two columns is left out. Raises DataError."""
    plain = replace(source, wording=AS_WRITTEN)
    names = plain.column_names()
    once = [name for name in names if names.count(name) == 1 and name]
    return [Own(name, source.wording.name(name), texts) for name, texts in texts_of(plain, once).items()]


def _problem(task: Task, source: FileSource, me: str) -> AnonymizeError | None:
    """Read the table as the job would, with the drafted words; return the problem that is left."""
    try:
        task.load(source, me)
    except AnonymizeError as error:
        return error
    return None


def _told(fit: Fitted) -> list[str]:
    """Return the owner's lines about a column."""
    if fit.own is None:
        return [f"  {fit.name}: {fit.why}", *_asked_of_column(fit)]
    named = "" if fit.own == fit.name else f"column {fit.own} of the table ({fit.why or 'as configured'})"
    mapped = f"{counted(len(fit.words), 'value', 'values')} mapped: " if fit.words else ""
    values = f"{mapped}{'; '.join(fit.hints)}"
    lines = [f"  {fit.name}: {', '.join(filter(None, (named, values))) or 'as it is'}"]
    if fit.words:
        lines.append(f"    {_pairs(fit)}")
    if fit.others:
        lines.append(f"    {_strangers(fit)}")
        lines += [
            f"    question: is {shown(text)} the job's {shown(near.meant)}? ({near.why})"
            for text, near in fit.near.items()
        ]
    return lines


def _asked_of_column(fit: Fitted) -> Iterator[str]:
    """Yield the question about the column that may be meant."""
    for near in fit.near.values():
        yield (
            f"    question: is column {near.meant} of the table meant ({near.why})? Then write "
            f"`rename: {{{near.meant}: {fit.name}}}`"
        )


def _pairs(fit: Fitted) -> str:
    """Return the mapped values, the first ones."""
    pairs = list(fit.words.items())
    each = ", ".join(
        f"{shown(own)} -> {shown(text) if text else 'missing'}" for own, text in pairs[:_MOST_PAIRS]
    )
    return (
        each if len(pairs) <= _MOST_PAIRS else f"{each}, and {len(pairs) - _MOST_PAIRS:,} more in the block"
    )


def _strangers(fit: Fitted) -> str:
    """Return the sentence on values that fit in no way."""
    rows = sum(fit.others.values())
    first = sorted(fit.others, key=lambda text: (-fit.others[text], text))[:_MOST_SHOWN]
    each = ", ".join(f"{shown(text)} ({fit.others[text]})" for text in first)
    more = f", and {len(fit.others) - len(first):,} more" if len(fit.others) > len(first) else ""
    cure = "map the values, or ask the author of the job to list them"
    told = counted(rows, "row has a value that fits", "rows have values that fit")
    return f"{told} in no way: {each}{more}; {cure}"


def _fields(fit: Fitted) -> dict[str, Any]:
    """Return a column for programs."""
    found = {"name": fit.name, "column": fit.own, "why": [*filter(None, (fit.why, *fit.hints))]}
    near = {text: {"meant": each.meant, "share": each.share} for text, each in fit.near.items()}
    return {**found, "unknown": dict(fit.others), **({"near": near} if near else {})}


def _next(
    config: Path, job: JobFile, out: Path | None, block: str | None, problem: AnonymizeError | None
) -> list[str]:
    """Return the last lines: the block, whether the table fits, and the next step."""
    lines = []
    if block is not None and out is None:
        lines += ["write in place of `data`:", *block.splitlines()]
    elif block is not None:
        lines.append(f"{out}: the block `data`")
    if problem is not None:
        return [*lines, "the table does not fit yet:"]
    if block is None:
        return [*lines, "the table fits the job as it is"]
    lines.append("the table fits the job with this block")
    where = f"edit {config}" if out is None else f"put {out} into {config}"
    return [*lines, f"next: {where}, then: party check --config '{config}' --job '{job}'"]


def _block(source: FileSource, fits: Sequence[Fitted], name: str | None) -> str:
    """Return the drafted `data` of a configuration, with a comment for each guess."""
    ((kind, keys),) = source.settings().items()
    lines = ["data:\n", *(yaml_lines("name", name, "  ") if name else []), f"  {kind}:\n"]
    guessed = {fit.name: fit for fit in fits if fit.why or fit.hints}
    renamed = [f"{fit.own}: {fit.why}" for fit in guessed.values() if fit.why and fit.own is not None]
    mapped = [f"{fit.name}: {'; '.join(fit.hints)}" for fit in guessed.values() if fit.words]
    dated = [f"{fit.name}: {'; '.join(fit.hints)}" for fit in guessed.values() if fit.form]
    comments = {"rename": renamed, "map": mapped, "dates": dated}
    for key, value in keys.items():
        lines += [f"    # {words}\n" for words in comments.get(key, ())]
        lines += yaml_lines(key, value, "    ")
    return "".join(lines)


def _write(out: Path, text: str) -> None:
    try:
        with private_files(), out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(
            "usage", f"--out {out}: {error.strerror}", remedy="name a file that can be written"
        ) from error
