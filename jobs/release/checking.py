"""A report held against job and release: by the parties that it is delivered to, and by whoever verifies a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from jobs.data.counted import counted
from jobs.data.spellings import alike
from jobs.errors import PartyError, json_object, printable
from jobs.file.job import Job
from jobs.release.csv import REPORT
from jobs.release.maker import first_malformed
from jobs.release.report import check_sums, following, require_report
from jobs.task import Task

Contradicted = Callable[[dict[str, Any], Path], str | None]
"""The first key of a report that job and table contradict, None if there is none; the path is for errors."""


def read_report(content: bytes) -> dict[str, Any]:
    """Read a report. Raises PartyError (verification-failed) unless it is one JSON object, each key once."""
    report = json_object(content)
    if report is None:
        raise PartyError("verification-failed", f"{REPORT} is no report: it does not hold one JSON object")
    return report


def delivered_report(task: Task, files: Mapping[str, bytes]) -> dict[str, Any]:
    """The report that the coordinator delivers. Raises PartyError unless it is one about this job."""
    report = json_object(files[REPORT])
    if report is None or report.get("job_sha256") != task.digest.hex():
        raise PartyError("result-mismatch", "the delivered report is about another job")
    if (key := first_malformed(report, task.job.roster)) is not None:
        raise PartyError("result-mismatch", f"the delivered report has no `{key}` as reports have it")
    return report


def check_delivery(task: Task, result: Any, files: Mapping[str, bytes], parts: Mapping[str, bytes]) -> None:
    """Check the files that the coordinator delivers: they must be those that we expect, but for the maker's keys.

    parts:  what we sent.

    Raises PartyError (result-mismatch) for the first file or key that is another.
    """
    report = delivered_report(task, files)
    expected = task.model.expected_of(task, result, files, parts)
    delivered = {name: files[name] for name in (*expected.tables, REPORT)}
    check_sums(files, {**delivered, **expected.beside})
    for name, content in expected.tables.items():
        if files[name] != content:
            raise PartyError("result-mismatch", f"the delivered {name} is not the one that was computed")
    require_report(following(expected), report)


def require_this_job(task: Task, report: Mapping[str, Any], made: str) -> None:
    """Raise PartyError for a report of another job. made: what the report came with."""
    if report.get("job_sha256") != task.digest.hex():
        raise PartyError(
            "verification-failed",
            "the report is about another job (or another version of this one)",
            remedy=f"verify against the job file that made the {made}",
        )


def require_one_spelling(job: Job, columns: Mapping[str, Iterable[str]]) -> None:
    """Raise PartyError if a column of a release has two spellings of one value, or of a protected one.

    columns:  by name what each has.
    """
    for name, texts in columns.items():
        column = job.columns[name]
        two = None if column.may_differ else alike(dict.fromkeys([*column.protected, *texts]))
        if two is not None:
            raise PartyError(
                "verification-failed",
                f"column {name} has two spellings of one value, {two[0]!r} and {two[1]!r}: readers take them for one",
            )


def met_words(task: Task, path: Path, n: int, one: str, many: str) -> str:
    """What verification says first: how many of what were counted again."""
    meet = counted(n, f"{one} meets", f"{many} meet")
    return f"{path}: {meet} the requirement of {task.job.name}, counted again from the rows"


def report_beside(task: Task, out: Path, contradicted: Contradicted) -> dict[str, Any] | None:
    """The report beside a table, compared; None where there is none. Raises PartyError."""
    path = out / REPORT
    if not out.is_dir() or not path.is_file():
        return None
    report = json_object(path.read_bytes())
    if report is None:
        raise PartyError("verification-failed", f"{path} is not a report")
    if report.get("job_sha256") != task.digest.hex():
        raise PartyError(
            "verification-failed",
            f"{path} is about another job (or another version of this one)",
            remedy="verify against the job file that made the table",
        )
    key = contradicted(report, path)
    if key is not None:
        raise PartyError("verification-failed", f"{path}: `{printable(key)}` is not what job and table say")
    return report
