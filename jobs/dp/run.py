"""A party's side of a joint DP run, for each mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from anonymize.joint.dp.horizontal import release_horizontally
from anonymize.joint.dp.run import JointDpOutcome
from anonymize.joint.dp.thesis.horizontal import release_horizontally_as_published
from anonymize.joint.dp.thesis.vertical import release_vertically_as_published
from anonymize.joint.dp.vertical import release_vertically
from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Loaded, LoadedColumns, Table
from jobs.dp.budget import counting
from jobs.dp.requirement import request
from jobs.dp.result import DpResult, joint_result
from jobs.task import Task

Release: TypeAlias = Callable[..., Rounds[JointDpOutcome]]
"""Protocol, in circuits or as published."""


def run_horizontally(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[DpResult]:
    """Run horizontal, in circuits."""
    return _horizontally(task, me, table, rng, observer, release_horizontally)


def run_horizontally_as_published(
    task: Task, me: str, table: Table, rng: Rng, observer: Observer
) -> Rounds[DpResult]:
    """Run horizontal, by the published protocols."""
    return _horizontally(task, me, table, rng, observer, release_horizontally_as_published)


def run_vertically(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[DpResult]:
    """Run vertical, in circuits."""
    return _vertically(task, me, table, rng, observer, release_vertically)


def run_vertically_as_published(
    task: Task, me: str, table: Table, rng: Rng, observer: Observer
) -> Rounds[DpResult]:
    """Run vertical, by the published protocols."""
    return _vertically(task, me, table, rng, observer, release_vertically_as_published)


def _horizontally(
    task: Task, me: str, table: Table, rng: Rng, observer: Observer, release: Release
) -> Rounds[DpResult]:
    assert isinstance(table, Loaded)
    roster, mode, ours = task.roster(me), task.mode.name, counting(task, table, rng)
    outcome = yield from release(roster, ours, request(task), rng, mode=mode, observer=observer)
    return joint_result(outcome, task)


def _vertically(
    task: Task, me: str, table: Table, rng: Rng, observer: Observer, release: Release
) -> Rounds[DpResult]:
    assert isinstance(table, LoadedColumns)
    roster, mode = task.roster(me), task.mode.name
    outcome = yield from release(
        roster, task.holders, table.holding, request(task), rng, mode=mode, observer=observer
    )
    return joint_result(outcome, task)
