"""The files of an LKC release: written by whoever makes it, and checked by the parties it is delivered to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from anonymize.release import Release
from jobs.errors import PartyError, json_object
from jobs.lkc.parts import COLUMNS, known_of
from jobs.lkc.release import release_of_result, table_of_rows
from jobs.lkc.report import protected_fields, write_report
from jobs.lkc.result import Made
from jobs.lkc.values import values_of
from jobs.lkc.verify import ByRow, Verified, require_counted, require_verified, verified_fields
from jobs.release_csv import REPORT, TABLE, most_csv_bytes, read_csv, same_rows, write_csv
from jobs.report import asked_fields, check_sums, joint_fields, require_same_fields
from jobs.signatures import SIGNATURES
from jobs.stopwatch import Stopwatch
from jobs.sums import SUMS, file_fields
from jobs.task import Collected, Task


def write_joint_release(task: Task, folder: Path, collected: Collected, watch: Stopwatch) -> bytes:
    """Make, verify and write the table of a joint run, its report and digests; return the digest of the release."""
    result: Made = collected.result
    with watch.phase("release"):
        release = release_of_result(task, result, collected.parts, collected.key)
    verified = write_table(task, folder, release, watch)
    report = result.report(task, release, verified)
    report[SIGNATURES] = collected.signatures
    return write_report(folder, report, watch.seconds, collected.parties)


def write_table(
    task: Task,
    folder: Path,
    release: Release,
    watch: Stopwatch,
    known: ByRow | None = None,
) -> tuple[Verified, ...]:
    """Verify, then write; return what was found. ``known``: what one holder of all rows can count besides."""
    with watch.phase("verify"):
        verified = require_verified(release, task)
        if known is not None:
            require_counted(known, task)
    with watch.phase("write"):
        write_csv(release, folder / TABLE)
    return verified


def check_delivery(task: Task, result: Made, files: Mapping[str, bytes], parts: Mapping[str, bytes]) -> None:
    """Check files the coordinator delivers against what we computed ourselves. Raises PartyError.

    Of the report everything that follows from job and result; scores, metrics, words, the time, the versions and the
    costs are the coordinator's alone.

    parts:  what we sent: of a vertical job the columns that we contributed.
    """
    report = json_object(files[REPORT])
    if report is None or report.get("job_sha256") != task.digest.hex():
        raise PartyError("result-mismatch", "the delivered report is about another job")
    if report.get("reveals") != list(result.reveals):
        raise PartyError("result-mismatch", "the delivered report tells of other reveals than there were")
    check_sums(files, {name: content for name, content in files.items() if name != SUMS})
    release = read_csv(files[TABLE], task.job.published)
    ours = _known(task, result, parts)
    if not same_rows(release, ours, list(ours.columns)):
        raise PartyError("result-mismatch", "the delivered table is not the one that was computed")
    verified = require_verified(release, task)
    follows = {
        **asked_fields(task),
        **joint_fields(task),
        "requirements": verified_fields(verified),
        "sensitive": protected_fields(task, release),
        "rows": release.n_rows,
        **result.follows(),
        "files": file_fields({TABLE: files[TABLE]}),
    }
    require_same_fields(follows, result.comparable(report))


def _known(task: Task, result: Made, parts: Mapping[str, bytes]) -> Release:
    """The delivered table as far as we know it: where rows were mixed, all of it."""
    if result.mixed is not None and result.mixed.rows is not None:
        return table_of_rows(task, result, result.mixed.rows)
    return known_of(result, parts.get(COLUMNS))


def most_bytes(task: Task, result: Made) -> int:
    """How large the delivered table may be, by the result; 0 where it has raw values that we do not know."""
    if result.mixed is not None and result.mixed.rows is not None:
        table = table_of_rows(task, result, result.mixed.rows)
        return most_csv_bytes({name: c.labels for name, c in table.columns.items()}, table.n_rows)
    schema, labels = result.schema, result.labels
    if schema.class_name is not None:
        labels[schema.class_name] = schema.classes
    labels |= {sensitive.name: sensitive.domain for sensitive in schema.sensitive}
    labels |= {n: values_of(task, n).published for n in task.job.names("sensitive") if n not in labels}
    for name in task.job.published:
        if name not in labels:
            domain = task.job.columns[name].domain
            if domain is None:
                return 0
            labels[name] = domain
    return most_csv_bytes(labels, result.n_records)
