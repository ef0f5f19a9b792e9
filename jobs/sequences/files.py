"""The files of a release of sequences: written by whoever makes it; of a joint one checked by the parties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anonymize.release import Release
from jobs.errors import PartyError
from jobs.release.checking import check_delivered
from jobs.release.csv import TABLE, write_csv
from jobs.release.report import SIGNATURES, require_no_more, require_same_fields, write_report_of
from jobs.release.sums import file_fields
from jobs.sequences.report import build_report, n_maximal_frequent, sweeps_fields, told_by_table
from jobs.sequences.reread import Reread, reread
from jobs.sequences.result import SequencesResult
from jobs.sequences.verify import Verified, require_verified
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Task


def write_table(task: Task, folder: Path, release: Release, watch: Stopwatch) -> tuple[Reread, Verified]:
    """Verify, then write; return what readers see in the table, and what was found of it. Raises PartyError."""
    with watch.phase("verify"):
        seen = reread(release, task)
        verified = require_verified(task, seen.paths, seen.schema)
    with watch.phase("write"):
        write_csv(release, folder / TABLE)
    return seen, verified


def write_joint_release(task: Task, folder: Path, collected: Collected, watch: Stopwatch) -> bytes:
    """Make, verify and write the table of a joint run, its report and digests; return the digest of the release."""
    result: SequencesResult = collected.result
    with watch.phase("release"):
        release = result.release
    seen, verified = write_table(task, folder, release, watch)
    with watch.phase("report"):
        n_maximal = n_maximal_frequent(task, seen.paths)
        report = build_report(task, seen.paths, release.n_rows, verified, n_maximal, reveals=result.reveals)
        report |= sweeps_fields(result.sweeps)
        report[SIGNATURES] = collected.signatures
    return write_report_of(folder, (TABLE,), report, watch.seconds, collected.parties)


def check_delivery(task: Task, result: SequencesResult, files: Mapping[str, bytes]) -> None:
    """Check files the coordinator delivers against what we computed ourselves. Raises PartyError.

    The table byte by byte; of the report everything that follows from job and result.
    """
    report = check_delivered(task, files, result.reveals)
    if result.csv != files[TABLE]:
        raise PartyError("result-mismatch", "the delivered table is not the one that was computed")
    ours = follows(task, result)
    require_no_more(report, {*ours, "reveals", SIGNATURES})
    require_same_fields(ours | {"files": file_fields({TABLE: files[TABLE]})}, report)


def follows(task: Task, result: SequencesResult) -> dict[str, Any]:
    """What of a report follows from the job and the result."""
    verified = require_verified(task, result.table, task.schema)
    n_maximal = n_maximal_frequent(task, result.table)
    told = told_by_table(task, result.table, result.release.n_rows, verified, n_maximal)
    return told | task.mode.fields(task, None, result.table) | sweeps_fields(result.sweeps)


def most_bytes(result: SequencesResult) -> int:
    """How large the delivered table is."""
    return len(result.csv)
