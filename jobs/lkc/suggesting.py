"""Single changes of a job, measured on the table: the changes that free the most detail, and their costs.

Changes are compared by the loss of all rows and columns of the unchanged job. A suppressed row and a dropped column
count as lost, and a coarser domain is measured in cells of the unchanged domain. So a change gains only by what
readers see. The figures that are told are those of the report of the changed job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from anonymize.dates import LEVELS
from anonymize.grid import Grid
from anonymize.shallow_taxonomy import ShallowTaxonomy, depths_of
from anonymize.table import Ints
from anonymize.taxonomy import Taxonomy
from jobs.data.counted import counted
from jobs.data.tables import Loaded
from jobs.file.columns import Column, DateDomain
from jobs.file.job import Job
from jobs.forked import mapped
from jobs.lkc.entries import entries_of
from jobs.lkc.exploring import (
    REFUSED,
    Changes,
    Explorer,
    Figures,
    Measured,
    Point,
    joined,
    measured,
    of_lkc,
    with_goal,
)
from jobs.lkc.forms.form import form_of
from jobs.lkc.settings import TOP_DOWN, LkcModel
from jobs.lkc.single import CutSingle
from jobs.task import Task

MOST_CHANGES = 200
"""Largest number of tried changes. Each change is a run on the whole table.

In jobs with many columns, changes of the last columns are not tried, and the owner is told their number.
"""
MOST_SEARCHES = 16
"""Most changes of columns that a job with `withhold` tries with the search for rows to suppress.

The search is many runs. If there are more changes of columns, the changes are first compared without `withhold`.
"""
_BATCH = 8
"""Changes whose tables are in memory at the same time."""
_SHARES = tuple(Fraction(1, n) for n in (100, 50, 20))
_BOUNDS = tuple(Fraction(n, 20) for n in (1, 2, 4, 6, 8, 10, 12, 14, 16, 18))
"""Values of C, from strict to weak. The next greater value is a step."""
_STEP = re.compile(r"([0-9]+)([a-z]+)")
_SAME_LOSS = 9
"""Decimal digits in which equal losses are equal."""


@dataclass(frozen=True)
class Change:
    """Change of one setting of a job.

    words:    the change, as a sentence begins.
    changes:  the keys of the job file.
    cost:     a sentence on what becomes weaker or coarser; empty if the figures say everything.
    weaker:   True if K, L or C becomes weaker.
    coarser:  column with a coarser domain, if any.
    """

    words: str
    changes: Changes
    cost: str = ""
    weaker: bool = False
    coarser: str = ""

    @property
    def reads(self) -> bool:
        """True if the change concerns the values of a column, so that the table is read again."""
        return "columns" in self.changes and not self.weaker


@dataclass(frozen=True)
class Unchanged:
    """Figures of the unchanged job. loss: the loss of all rows; a suppressed row counts as lost."""

    figures: Figures
    loss: float


@dataclass(frozen=True)
class Suggestion:
    """Change with the figures of the changed job, and with its loss in the measure of the unchanged job.

    unchanged:  None if no table meets the requirement of the unchanged job.
    """

    change: Change
    figures: Figures
    unchanged: Unchanged | None
    after: float
    used: int = field(repr=False)

    @property
    def freed(self) -> float:
        """Loss that the change frees."""
        return (1 if self.unchanged is None else self.unchanged.loss) - self.after

    @property
    def before(self) -> float | None:
        """Mean loss in the report of the unchanged job."""
        return None if self.unchanged is None else self.unchanged.figures.loss

    @property
    def sentence(self) -> str:
        after = f"{self.figures.loss:.1%}"
        if self.before is None:
            lowers = f"makes a table possible, with a mean loss of {after}"
        elif self.figures.loss < self.before:
            lowers = f"lowers the mean loss from {self.before:.1%} to {after}"
        else:  # rows come back, and their detail is worth more than the rise
            lowers = f"keeps more rows, with a mean loss of {after}, not {self.before:.1%}"
        gone = self.figures.withheld
        rows = f"; {counted(gone, 'row', 'rows')} of {self.used:,} leave the table" if gone else ""
        return f"{self.change.words} {lowers}{rows}.{f' {self.change.cost}' if self.change.cost else ''}"

    @property
    def fields(self) -> dict[str, Any]:
        measure = {"loss_before": self.before, "loss_after": self.figures.loss, "weaker": self.change.weaker}
        told = {"change": self.change.words, "changes": dict(self.change.changes), "sentence": self.sentence}
        return {**told, **measure, "figures": self.figures.fields}


@dataclass(frozen=True)
class Suggested:
    """All changes that free detail, the best first, with the unchanged job's state.

    before:   mean loss in the report of the unchanged job; None if no table meets the requirement.
    unmet:    reason that no table meets the requirement of the unchanged job, if so.
    reasons:  by whole column, the reason that the column is no finer.
    tried:    number of changes with a table.
    compared: number of changes of columns that were first compared without `withhold`; 0 if all changes were tried.
    untried:  number of changes beyond ``MOST_CHANGES``.
    """

    before: float | None
    unmet: str
    reasons: dict[str, str]
    tried: int
    best: tuple[Suggestion, ...]
    compared: int = 0
    untried: int = 0

    def as_strong(self, most: int = 3) -> list[Suggestion]:
        """Return the best changes that keep K, L and C, one of each setting."""
        return _of_different_settings(each for each in self.best if not each.change.weaker)[:most]

    def weaker(self, most: int = 2) -> list[Suggestion]:
        """Return the best changes with a weaker K, L or C, one of each setting."""
        return _of_different_settings(each for each in self.best if each.change.weaker)[:most]

    @property
    def why(self) -> list[str]:
        """Reasons that the unchanged job has no table, or whole columns, in words."""
        unmet = [] if self.before is not None else [f"the job itself cannot be met: {self.unmet}"]
        return [
            *unmet,
            *(f"{name} stays whole: {reason}" for name, reason in self.reasons.items()),
            *self._untried_words,
        ]

    @property
    def _untried_words(self) -> list[str]:
        """Say how many changes were not tried."""
        if not self.untried:
            return []
        further = counted(self.untried, "further change was", "further changes were")
        return [
            f"{further} not tried, of the last columns or without a column: a suggestion tries at most "
            f"{MOST_CHANGES}; a job with fewer quasi-identifiers has fewer changes"
        ]

    @property
    def lines(self) -> list[str]:
        """Best changes in words, first the changes that protect as much as the job."""
        said = [f"  {each.sentence}" for each in self.as_strong()]
        weaker = [f"  {each.sentence}" for each in self.weaker()]
        return [
            *(["that keep K, L and C:", *said] if said else []),
            *(["that protect less:", *weaker] if weaker else []),
        ]


def _of_different_settings(suggestions: Iterable[Suggestion]) -> list[Suggestion]:
    """Return the first suggestion of each setting, in order. The first is the best, and of equals the smallest."""
    found: dict[str, Suggestion] = {}
    for each in suggestions:
        words = each.change.words
        found.setdefault(next((setting for setting in _GRADED if words.startswith(setting)), words), each)
    return list(found.values())


_GRADED = ("`refine:", "`withhold:", "`K:")
"""Beginnings of changes of which several are tried, a smaller change before a larger one."""


def changes_of(task: Task) -> list[Change]:
    """Return the changes to try, the smaller change first. A job may refuse some of the changes."""
    return list(islice(_changes(task), MOST_CHANGES))


def number_untried(task: Task) -> int:
    """Return the number of changes beyond :func:`changes_of`."""
    return sum(1 for _ in _changes(task)) - len(changes_of(task))


def _changes(task: Task) -> Iterator[Change]:
    job = task.job
    top_down = job.lkc.method == TOP_DOWN
    if top_down:
        if job.goal == "classification":
            (name,) = job.names("class")
            cost = f"Groups predict {name} less well: detail is kept that tells nothing of the class."
            yield Change("`goal: general`", with_goal(job, "general"), cost)
        yield from _refined(job)
    for share in _SHARES:
        if top_down and share > (job.lkc.withhold or 0):
            yield Change(f"`withhold: {share}`", of_lkc(withhold=str(share)))
    yield from _weaker(job)
    if top_down:
        yield from _coarser(task)
    yield from _dropped(job)


def _refined(job: Job) -> Iterator[Change]:
    """Yield `refine: child` at every column with a taxonomy, and at all of these columns together."""
    names = [
        name
        for name in job.names("qid")
        if job.columns[name].taxonomy is not None and job.columns[name].refine != "child"
    ]
    for chosen in [*([name] for name in names), *([names] if len(names) > 1 else [])]:
        yield Change(
            f"`refine: child` at {', '.join(chosen)}",
            {"columns": {name: {"refine": "child"} for name in chosen}},
            "Values leave a group one by one, and the remaining values are published as `other`.",
        )


def _weaker(job: Job) -> Iterator[Change]:
    (entry,) = entries_of(job)
    k, known = entry.said.K, entry.known
    for less in dict.fromkeys((k - max(1, k // 5), k // 2)):
        if less > 1:
            sizes = f"{less}" if less == k - 1 else f"{less} to {k - 1}"
            cost = f"Weaker: groups of {sizes} records become possible."
            yield Change(f"`K: {less}`", of_lkc(K=less), cost, weaker=True)
    for name, bound in entry.bounds.items():
        more = next((step for step in _BOUNDS if step > bound), None)
        if bound < 1 and more is not None:
            cost = f"Weaker: a protected value of {name} may be inferred with confidence up to {float(more):.0%}."
            words = f"`C: {more}`" if len(entry.bounds) == 1 else f"`C: {more}` of {name}"
            yield Change(words, _with_bound(job, name, more), cost, weaker=True)
    if known > 1:
        cost = f"Weaker: nothing bounds readers who know {known} quasi-identifiers."
        yield Change(f"`L: {known - 1}`", of_lkc(L=known - 1), cost, weaker=True)


def _with_bound(job: Job, name: str, c: Fraction) -> Changes:
    """Return the change of C of a sensitive column, at the place where the job states C."""
    lkc = job.lkc
    assert isinstance(lkc, LkcModel)
    if not isinstance(lkc.C, Fraction) and name in lkc.C:
        return of_lkc(C={name: str(c)})
    if job.columns[name].C is not None or len(job.names("sensitive")) > 1:
        return {"columns": {name: {"C": str(c)}}}
    return of_lkc(C=str(c))


def _coarser(task: Task) -> Iterator[Change]:
    """Yield domains with fewer cells: larger cells of numbers, fewer levels of dates and of taxonomies."""
    for name in task.job.names("qid"):
        values, dates = task.taxonomies[name], task.job.columns[name].dates
        found = None
        if isinstance(values, Grid):
            found = _with_larger_cells(task.job.columns[name]) if values.n_cells > 2 else None
        elif dates is not None:
            found = _with_fewer_levels(dates)
        elif task.job.columns[name].taxonomy is not None:
            found = _without_lowest_level(values)
        if found is not None:
            words, keys = found
            cost = "No released value is finer than a cell of the coarser domain, and the loss counts these cells."
            yield Change(f"{words} at {name}", {"columns": {name: keys}}, cost, coarser=name)


def _with_fewer_levels(dates: DateDomain) -> tuple[str, dict[str, Any]] | None:
    """Return the change to levels without the finest, in words and as keys; None if no level is left.

    The domain begins and ends with a unit of every level.
    """
    levels, ends = dates.levels or (), [date.fromisoformat(day) for day in (dates.start, dates.to)]
    for n in range(len(levels) - 1, 0, -1):
        if all(map(LEVELS[levels[n - 1]].begins, ends)):
            return f"`levels: [{', '.join(levels[:n])}]`", {"dates": {"levels": list(levels[:n])}}
    return None


def _without_lowest_level(taxonomy: Taxonomy) -> tuple[str, dict[str, Any]] | None:
    """Return the change to a taxonomy a level less deep, in words and as keys; None if only the root has groups."""
    level = max(depths_of(taxonomy)) - 1
    return (f"`level: {level}`", {"level": level}) if level > 0 else None


def _with_larger_cells(column: Column) -> tuple[str, dict[str, Any]]:
    """Return the change to a grid with every second edge, in words and as keys."""
    if column.dates is not None:
        assert column.dates.step is not None  # calendar units are no grid
        found = _STEP.fullmatch(column.dates.step)
        assert found is not None  # as the job was read
        step = f"{2 * int(found[1])}{found[2]}"
        return f"`step: {step}`", {"dates": {"step": step}}
    assert column.numeric is not None
    if column.numeric.cuts is not None:
        return "every second of the `cuts`", {
            "numeric": {"cuts": [str(c) for c in column.numeric.cuts[1::2]]}
        }
    assert column.numeric.step is not None
    return f"`step: {2 * column.numeric.step}`", {"numeric": {"step": str(2 * column.numeric.step)}}


def _dropped(job: Job) -> Iterator[Change]:
    names = job.names("qid")
    (entry,) = entries_of(job)
    for name in names if len(names) > 1 else ():
        changes: Changes = {"columns": {name: None}}
        if entry.said.columns is not None:
            rest = [other for other in entry.said.columns if other != name]
            changes = joined([changes, of_lkc(columns=rest or None)])
        cost = f"The table loses {name}, and the mean is that of the other columns."
        yield Change(f"no column {name}", changes, cost)


def compared_first(task: Task) -> list[Change]:
    """Return the changes of columns that are compared before a part of them is tried; empty if all are tried."""
    if not task.job.lkc.withhold:
        return []
    of_columns = [change for change in changes_of(task) if change.reads]
    return of_columns if len(of_columns) > MOST_SEARCHES else []


def number_of_runs(task: Task) -> int:
    """Return the number of changed jobs that are measured for suggestions."""
    compared = len(compared_first(task))
    return len(changes_of(task)) + (MOST_SEARCHES if compared else 0)


def explored(
    explorer: Explorer, grid: Sequence[Changes], *, suggest: bool, trial: Callable[[int, int], None]
) -> tuple[list[Point], Suggested | None]:
    """Run the points of a grid, and with ``suggest`` the changes of the job.

    trial:  is told the number of each run, and of how many.
    """
    n = len(grid)
    most = n + (number_of_runs(explorer.task) if suggest else 0)
    found = []
    for number, point in enumerate(explorer.points(grid), start=1):
        trial(number, most)
        found.append(point)
    return found, suggested(explorer, lambda number: trial(n + number, most)) if suggest else None


def suggested(explorer: Explorer, trial: Callable[[int], None]) -> Suggested:
    """Try the changes on the table, and return the changes that free detail.

    trial:  is told the number of each run, of :func:`number_of_runs`.
    """
    task, compared = explorer.task, compared_first(explorer.task)
    unchanged, unmet, reasons = None, "", {}
    try:
        found = measured(task, explorer.loaded)
    except REFUSED as error:
        unmet = explorer.reason(error)
    else:
        unchanged = Unchanged(found.figures, _loss(explorer, found, None))
        told = found.made.noted.reasons
        reasons = {name: told[name] for name in found.figures.whole if name in told}
    left = _promising(explorer, compared, trial)
    changes = [change for change in changes_of(task) if change not in compared or change in left]
    made = _all_tried(explorer, changes, unchanged, lambda number: trial(len(compared) + number))
    freeing = [each for each in made if round(each.freed, _SAME_LOSS) > 0]
    best = sorted(
        freeing, key=lambda each: -round(each.freed, _SAME_LOSS)
    )  # of equals the smaller change first
    before = None if unchanged is None else unchanged.figures.loss
    return Suggested(before, unmet, reasons, len(made), tuple(best), len(compared), number_untried(task))


def _promising(explorer: Explorer, compared: list[Change], trial: Callable[[int], None]) -> list[Change]:
    """Return the changes with the least loss in runs without `withhold`."""
    shorter = [replace(each, changes=joined([each.changes, of_lkc(withhold=None)])) for each in compared]
    found = _all_tried(explorer, shorter, None, trial)
    best = sorted(found, key=lambda each: round(each.after, _SAME_LOSS))[:MOST_SEARCHES]
    words = {each.change.words for each in best}
    return [change for change in compared if change.words in words]


def _all_tried(
    explorer: Explorer, changes: Sequence[Change], unchanged: Unchanged | None, trial: Callable[[int], None]
) -> list[Suggestion]:
    """Try changes, in order; leave out changes that are refused, or with which no table meets the requirement.

    Only this process reads tables: a reader's threads do not survive a fork.
    """
    made: list[Suggestion | None] = []
    pays = explorer.is_large
    for first in range(0, len(changes), _BATCH):
        batch = changes[first : first + _BATCH]
        read = [_read(explorer, change) for change in batch]
        places = range(len(batch))  # numbers, because items are pickled
        tried = mapped(lambda i: _tried(explorer, batch[i], read[i], unchanged), places, pays=pays)  # noqa: B023
        for each in tried:
            made.append(each)
            trial(len(made))
    return [each for each in made if each is not None]


def _read(explorer: Explorer, change: Change) -> tuple[Task, Loaded] | None:
    """Return a changed job with its table; None if the change is refused."""
    try:
        task = explorer.load(change.changes)
        return task, form_of(task.job).load(explorer.source, task) if change.reads else explorer.loaded
    except REFUSED:
        return None


def _tried(
    explorer: Explorer, change: Change, read: tuple[Task, Loaded] | None, unchanged: Unchanged | None
) -> Suggestion | None:
    """Measure a changed job; None if the change is refused, or if no table meets the requirement."""
    if read is None:
        return None
    task, loaded = read
    try:
        found = measured(task, loaded)
    except REFUSED:
        return None
    after = _loss(explorer, found, change)
    return Suggestion(change, found.figures, unchanged, after, loaded.table.n_records)


def _loss(explorer: Explorer, found: Measured, change: Change | None) -> float:
    """Return the loss of a table, per row and column of the unchanged job."""
    losses = dict(found.figures.losses)
    if change is not None and change.coarser:
        losses[change.coarser] = _loss_in_cells(explorer.task, found, change.coarser)
    kept = sum(1 - loss for loss in losses.values()) * found.figures.rows
    return 1 - kept / (explorer.loaded.table.n_records * len(explorer.task.job.names("qid")))


def _loss_in_cells(task: Task, found: Measured, name: str) -> float:
    """Return the loss of a column with a coarser domain, in cells of the unchanged domain."""
    made, cells = found.made, task.taxonomies[name]
    assert isinstance(made, CutSingle)  # only top-down jobs have these changes
    number = next(i for i, column in enumerate(made.outcome.schema.qid) if column.name == name)
    inside = _cells_inside(cells, made.task.taxonomies[name])
    nodes = made.outcome.cut.nodes[number]
    covered = np.array([inside[node.leaves].sum() - 1 for node in nodes], dtype=np.float64)
    average = np.average(covered[found.release.columns[name].codes], weights=found.release.counts)
    return float(average / (cells.root.last - 1))


def _cells_inside(cells: Taxonomy | Grid, coarse: Taxonomy | Grid) -> Ints:
    """Return the number of cells of a domain in each cell of a coarser domain."""
    if isinstance(cells, Grid):
        assert isinstance(coarse, Grid)
        edges = {edge: number for number, edge in enumerate(cells.edges)}
        place = [*(edges[edge] for edge in coarse.edges), cells.root.last]
        return np.diff(place)[: coarse.root.last]
    assert isinstance(coarse, Taxonomy)
    if isinstance(coarse, ShallowTaxonomy):  # both read the same raw values
        leaf, above = cells.leaf_index(), coarse.leaf_index()
        inside = {leaf[value]: number for value, number in above.items()}
        return np.bincount(list(inside.values()), minlength=len(coarse.leaves))
    # Units of the calendar without the finest levels.
    sizes = {cells.label(node): node.n_leaves for node in reversed(cells.nodes)}
    return np.array([sizes[unit] for unit in coarse.leaves], dtype=np.int64)
