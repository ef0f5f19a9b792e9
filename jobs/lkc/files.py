"""The files of an LKC release: written by whoever makes it, and checked by the parties it is delivered to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonymize.lkc.metrics import published_class_counts
from anonymize.release import Release, cut_labels
from anonymize.tds import Outcome
from jobs.errors import PartyError, json_object
from jobs.lkc.parts import COLUMNS, known_of
from jobs.lkc.release import release_of_result
from jobs.lkc.report import build_report, protected_fields, write_report
from jobs.lkc.result import LkcResult
from jobs.lkc.verify import ByRow, Verified, require_counted, require_verified, verified_fields
from jobs.release_csv import REPORT, TABLE, most_csv_bytes, read_csv, same_rows, write_csv
from jobs.report import asked_fields, check_sums, joint_fields, printed_candidate, require_same_fields
from jobs.signatures import SIGNATURES
from jobs.stopwatch import Stopwatch
from jobs.sums import SUMS, file_fields
from jobs.task import Collected, Task


def write_joint_release(task: Task, folder: Path, collected: Collected, watch: Stopwatch) -> bytes:
    """Make, verify and write the table of a joint run, its report and digests; return the digest of the release."""
    result: LkcResult = collected.result
    with watch.phase("release"):
        release = release_of_result(task, result, collected.parts)
    verified = write_table(task, folder, release, watch)
    schema = result.outcome.schema
    counts = [published_class_counts(result.generalized, schema, i) for i in range(len(schema.qid))]
    report = build_report(task, result.outcome, release, verified, counts, reveals=result.reveals)
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


def check_delivery(
    task: Task, result: LkcResult, files: Mapping[str, bytes], parts: Mapping[str, bytes]
) -> None:
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
    ours = known_of(result, parts.get(COLUMNS))
    if not same_rows(release, ours, list(ours.columns)):
        raise PartyError("result-mismatch", "the delivered table is not the one that was computed")
    verified = require_verified(release, task)
    follows = _following_fields(task, result.outcome, release, verified) | {
        "files": file_fields({TABLE: files[TABLE]})
    }
    require_same_fields(follows, report | {key: _places(report.get(key)) for key in _STEPS})


def most_bytes(task: Task, result: LkcResult) -> int:
    """How large the delivered table may be, by the public result; 0 where it has raw values, which we do not know."""
    schema, cut = result.outcome.schema, result.outcome.cut
    labels: dict[str, Sequence[str]] = {c.name: cut_labels(c, cut, i) for i, c in enumerate(schema.qid)}
    if schema.class_name is not None:
        labels[schema.class_name] = schema.classes
    labels |= {sensitive.name: sensitive.domain for sensitive in schema.sensitive}
    for name in task.job.published:
        if name not in labels:
            domain = task.job.columns[name].domain
            if domain is None:
                return 0
            labels[name] = domain
    return most_csv_bytes(labels, result.generalized.n_records)


_STEPS = ("specializations", "discarded")


def _places(steps: Any) -> Any:
    """The specializations of a report without their scores, which the coordinator computes."""
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return None
    return [{key: step.get(key) for key in ("attribute", "value", "children")} for step in steps]


def _following_fields(
    task: Task, outcome: Outcome, release: Release, verified: Sequence[Verified]
) -> dict[str, Any]:
    """What of the report of a joint LKC run follows from the job and the result."""
    schema = outcome.schema
    return {
        **asked_fields(task),
        **joint_fields(task),
        "requirements": verified_fields(verified),
        "sensitive": protected_fields(task, release),
        "rows": release.n_rows,
        "cut": {c.name: list(cut_labels(c, outcome.cut, i)) for i, c in enumerate(schema.qid)},
        "specializations": [printed_candidate(schema, s.candidate) for s in outcome.steps if s.applied],
        "discarded": [printed_candidate(schema, s.candidate) for s in outcome.steps if not s.applied],
    }
