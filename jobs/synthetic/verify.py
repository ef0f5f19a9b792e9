"""Check of a synthetic release by its own statements: everything must follow from the job and the noisy counts.

Pairs, bins, account, δ and model are derived again from `marginals.csv`, and the table is drawn again. A release
does not show whether the noise was drawn properly; the tests of the program check the noise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonymize.synthetic.loop import SyntheticOutcome
from jobs.data.counted import counted
from jobs.dp.repetition import require_report
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.errors import PartyError
from jobs.release.checking import read_report, require_this_job
from jobs.release.csv import REPORT
from jobs.synthetic.marginals import read_marginals
from jobs.synthetic.replay import counts_of, edges_of, replayed_run
from jobs.synthetic.report import report_fields
from jobs.synthetic.result import SyntheticResult, joint_result
from jobs.synthetic.table import require_drawn
from jobs.task import Checked, Task


@dataclass(frozen=True)
class Verified:
    """Findings of a check.

    result:   the openings.
    n_rows:   of the table.
    untold:   the keys of the report without an expectation; empty without a report.
    """

    result: SyntheticResult
    n_rows: int
    undetermined: Sequence[str]


def verify_synthetic(task: Task, out: Path) -> Checked:
    """Verify the marginals, the table drawn from the marginals, and the report. Raises PartyError."""
    folder = out if out.is_dir() else out.parent
    paths = [folder / name for name in (MARGINALS, SYNTHETIC_TABLE)]
    for path in paths:
        if not path.is_file():
            raise PartyError(
                "file-missing",
                f"there is no {path.name} at {folder}: a synthetic table is checked against its marginals",
            )
    marginals, table = (path.read_bytes() for path in paths)
    report = folder / REPORT
    found = read_report(report.read_bytes()) if out.is_dir() and report.is_file() else None
    verified = require_verified(task, marginals, table, found)
    rows = counted(verified.n_rows, "row", "rows")
    lines = [
        _marginals_words(paths[0], verified.result.outcome, task),
        f"{paths[1]}: {rows}, byte for byte as drawn from the marginals",
    ]
    if found is not None:
        lines.append(
            f"{report}: agrees with job and marginals, and the account adds up to epsilon. Not compared, because "
            f"job and marginals do not determine them: {', '.join(verified.undetermined)}"
        )
    fields = {"rows": verified.n_rows, "verified": True, "job_sha256": task.digest.hex()}
    left = [f"report.{name}" for name in verified.undetermined]
    result = hashlib.sha256(verified.result.encoded).hexdigest() if task.job.roster else None
    return Checked("\n".join(lines), fields | ({"not_verified": left} if left else {}), result)


def _marginals_words(path: Path, outcome: SyntheticOutcome, task: Task) -> str:
    tells = "the digest and the signatures of the parties" if task.job.roster else "the digest"
    return (
        f"{path}: the tables of {task.job.name}, with {counted(len(outcome.opened.pairs), 'pair', 'pairs')} of "
        f"columns and the bins that follow; counts are noisy, so only {tells} can show a changed count"
    )


def require_verified(
    task: Task, marginals: bytes, table: bytes, report: Mapping[str, Any] | None
) -> Verified:
    """Check marginals, the table, and their report. Raises PartyError for the first error."""
    outcome = read_marginals(marginals, task)
    n_rows = require_drawn(task, outcome, table)
    result = _result(task, outcome)
    if report is None:
        return Verified(result, n_rows, ())
    require_this_job(task, report, "table")
    undetermined = require_report(task, [report_fields(task, result)], report, [MARGINALS, SYNTHETIC_TABLE])
    return Verified(result, n_rows, undetermined)


def _result(task: Task, outcome: SyntheticOutcome) -> SyntheticResult:
    """Return the result of the run. A joint run is replayed, because its reveals must fit."""
    if not task.job.roster:
        return SyntheticResult(b"", outcome)
    return joint_result(replayed_run(task, edges_of(outcome), counts_of(outcome)))
