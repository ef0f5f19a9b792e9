"""Command `coordinator evaluate`: the cost of a job for learners from its release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click

from anonymize.criteria.criterion import sides_of
from anonymize.criteria.remainder import OwnCount
from anonymize.lkc.requirement import criteria_of
from anonymize.scores.names import OF_GOAL, SCORES, WITH_CONTEXTS
from anonymize.table import CodedTable
from anonymize.tds import Observer
from coordinator.arguments import data_option, delimiter_option, table_source
from evaluation.features import Seen, seen_by_cut, seen_in_boxes
from evaluation.holdout import Worth, evaluated, mean_of, splits_of
from evaluation.learners import LEARNERS, Figures, library
from evaluation.rows import Rows, read_rows
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.errors import ConfigError
from jobs.file.job import Job
from jobs.lkc.exploring import Changes
from jobs.lkc.kd import single as kd_single
from jobs.lkc.linked_columns import is_parted
from jobs.lkc.requirement import requirement
from jobs.lkc.settings import KD, TOP_DOWN
from jobs.lkc.single import anonymized, rows_kept
from jobs.task import Task
from party.cli.console import format_option, note, say, set_up_logs
from party.cli.job_file import JobFile, job_argument

OWN = "These figures come from raw rows, without protection: for the owner of the table, not for publication."
MOST_SPLITS = 1000


@click.command()
@job_argument
@data_option
@delimiter_option
@click.option("--holdout", default="1/3", show_default=True, help="The share of the rows to hold out.")
@click.option(
    "--splits",
    type=click.IntRange(1, MOST_SPLITS),
    default=5,
    show_default=True,
    help="How often the rows are split at random.",
)
@click.option(
    "--score",
    "scores",
    type=click.Choice(list(SCORES)),
    multiple=True,
    help="Instead of the job's score, use top-down with this score; may be repeated.",
)
@click.option("--published", is_flag=True, help="Also the protocol of the papers: anonymize all, then split.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="The same splits each time."
)
@format_option
def evaluate(
    job: JobFile,
    data: Path | None,
    delimiter: str | None,
    holdout: str,
    splits: int,
    scores: tuple[str, ...],
    published: bool,
    seed: int,
) -> None:
    """Compare classifiers of anonymized and of raw rows.

    For every split: anonymize the training rows alone, as the job says; generalize the rows held out alike;
    let a decision tree and boosted trees predict the class of the latter. Baselines: the raw rows, the rows without
    quasi-identifiers, and the most frequent class. Figures are means over the splits, ± the standard error. Nothing
    is written or charged: the figures are for the owner of the table. For LKC jobs of any partition with a class
    column; needs `jointcut[evaluate]`.
    """
    set_up_logs("WARNING")
    asked = Asked(holdout, splits, scores, published, seed)
    found = judged(
        job.load,
        lambda task: table_source(task, job, data, delimiter),
        asked,
        lambda number: note(f"split {number} of {splits} is done", phase="evaluate", split=number, of=splits),
    )
    say([*found.lines, OWN], found.fields)


@dataclass(frozen=True)
class Asked:
    """Options of an evaluation, as the command has them."""

    holdout: str
    splits: int
    scores: Sequence[str]
    published: bool
    seed: int


@dataclass(frozen=True)
class Judged:
    """Figures of an evaluation, in lines for people and as fields."""

    lines: list[str] = field(repr=False)
    fields: dict[str, Any] = field(repr=False)


def judged(
    load: Callable[[Changes], Task],
    source: Callable[[Task], Source],
    asked: Asked,
    done: Callable[[int], object],
) -> Judged:
    """Evaluate a job on a table. Raises ConfigError, DataError or PrivacyError.

    load:    returns the task of the changed job.
    source:  returns the table for a task.
    done:    called with the number of every finished split, from 1.
    """
    library("sklearn")
    share, task = _share(asked.holdout), load({})
    _check(task)
    rows = read_rows(source(task), task)
    _check_sides(rows)
    found = evaluated(
        rows,
        splits_of(rows.whose, share, asked.splits, asked.seed),
        {name: partial(of_release, each) for name, each in _runs(load, task, asked.scores).items()},
        published=asked.published,
        done=done,
    )
    about = {"rows": rows.n_records, "holdout": str(share), "splits": asked.splits, "seed": asked.seed}
    words = task.model.described(task).requirement
    fields = {"job": task.job.name, "requirement": words, **about, "ways": _fields(found)}
    head = (
        f"{task.job.name}: {words}; {rows.n_records:,} rows, {share} held out, splits: {asked.splits}, "
        f"seed {asked.seed}"
    )
    return Judged([head, *_lines(found)], fields)


def _runs(load: Callable[[Changes], Task], task: Task, scores: Sequence[str]) -> dict[str, Task]:
    """Return the job unchanged, or with each given score."""
    if not scores:
        return {"": task}
    return {name: load(_with_score(task.job, name)) for name in scores}


def _with_score(job: Job, score: str) -> dict[str, Any]:
    """Return the changed keys of a job file for another score."""
    goals = (*([] if job.goal is None else [job.goal]), *OF_GOAL)
    goal = next(goal for goal in goals if score in OF_GOAL[goal])
    contexts = job.lkc.contexts if score in WITH_CONTEXTS else None
    lkc = {"method": TOP_DOWN, "split": None, "score": score, "contexts": contexts}
    return {"goal": goal, "model": {"lkc": lkc}}


def of_release(task: Task, loaded: Loaded) -> tuple[Seen, CodedTable]:
    """Return a function for a release's view of any records, and the released part. Raises PrivacyError."""
    return _RELEASES[str(task.job.lkc.method)](task, loaded)


def _top_down(task: Task, loaded: Loaded) -> tuple[Seen, CodedTable]:
    kept = rows_kept(task, loaded)
    return seen_by_cut(anonymized(task, kept, Observer()).cut), kept.table


def _kd(task: Task, loaded: Loaded) -> tuple[Seen, CodedTable]:
    return seen_in_boxes(kd_single.anonymized(task, loaded.table, Observer()).table.boxes), loaded.table


_RELEASES: Mapping[str, Callable[[Task, Loaded], tuple[Seen, CodedTable]]] = {TOP_DOWN: _top_down, KD: _kd}
"""Releases by method."""


def _share(text: str) -> Fraction:
    try:
        share = Fraction(text)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise ConfigError("usage", f"--holdout {text}: write a share between 0 and 1, e.g. 1/3")
    return share


def _check(task: Task) -> None:
    """Raise ConfigError for a job without anything to evaluate."""
    if task.model.name != "lkc":
        raise ConfigError(
            "usage",
            "evaluate is for LKC jobs of tables: noisy counts and paths are no rows to learn from",
            remedy="name a job with `model: {lkc: ...}`",
        )
    if not task.job.names("class"):
        raise ConfigError(
            "usage",
            "evaluate needs a column with `role: class`, to be predicted from the remaining columns",
            remedy="write `role: class` at the column that the other columns should predict",
        )

    if is_parted(task.job):
        raise ConfigError(
            "usage",
            "evaluate learns from rows in which the class stands beside all sensitive values, and the release of "
            "the job does not link class and sensitive values",
            remedy="evaluate the job without `link` and `release`",
        )


def _check_sides(rows: Rows) -> None:
    """Raise ConfigError if a single table lacks data for the counts of the requirement."""
    task = rows.task
    sides = sides_of(criteria_of(requirement(task).entries(rows.table().table.schema)))
    if task.job.roster and any(isinstance(side, OwnCount) for side in sides):
        raise ConfigError(
            "usage",
            "the requirement counts records by party, and a single table does not tell the party of a row",
            remedy="evaluate a job of `partition: single`, with a column of `role: party`",
        )


def _fields(found: dict[str, Worth]) -> dict[str, Any]:
    return {
        way: {learner: _figures(worth.figures[learner]) for learner in LEARNERS}
        for way, worth in found.items()
    }


def _figures(figures: Sequence[Figures]) -> dict[str, Any]:
    error = mean_of([each.error for each in figures])
    areas = [each.auc for each in figures if each.auc is not None]
    area = mean_of(areas) if areas else None
    return {
        "error": error.mean,
        "error_standard_error": error.error,
        "auc": None if area is None else area.mean,
        "auc_standard_error": None if area is None else area.error,
    }


def _lines(found: dict[str, Worth]) -> list[str]:
    width = max(map(len, found))
    head = "".join(f"{f'{learner}: error %':>22}{'AUC %':>15}" for learner in LEARNERS)
    lines = [f"  {'':{width}}{head}"]
    for way, worth in found.items():
        cells = (_figures(worth.figures[learner]) for learner in LEARNERS)
        shown = "".join(f"{_percent(c, 'error'):>22}{_percent(c, 'auc'):>15}" for c in cells)
        lines.append(f"  {way:{width}}{shown}")
    return lines


def _percent(figures: dict[str, Any], name: str) -> str:
    mean, error = figures[name], figures[f"{name}_standard_error"]
    if mean is None:
        return "-"
    return f"{100 * mean:.2f}" if error is None else f"{100 * mean:.2f} ± {100 * error:.2f}"
