"""A report held against job and release by whoever verifies a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jobs.data.counted import counted
from jobs.errors import PartyError, json_object, printable
from jobs.release.csv import REPORT
from jobs.task import Task

Contradicted = Callable[[dict[str, Any], Path], str | None]
"""The first key of a report that job and table contradict, None if there is none; the path is for errors."""


def read_report(content: bytes) -> dict[str, Any]:
    """Read a report. Raises PartyError (verification-failed) unless it is one JSON object, each key once."""
    report = json_object(content)
    if report is None:
        raise PartyError("verification-failed", f"{REPORT} is no report: it does not hold one JSON object")
    return report


def require_this_job(task: Task, report: Mapping[str, Any], made: str) -> None:
    """Raise PartyError for a report of another job. made: what the report came with."""
    if report.get("job_sha256") != task.digest.hex():
        raise PartyError(
            "verification-failed",
            "the report is about another job (or another version of this one)",
            remedy=f"verify against the job file that made the {made}",
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
