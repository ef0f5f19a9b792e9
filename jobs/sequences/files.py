"""Files of a release of sequences. In a joint run all files follow from the result."""

from __future__ import annotations

from pathlib import Path

from anonymize.release import Release
from jobs.release.csv import TABLE, write_csv
from jobs.sequences.report import n_maximal_frequent, sweeps_fields, told_by_table
from jobs.sequences.reread import Reread, reread
from jobs.sequences.result import SequencesResult
from jobs.sequences.verify import Verified, require_verified
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Rendered, Task


def write_table(task: Task, folder: Path, release: Release, watch: Stopwatch) -> tuple[Reread, Verified]:
    """Verify, then write; return the records as readers see the table, and the findings. Raises PartyError."""
    with watch.phase("verify"):
        found = _read_and_verified(task, release)
    with watch.phase("write"):
        write_csv(release, folder / TABLE)
    return found


def _read_and_verified(task: Task, release: Release) -> tuple[Reread, Verified]:
    """Read a table as its readers do, and verify the table. Raises PartyError."""
    seen = reread(release, task)
    return seen, require_verified(task, seen.paths, seen.schema)


def render(task: Task, result: SequencesResult) -> Rendered:
    """Return table and report of a joint release. Raises PartyError if the table does not meet its requirement."""
    table = result.table
    verified = require_verified(task, table, task.schema)
    n_rows, n_maximal = result.release.n_rows, n_maximal_frequent(task, table)
    report = {
        **told_by_table(task, table, n_rows, verified, n_maximal),
        **task.mode.fields(task, None, table),
        **sweeps_fields(result.sweeps),
        "reveals": list(result.reveals),
    }
    return Rendered({TABLE: result.csv}, report)


def made_of(task: Task, collected: Collected) -> Rendered:
    """Make the release of a joint run. Raises PartyError unless the release passes the verification of readers."""
    result: SequencesResult = collected.result
    _read_and_verified(task, result.release)
    return render(task, result)
