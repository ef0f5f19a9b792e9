"""A party's side of a joint kd run."""

from __future__ import annotations

from anonymize.criteria.size import least_size
from anonymize.joint.kd.sealed import KdRequest, anonymize_kd_sealed
from anonymize.kd.single import the_entry
from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Loaded, Table
from jobs.lkc.kd.result import KdResult, decode_result, result_of
from jobs.lkc.linked_columns import counted_apart
from jobs.lkc.own_links import links_of
from jobs.lkc.requirement import requirement
from jobs.task import Task


def run_sealed(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[KdResult]:
    """Run horizontal, sealed: counts are shared between leader and deputy."""
    assert isinstance(table, Loaded)
    request = KdRequest(task.schema, requirement(task), task.digest, counted_apart(task.job))
    outcome = yield from anonymize_kd_sealed(
        task.roster(me), table.table, request, rng, mode=task.mode.name, observer=observer
    )
    return result_of(outcome, _least(task), counted_apart(task.job), links_of(task.job, table))


def decode(task: Task, encoded: bytes, sender: str) -> KdResult:
    """Read a result. Raises PartyError (peer-protocol) for anything malformed."""
    return decode_result(encoded, task.result_schema, _least(task), sender, counted_apart(task.job))


def _least(task: Task) -> int:
    return least_size(the_entry(requirement(task), task.schema).criteria)
