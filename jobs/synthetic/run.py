"""A party's side of a joint run."""

from __future__ import annotations

from anonymize.joint.synthetic.horizontal import synthesize_horizontally
from anonymize.joint.synthetic.run import JointSyntheticOutcome
from anonymize.joint.synthetic.vertical import synthesize_vertically
from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Loaded, LoadedColumns, Table
from jobs.dp.budget import counting
from jobs.synthetic.requirement import request
from jobs.synthetic.result import SyntheticResult, decode_result, joint_result
from jobs.task import Task


def run_horizontally(
    task: Task, me: str, table: Table, rng: Rng, observer: Observer
) -> Rounds[SyntheticResult]:
    """Run with rows of two or more parties."""
    assert isinstance(table, Loaded)
    roster, mode, ours = task.roster(me), task.mode.name, counting(task, table, rng)
    joint = yield from synthesize_horizontally(roster, ours, request(task), rng, mode=mode, observer=observer)
    return _result(task, joint)


def run_vertically(
    task: Task, me: str, table: Table, rng: Rng, observer: Observer
) -> Rounds[SyntheticResult]:
    """Run with columns of two parties."""
    assert isinstance(table, LoadedColumns)
    roster, mode = task.roster(me), task.mode.name
    joint = yield from synthesize_vertically(
        roster, task.holders, table.holding, request(task), rng, mode=mode, observer=observer
    )
    return _result(task, joint)


def _result(task: Task, joint: JointSyntheticOutcome) -> SyntheticResult:
    """Return the result through its bytes: the kept bytes are the bytes for all readers."""
    return decode_result(joint_result(joint).encoded, task, "this party")


def check(task: Task) -> None:
    """Refuse jobs that cannot be computed, without data. Raises SchemaError or PrivacyError."""
    request(task).check(0)
