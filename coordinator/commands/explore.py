"""`coordinator explore`: utility and risk over a grid of requirements, before a requirement is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import TypeAdapter

from coordinator.arguments import data_option, delimiter_option, table_source
from coordinator.loss_picture import picture
from coordinator.progress import progress_of
from jobs.data.counted import counted
from jobs.data.sources import Source
from jobs.errors import ConfigError
from jobs.file.fields import Confidence, Least
from jobs.lkc.exploring import Changes, Explorer, Figures, Point, grid_of, require_explorable
from jobs.lkc.settings import Known
from jobs.lkc.suggesting import MOST_SEARCHES, Suggested, explored
from jobs.release.folder import refuse_existing, write_for_owner
from jobs.task import Task
from party.cli.arguments import PATH
from party.cli.console import format_option, note, say, set_up_logs
from party.cli.job_file import JobFile, job_argument
from party.owner.config import PartyConfig, load_config

T = TypeVar("T")

OWN = (
    "These figures come from raw rows, without protection: for the owner of the table, not for publication. Nothing "
    "was written or charged. A requirement that is chosen by these figures tells something about the rows "
    "(docs/security.md, N26)."
)
_OF_PARTY = (
    "The figures are of this table alone, as if it had a single holder. The joint table has more rows and other "
    "groups, so its figures will differ: usually it keeps more detail."
)
_GOALS = ("general", "classification")


@click.command()
@job_argument
@click.option("--K", "ks", metavar="LIST", help="Values of K, e.g. 5,10,20; default the job's K.")
@click.option("--L", "ls", metavar="LIST", help="Values of L, e.g. 1,2,all; default the job's L.")
@click.option("--C", "cs", metavar="LIST", help="Values of C for all sensitive columns; default the job's C.")
@click.option(
    "--goal", "goals", metavar="LIST", help="general, classification or both; default the job's goal."
)
@click.option(
    "--suggest", is_flag=True, help="Also try single changes of the job, and show what frees the most detail."
)
@click.option("--picture", "file", type=PATH, help="New SVG file: the loss over K, a line for each L.")
@data_option
@delimiter_option
@click.option(
    "--config",
    type=PATH,
    help="A party's configuration, e.g. party.yaml: the party's table, in the words of `data`.",
)
@format_option
def explore(
    job: JobFile,
    ks: str | None,
    ls: str | None,
    cs: str | None,
    goals: str | None,
    suggest: bool,
    file: Path | None,
    data: Path | None,
    delimiter: str | None,
    config: Path | None,
) -> None:
    """Compare requirements by utility and risk; release nothing.

    The table is read once, and anonymized with every combination of the given K, L and C, as `coordinator run` would
    do. No table is written, and nothing is charged. For LKC jobs of a single holder, and, with `--data` or `--config`
    of a party's own table, for horizontal jobs. The figures are for the owner of the table.
    """
    set_up_logs("WARNING")
    task = job.load()
    require_explorable(task)
    _require_own_table(task, data, config)
    points = grid_of(
        task.job,
        _values("K", ks, _reader(Least), "whole numbers above 0, e.g. 5,10,20"),
        _values("L", ls, _reader(Known), "whole numbers above 0, or all, e.g. 1,2,all"),
        _values("C", cs, _reader(Confidence), "numbers above 0 and at most 1, e.g. 0.2,0.5"),
        _values("goal", goals, _goal, " or ".join(_GOALS)),
    )
    if file is not None:
        _require_place(file)
    _tell_large(task, points)
    with progress_of(task.job.name, 1) as progress:
        progress.phase("read")
        source = table_source(task, job, data, delimiter) if config is None else _configured(config)
        explorer = Explorer.of(str(job), job.load, source)
        progress.phase("anonymize")
        found, better = explored(explorer, points, suggest=suggest, trial=progress.trial)
    if file is not None:
        write_for_owner(file, picture(f"{task.job.name}: loss over K", found))
    _say(explorer, found, better, file)


def _require_own_table(task: Task, data: Path | None, config: Path | None) -> None:
    """Refuse a joint job without a table, and two tables. Raises ConfigError."""
    if config is not None and data is not None:
        raise ConfigError(
            "usage",
            "--config and --data name a table each",
            remedy="leave one out: --config has words for its table",
        )
    if task.job.roster and data is None and config is None:
        raise ConfigError(
            "usage",
            "explore is for a single table: in a joint run every point would be a release, told to all parties",
            remedy="give --data FILE, a party's own table, and explore the job as if this table were the only table; "
            "where the party's `data` renames columns or maps values, give --config party.yaml instead",
        )


def _configured(config: Path) -> Source:
    """Return the table of a party's configuration, and tell the owner about the table's form. Raises ConfigError."""
    source = load_config(PartyConfig, config).source
    for words in source.notes():
        note(words)
    return source


def _tell_large(task: Task, points: Sequence[Changes]) -> None:
    """Say which values of L equal `all`."""
    n = len(task.job.names("qid"))
    asked = [point["model"]["lkc"].get("L") for point in points if "model" in point]
    if above := sorted({known for known in asked if isinstance(known, int) and known > n}):
        shown = ", ".join(map(str, above))
        note(f"--L {shown} is above the number of quasi-identifiers ({n}): the same as all")


def _require_place(file: Path) -> None:
    """Refuse a place for a picture before the table is read. Raises ConfigError."""
    if file.suffix.lower() != ".svg":  # programs open an SVG only under its own name
        raise ConfigError(
            "usage", f"--picture {file}: the picture is SVG", remedy="write a name that ends in .svg"
        )
    refuse_existing(file, "file")
    if not file.parent.is_dir():
        raise ConfigError("file-missing", f"{file.parent} is not a folder")


def _values(option: str, text: str | None, read: Callable[[str], T], form: str) -> list[T]:
    """Return the different values of a list, in its order; no list is empty. Raises ConfigError."""
    found: dict[T, None] = {}
    for part in [] if text is None else map(str.strip, text.split(",")):
        try:
            found[read(part)] = None
        except ValueError:
            raise ConfigError(
                "usage", f"--{option} {text}: {part!r} is no possible {option}", remedy=f"write {form}"
            ) from None
    return list(found)


def _reader(form: Any) -> Callable[[str], Any]:
    """Return the reader of a value of the job format, which raises ValueError."""
    return TypeAdapter(form).validate_python


def _goal(text: str) -> str:
    if text not in _GOALS:
        raise ValueError(text)
    return text


def _say(explorer: Explorer, found: Sequence[Point], better: Suggested | None, file: Path | None) -> None:
    task, rows = explorer.task, explorer.loaded.rows
    asked = task.model.described(task).requirement
    n = explorer.loaded.table.n_records
    lines = [f"{task.job.name}: {asked}; {counted(n, 'row', 'rows')}, requirements: {len(found)}"]
    lines += [*(rows.words() if rows.n_dropped else []), *_table(found)]
    lines += [] if better is None else _suggested_lines(asked, better)
    lines += [] if file is None else [f"picture: {file}"]
    lines += [*([_OF_PARTY] if task.job.roster else []), OWN]
    fields = {
        "job": task.job.name,
        "requirement": asked,
        "rows": n,
        "points": [point.fields for point in found],
    }
    fields |= {} if better is None else {"suggested": _suggested_fields(better)}
    fields |= {} if file is None else {"picture": str(file)}
    say(lines, fields)


def _table(found: Sequence[Point]) -> list[str]:
    """Return the points in aligned columns, without C, goal and withheld rows where all points say the same."""
    heads = ["K", "L", "loss", "groups", "alone", "below K", "discernibility"]
    withheld = any(point.figures is not None and point.figures.withheld for point in found)
    asked_more = {
        "C": [" ".join(map(str, dict.fromkeys(point.C.values()))) for point in found],
        "goal": [point.goal for point in found],
    }
    more = {name: values for name, values in asked_more.items() if len(set(values)) > 1}
    heads[2:2] = more
    heads += ["withheld"] if withheld else []
    rows = []
    for place, point in enumerate(found):
        asked = [str(point.K), str(point.L), *(values[place] for values in more.values())]
        rows.append(asked + (_cells(point.figures, withheld) if point.figures is not None else []))
    widths = [max(len(row[i]) for row in [heads, *rows] if i < len(row)) for i in range(len(heads))]
    lines = ["  ".join([*map(str.rjust, heads, widths), "whole columns"])]
    for point, row in zip(found, rows, strict=True):
        last = (
            f"cannot be met: {point.unmet}"
            if point.figures is None
            else ", ".join(point.figures.whole) or "-"
        )
        lines.append("  ".join([*map(str.rjust, row, widths), last]))
    return [f"  {line}" for line in lines]


def _cells(figures: Figures, withheld: bool) -> list[str]:
    shown = [f"{figures.loss:.1%}", f"{figures.groups:,}", f"{figures.unique:,}", f"{figures.below_k:,}"]
    shown.append(f"{figures.discernibility_ratio:.4f}")
    return [*shown, f"{figures.withheld:,}"] if withheld else shown


def _suggested_lines(asked: str, better: Suggested) -> list[str]:
    lines = better.why
    if not better.best:
        return [*lines, f"none of {counted(better.tried, 'change', 'changes')} of {asked} frees detail"]
    if better.compared:
        lines.append(
            f"{better.compared} changes of columns were compared without `withhold`, and the {MOST_SEARCHES} best of "
            "these changes were tried with `withhold`"
        )
    lines.append(f"single changes that free the most detail, from {asked}:")
    return [*lines, *(f"  {line}" for line in better.lines)]


def _suggested_fields(better: Suggested) -> Mapping[str, Any]:
    return {
        "loss": better.before,
        "whole": dict(better.reasons),
        "tried": better.tried,
        "compared": better.compared,
        "untried": better.untried,
        "best": [each.fields for each in better.best],
        **({} if better.before is not None else {"unmet": better.unmet}),
    }
