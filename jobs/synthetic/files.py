"""The files of a release: made and written by the coordinator or a single holder, checked by the parties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.dp.files import with_report
from jobs.errors import PartyError
from jobs.options import Options
from jobs.release.compared import delivered_report
from jobs.release.csv import REPORT
from jobs.release.report import check_sums, require_no_more, require_same_fields
from jobs.release.signatures import SIGNATURES
from jobs.release.sums import file_fields, write_sums
from jobs.stopwatch import Stopwatch
from jobs.synthetic.marginals import marginals_csv
from jobs.synthetic.report import report_fields
from jobs.synthetic.result import SyntheticResult
from jobs.synthetic.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.synthetic.table import require_drawn, synthetic_csv
from jobs.synthetic.verify import require_verified
from jobs.task import Collected, Task


def release_files(
    task: Task,
    result: SyntheticResult,
    parties: Mapping[str, Mapping[str, Any]],
    signatures: Mapping[str, Any] | None = None,
) -> dict[str, bytes]:
    """Table, marginals and report of a release."""
    tables = {
        SYNTHETIC_TABLE: synthetic_csv(task, result.outcome),
        MARGINALS: marginals_csv(result.outcome),
    }
    return with_report(task, report_fields(task, result), tables, parties, signatures)


def write_release(folder: Path, task: Task, files: Mapping[str, bytes]) -> bytes:
    """Verify, then write files and digests; return the digest of the release."""
    require_verified(task, files[MARGINALS], files[SYNTHETIC_TABLE], files[REPORT])
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return write_sums(folder, tuple(files))


def write_joint_release(
    task: Task, folder: Path, collected: Collected, options: Options, watch: Stopwatch
) -> bytes:
    """Make, verify and write the files of a joint run; return the digest of the release."""
    with watch.phase("release"):
        files = release_files(task, collected.result, collected.parties, collected.signatures)
        return write_release(folder, task, files)


def check_delivery(task: Task, result: SyntheticResult, files: Mapping[str, bytes]) -> None:
    """Check files the coordinator delivers against what we computed ourselves. Raises PartyError.

    The marginals byte by byte; that the table is drawn from them; of the report everything but what the coordinator
    alone can say: the time, the versions, the costs.
    """
    report = delivered_report(task, files)
    if files[MARGINALS] != marginals_csv(result.outcome):
        raise PartyError("result-mismatch", "the delivered marginals are not those that were opened")
    try:
        require_drawn(task, result.outcome, files[SYNTHETIC_TABLE])
    except PartyError as error:
        raise PartyError("result-mismatch", f"the delivered table does not follow: {error}") from error
    listed = {name: files[name] for name in (SYNTHETIC_TABLE, MARGINALS)}
    ours = report_fields(task, result) | {"files": file_fields(listed)}
    require_same_fields(ours, report)
    require_no_more(report, {*ours, SIGNATURES})
    check_sums(files, {**listed, REPORT: files[REPORT]})
