"""Delivery of the coordinator: each party compares the delivery with the expected release of its own result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.errors import PartyError, json_object
from jobs.release.csv import REPORT
from jobs.release.maker import first_malformed
from jobs.release.report import check_sums, following, require_report
from jobs.release.sums import SUMS
from jobs.task import Task


def delivered_report(task: Task, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the report in the coordinator's delivery. Raises PartyError unless a report of this job."""
    report = json_object(files[REPORT])
    if report is None or report.get("job_sha256") != task.digest.hex():
        raise PartyError("result-mismatch", "the delivered report is about another job")
    if (key := first_malformed(report, task.job.roster)) is not None:
        raise PartyError("result-mismatch", f"the delivered report has no `{key}` as reports have it")
    return report


@dataclass(frozen=True)
class Delivery:
    """Checked release.

    files:  by name, with report and digests.
    seen:   as in :class:`jobs.task.Rendered`.
    """

    files: Mapping[str, bytes] = field(repr=False)
    seen: Any = field(repr=False)


def checked_release(
    task: Task, result: Any, files: Mapping[str, bytes], parts: Mapping[str, bytes]
) -> Delivery:
    """Check that the coordinator delivers the expected files, apart from the maker's keys; return the release.

    files:  the files that the coordinator sent. We make the other tables from the result: the digests of the
            coordinator must be those of our tables.
    parts:  our parts, as sent.

    Raises PartyError (result-mismatch) for the first different file or key.
    """
    report = delivered_report(task, files)
    expected = task.model.expected_of(task, result, files, parts)
    check_sums(files, {**expected.tables, REPORT: files[REPORT], **expected.beside})
    require_report(following(expected), report)
    return Delivery({**expected.tables, REPORT: files[REPORT], SUMS: files[SUMS]}, expected.seen)
