"""Requirements compared on a single table: utility and risk of each.

The figures are of raw rows, for the owner of the table. No release is made, and no ledger is touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from anonymize.errors import AnonymizeError
from anonymize.lkc.metrics import measure_partitions, measure_risk
from anonymize.release import Release
from anonymize.tds import Observer
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.errors import ConfigError
from jobs.file.job import Job
from jobs.forked import mapped
from jobs.lkc.entries import entries_of, greatest_k
from jobs.lkc.forms.form import form_of
from jobs.lkc.method import SingleResult, method_of
from jobs.lkc.requirement import bounds_of
from jobs.lkc.settings import LkcList
from jobs.lkc.single import rows_kept
from jobs.task import Task

Changes: TypeAlias = Mapping[str, Any]
"""Replacements of keys of a job file, as :func:`jobs.loading.load_task` takes them."""
Load: TypeAlias = Callable[[Changes], Task]
"""Function from changes of a job file to the task of the changed job. Raises ConfigError or SchemaError."""

MOST_POINTS = 500
"""Most requirements of a grid. Each requirement is a run on the whole table."""


@dataclass(frozen=True)
class Figures:
    """Utility and risk of a table that a job would release.

    rows:        records of the table. withheld: records that `withhold` leaves out.
    groups:      combinations of generalized quasi-identifiers.
    losses:      generalization loss by quasi-identifier: 0 for raw values, 1 for the root.
    unique, below_k:  records alone, and in groups smaller than K, on all quasi-identifiers.
    """

    rows: int
    withheld: int
    groups: int
    losses: Mapping[str, float]
    unique: int
    below_k: int
    discernibility_ratio: float

    @property
    def loss(self) -> float:
        """Mean loss over the columns."""
        return sum(self.losses.values()) / len(self.losses)

    @property
    def whole(self) -> tuple[str, ...]:
        """Columns with the root in every row."""
        return tuple(name for name, loss in self.losses.items() if loss == 1)

    @property
    def fields(self) -> dict[str, Any]:
        """Figures by the names of the report."""
        named = {_NAMES.get(key, key): value for key, value in asdict(self).items()}
        return {"ncp": self.loss, "whole": list(self.whole), **named}


_NAMES = {"groups": "leaf_partitions", "losses": "generalization_loss"}
"""Names of figures in the report, where they differ."""


@dataclass(frozen=True)
class Point:
    """Requirement of a grid, with the figures, or with the reason that no table meets the requirement.

    C:  smallest C by sensitive column.
    """

    K: int
    L: int | str
    C: Mapping[str, Fraction]
    goal: str
    figures: Figures | None = None
    unmet: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        asked = {"K": self.K, "L": self.L, "C": {name: str(c) for name, c in self.C.items()}}
        found = {"unmet": self.unmet} if self.figures is None else self.figures.fields
        return {**asked, "goal": self.goal, **found}


# ---- jobs that can be explored


def require_explorable(task: Task) -> None:
    """Refuse jobs without a grid of requirements, and joint jobs that a single table cannot stand for.

    Raises ConfigError.
    """
    if task.model.name != "lkc":
        raise ConfigError(
            "usage",
            "explore compares K, L and C of LKC jobs of tables",
            remedy=_INSTEAD.get(task.model.name, _INSTEAD["dp"]),
        )
    job = task.job
    if isinstance(job.lkc, LkcList):
        raise ConfigError(
            "usage",
            "explore varies a single K, L and C, and the job has a list of `requirements`",
            remedy="explore a copy of the job with K, L and C of a single entry; `coordinator run` measures the list",
        )
    if job.lkc.quasi == "exact":
        raise ConfigError(
            "usage",
            "explore compares the detail of quasi-identifiers, and `quasi: exact` publishes raw quasi-identifiers",
            remedy="explore a copy of the job without `quasi`",
        )
    if job.partition == "vertical":
        raise ConfigError(
            "usage",
            "explore is for a single table, and each party of a vertical job has a part of the columns; every point "
            "of a joint run would be a release",
            remedy="choose K, L and C from the purpose; `coordinator simulate` runs the job on made-up tables",
        )
    if job.roster and any(entry.colluders for entry in entries_of(job)):
        raise ConfigError(
            "usage",
            "`colluders` counts records by party, and the table of a single party has no other party",
            remedy="explore a copy of the job without `colluders`",
        )


_INSTEAD = {
    "sequences": "run the sequences job with other K and L into new folders, compare the reports, and publish one",
    "dp": "a DP job has `epsilon` instead: try values of `epsilon` on made-up rows of the same form, because every "
    "run on the real rows is charged",
}
"""Remedies by model."""


# ---- the grid


def grid_of(
    job: Job, ks: Sequence[int], ls: Sequence[int | str], cs: Sequence[Fraction], goals: Sequence[str]
) -> list[Changes]:
    """Return the changes of every requirement of a grid. An empty list leaves the job's value. Raises ConfigError.

    cs:  each C is for all sensitive columns.
    """
    if cs and not job.names("sensitive"):
        raise ConfigError(
            "usage",
            "--C bounds sensitive columns, and the job has no column of `role: sensitive`",
            remedy="leave --C out, or give the column that nobody may infer `role: sensitive` in the job",
        )
    if goals and job.clusters is not None:
        raise ConfigError(
            "usage", "--goal: a job of `goal: clusters` has a model of clusters, and no other goal"
        )
    axes: list[list[Changes]] = [
        [with_goal(job, goal) for goal in goals],
        [_with_bound(job, c) for c in cs],
        [of_lkc(L=known) for known in ls],
        [of_lkc(K=k) for k in ks],
    ]
    points: list[Changes] = [joined(point) for point in product(*(axis or [{}] for axis in axes))]
    if len(points) > MOST_POINTS:
        raise ConfigError(
            "usage",
            f"{len(points):,} requirements are more than {MOST_POINTS}",
            remedy="give fewer values of K, L and C; explore again near the values that you like",
        )
    return points


def of_lkc(**keys: Any) -> Changes:
    return {"model": {"lkc": keys}}


def _with_bound(job: Job, c: Fraction) -> Changes:
    """Return the change to a single C; the columns lose each C of their own."""
    own = {name: {"C": None} for name in job.names("sensitive")}
    return {**of_lkc(C=str(c)), "columns": own}


def with_goal(job: Job, goal: str) -> Changes:
    """Return the change of the goal, with the goal's own score."""
    return {} if goal == job.goal else {"goal": goal, **of_lkc(score=None, contexts=None)}


def joined(changes: Sequence[Changes]) -> dict[str, Any]:
    """Return several changes as a single change, key by key also inside nested values."""
    made: dict[str, Any] = {}
    for each in changes:
        for key, value in each.items():
            inside = made.get(key)
            if isinstance(value, Mapping) and isinstance(inside, Mapping):
                made[key] = joined([inside, value])
            else:
                made[key] = value
    return made


_LARGE = 50_000
"""Cells, records times quasi-identifiers, from which runs are made in several processes."""


@dataclass(frozen=True)
class Explorer:
    """A table, read once, on which changed jobs are measured.

    where:  the job file, as errors name the file.
    """

    where: str
    load: Load
    source: Source
    task: Task
    loaded: Loaded = field(repr=False)

    @classmethod
    def of(cls, where: str, load: Load, source: Source) -> Explorer:
        """Read the table of the unchanged job. Raises DataError."""
        task = load({})
        return cls(where, load, source, task, form_of(task.job).load(source, task))

    @property
    def is_large(self) -> bool:
        """True if a run takes longer than the start of a process."""
        table = self.loaded.table
        return table.n_records * len(table.qid) >= _LARGE

    def points(self, grid: Sequence[Changes]) -> Iterator[Point]:
        """Measure every requirement of a grid, in order."""
        return mapped(self.point, grid, pays=self.is_large)

    def point(self, changes: Changes) -> Point:
        """Measure a requirement of the grid on the table."""
        job, lkc = self.task.job, changes.get("model", {}).get("lkc", {})
        said = entries_of(job)[0].said
        bounds = (
            bounds_of(job) if "C" not in lkc else dict.fromkeys(job.names("sensitive"), Fraction(lkc["C"]))
        )
        goal = str(changes.get("goal", job.goal))
        asked = (int(lkc.get("K", said.K)), lkc.get("L", said.L), bounds, goal)
        try:
            return Point(*asked, measured(self.load(changes), self.loaded).figures)
        except REFUSED as error:
            return Point(*asked, unmet=self.reason(error))

    def reason(self, error: ConfigError | AnonymizeError) -> str:
        """Return an error in a line, without the place in the job file: the value there was replaced."""
        message = error.problem.message if isinstance(error, ConfigError) else str(error)
        return re.sub(r"^line [0-9]+: ", "", message.removeprefix(f"{self.where}: "))


@dataclass(frozen=True)
class Measured:
    """Table of a task, with its figures."""

    made: SingleResult = field(repr=False)
    release: Release = field(repr=False)
    figures: Figures


def measured(task: Task, loaded: Loaded) -> Measured:
    """Anonymize a table after pass 1, and measure the table. Raises PrivacyError."""
    job = task.job
    kept = rows_kept(task, loaded)
    made = method_of(job).single_result(task, kept, Observer())
    release = made.counted()
    groups = measure_partitions(release, form_of(job).groups(job))
    risk = measure_risk(release, job.names("qid"), greatest_k(entries_of(job)))
    figures = Figures(
        rows=release.n_records,
        withheld=loaded.table.n_records - release.n_records,
        groups=groups["leaf_partitions"],
        losses=made.losses(release),
        unique=risk.unique,
        below_k=risk.below_k,
        discernibility_ratio=groups["discernibility_ratio"],
    )
    return Measured(made, release, figures)


REFUSED = (ConfigError, AnonymizeError)
"""Errors of a changed job that the change itself, or the table, causes."""
