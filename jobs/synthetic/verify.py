"""A synthetic release checked by what it says: everything in it is to follow from the job and the noisy counts.

Pairs, bins, account and model are derived once more from `marginals.csv`, and the table is held to them. Whether the
noise was drawn as it should cannot be seen in a release; the tests of this program are for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anonymize.joint.dp.noise import DELTA
from anonymize.synthetic.loop import SyntheticOutcome
from jobs.compared import require_this_job
from jobs.data.counted import counted
from jobs.dp.again import told_reveals
from jobs.dp.files import BY_COORDINATOR
from jobs.dp.result import read_delta
from jobs.errors import PartyError, json_object
from jobs.release_csv import REPORT
from jobs.report import as_text
from jobs.synthetic.marginals import MARGINALS, read_marginals
from jobs.synthetic.replay import counts_of, edges_of, replayed_run
from jobs.synthetic.report import FIT, report_fields
from jobs.synthetic.result import SyntheticResult
from jobs.synthetic.table import SYNTHETIC_TABLE, require_drawn
from jobs.task import Checked, Task

_CLOSE = 2e-3
"""Figures of four digits that differ by less are the same, computed by two machines."""
_REPEATED = "repeated"
"""What of a report of a joint run follows from more than job and counts."""


def verify_synthetic(task: Task, out: Path) -> Checked:
    """Verify the marginals, the table drawn from them and the report. Raises PartyError."""
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
    found = report.read_bytes() if out.is_dir() and report.is_file() else None
    outcome, n_rows, same = require_verified(task, marginals, table, found)
    lines = [_marginals_words(paths[0], outcome, task), _table_words(paths[1], n_rows, same=same)]
    if found is not None:
        lines.append(f"{report}: says what follows from job and marginals; its account adds up to epsilon")
    fields = {"rows": n_rows, "drawn_again": same, "verified": True, "job_sha256": task.digest.hex()}
    return Checked("\n".join(lines), fields)


def _marginals_words(path: Path, outcome: SyntheticOutcome, task: Task) -> str:
    return (
        f"{path}: the tables of {task.job.name}, with {counted(len(outcome.opened.pairs), 'pair', 'pairs')} of "
        "columns and the bins that follow; counts are noisy, so whether one was changed only its digest tells"
    )


def _table_words(path: Path, n_rows: int, *, same: bool) -> str:
    how = (
        "byte for byte what is drawn from these marginals"
        if same
        else "drawn from these marginals by a machine of other last digits: every group is shared out as they say"
    )
    return f"{path}: {counted(n_rows, 'row', 'rows')}, {how}"


def require_verified(
    task: Task, marginals: bytes, table: bytes, report: bytes | None
) -> tuple[SyntheticOutcome, int, bool]:
    """Check marginals, the table, and the report that came with them. Raises PartyError for the first thing wrong.

    Returns what was opened, the rows of the table, and whether it is the very table that this machine draws.
    """
    outcome = read_marginals(marginals, task)
    n_rows, same = require_drawn(task, outcome, table)
    if report is not None:
        _require_report(task, outcome, json_object(report))
    return outcome, n_rows, same


def _require_report(task: Task, outcome: SyntheticOutcome, fields: dict[str, Any] | None) -> None:
    if fields is None:
        raise _wrong("report.json is no report: it does not hold one JSON object")
    require_this_job(task, fields, "table")
    reveals = _reveals(task, outcome) if task.job.roster else ()
    ours = report_fields(task, SyntheticResult(b"", outcome, _delta(task, fields), reveals=reveals))
    if not same_fit(ours.pop(FIT), fields.get(FIT)):
        raise _wrong(f"the report says of {FIT} what does not follow from the marginals")
    if fields.keys() - ours.keys() - {FIT, "files"} - BY_COORDINATOR:
        raise _wrong("the report says more than follows from job and marginals")
    for name, value in ours.items():
        if name != _REPEATED and as_text(fields.get(name)) != as_text(value):
            raise _wrong(f"the report says of {name} what does not follow from job and marginals")


def _reveals(task: Task, outcome: SyntheticOutcome) -> tuple[dict[str, Any], ...]:
    """What the run must have told, followed once more."""
    return tuple(told_reveals(replayed_run(task, edges_of(outcome), counts_of(outcome))[1]))


def _delta(task: Task, fields: dict[str, Any]) -> str:
    """δ as the report has it, within its bound; of a single holder's release 0."""
    try:
        delta = str(fields["privacy"]["delta"])
        if read_delta(delta) <= (DELTA if task.job.roster else 0):
            return delta
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise _wrong("the report has no account of privacy") from error
    raise _wrong("delta is too large")


def same_fit(ours: Sequence[dict[str, Any]], told: Any) -> bool:
    """Whether figures of the model are the same but for what machines differ in."""
    if not isinstance(told, list) or len(told) != len(ours):
        return False
    try:
        return all(map(_same_figures, ours, told))
    except (LookupError, TypeError, ValueError):
        return False


def _same_figures(ours: dict[str, Any], told: dict[str, Any]) -> bool:
    one, other = float(ours["chi_square"]), float(told["chi_square"])
    rest = [{key: value for key, value in each.items() if key != "chi_square"} for each in (ours, told)]
    return abs(one - other) <= _CLOSE * max(one, 1e-9) and as_text(rest[0]) == as_text(rest[1])


def _wrong(what: str) -> PartyError:
    return PartyError("verification-failed", what)
