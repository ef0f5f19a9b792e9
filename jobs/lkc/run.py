"""A party's side of a joint LKC run, for each mode."""

from __future__ import annotations

import numpy as np

from anonymize.criteria.criterion import SideInputs
from anonymize.joint.lkc.led import anonymize_led
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.sealed import anonymize_sealed
from anonymize.joint.lkc.strict import anonymize_strict
from anonymize.joint.lkc.vertical import anonymize_vertically
from anonymize.joint.lkc.winner import Maximum, OpenMaximum, SealedMaximum
from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Loaded, LoadedColumns, Table
from jobs.lkc.joint_score import joint_score
from jobs.lkc.linked_columns import counted_apart
from jobs.lkc.own_links import links_of
from jobs.lkc.requirement import requirement, side_inputs
from jobs.lkc.result import LkcResult, result_of, vertical_result_of
from jobs.task import Task


def run_sealed(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[LkcResult]:
    """Run horizontal, sealed: counts are shared between leader and deputy."""
    assert isinstance(table, Loaded)
    asked, ours = request(task), _beside(task, me, table)
    outcome = yield from anonymize_sealed(
        task.roster(me), table.table, asked, rng, mode=task.mode.name, observer=observer, side_inputs=ours
    )
    return result_of(outcome, asked.linked, links_of(task.job, table))


def run_strict(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[LkcResult]:
    """Run horizontal, strict: like sealed, and nothing of a discarded candidate is opened."""
    assert isinstance(table, Loaded)
    outcome = yield from anonymize_strict(
        task.roster(me), table.table, request(task), rng, mode=task.mode.name, observer=observer
    )
    return result_of(outcome)


def _beside(task: Task, me: str, loaded: Loaded) -> SideInputs:
    """Return side counts with all our rows as our own."""
    return side_inputs(task, loaded, np.full(len(loaded.table.weights), task.job.roster.index(me)))


def run_led(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[LkcResult]:
    """Run horizontal, as published: the leader learns the sums."""
    assert isinstance(table, Loaded)
    sums = task.job.lkc.secure_sum
    assert sums is not None  # in every job of the mode
    outcome = yield from anonymize_led(
        task.roster(me),
        table.table,
        request(task),
        rng,
        mode=task.mode.name,
        sums=sums,
        observer=observer,
        side_inputs=_beside(task, me, table),
    )
    return result_of(outcome)


def run_vertically(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[LkcResult]:
    """Run vertical, sealed: scores are compared inside a circuit."""
    return _vertically(task, me, table, rng, observer, SealedMaximum)


def run_vertically_led(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[LkcResult]:
    """Run vertical, as published: every party tells the peers its best score."""
    return _vertically(task, me, table, rng, observer, OpenMaximum)


def _vertically(
    task: Task, me: str, table: Table, rng: Rng, observer: Observer, maximum: type[Maximum]
) -> Rounds[LkcResult]:
    assert isinstance(table, LoadedColumns)
    outcome = yield from anonymize_vertically(
        task.roster(me),
        task.holders,
        table.holding,
        request(task),
        rng,
        mode=task.mode.name,
        maximum=maximum,
        observer=observer,
    )
    return vertical_result_of(outcome)


def request(task: Task) -> Request:
    """Return the computation agreed by all parties."""
    return Request(
        task.schema, requirement(task), joint_score(task.job), task.digest, counted_apart(task.job)
    )
