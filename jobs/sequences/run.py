"""A party's side of a joint run of sequences."""

from __future__ import annotations

from anonymize.joint.trajectory.sealed import SequencesRequest, suppress_sealed
from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Table
from jobs.sequences.reading import Tracks, settings
from jobs.sequences.result import SequencesResult, bounds_in, coding_of, result_of
from jobs.sequences.verify import require_verified
from jobs.task import Task


def run_sealed(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[SequencesResult]:
    """Run horizontal, sealed: a bit is opened for every sequence, and the records go through a shuffle.

    Raises PartyError if the resulting table does not meet the requirement, counted by independent code.
    """
    assert isinstance(table, Tracks)
    request = SequencesRequest(
        bounds_in(task), coding_of(task), settings(task.job).max_candidates, task.digest
    )
    joint = yield from suppress_sealed(
        task.roster(me), table.paths, request, rng, mode=task.mode.name, observer=observer
    )
    require_verified(task, joint.table, task.schema)
    return result_of(task, joint, table.paths)


def check_schema(task: Task) -> None:
    """Refuse jobs that cannot be computed, without data. Raises SchemaError."""
    task.schema.require_few_cells()
    coding_of(task)


def records_mixed(task: Task) -> bool:
    """Return True: leader and deputy combine the records of all parties."""
    return True
