"""An LKC table checked by what it says, whoever made it: its groups counted again from its labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from anonymize.grid import Grid
from anonymize.lkc.verification import Bound, Claim, Finding, verify_cells, verify_lkc
from anonymize.release import Release
from anonymize.taxonomy import Taxonomy
from jobs.data.counted import noun
from jobs.errors import PartyError, json_object
from jobs.lkc.asked import settings
from jobs.release_csv import REPORT, TABLE, read_csv
from jobs.task import Checked, Task


def verify_release(release: Release, task: Task) -> Finding | None:
    """Check a table against its job's requirement, from its labels alone."""
    job, claim = task.job, claim_of(release, task)
    finding = verify_lkc(release, claim)
    if finding is None and job.insider:
        return verify_cells(release, job.names("qid", "class"), claim)
    return finding


def claim_of(release: Release, task: Task) -> Claim:
    """What the job file says of its table, word for word; C by column, each with its own or that of the model."""
    asked, bounds = settings(task.job), bounds_of(release, task)
    of_columns = {"C": {bound.column: bound.confidence for bound in bounds}}
    protected = {bound.column: bound.values for bound in bounds}
    return Claim(task.job.names("qid"), asked.L, asked.claimed | of_columns, protected)


def bounds_of(release: Release, task: Task) -> list[Bound]:
    """The bound of every sensitive column of a job."""
    bounds = []
    for name in task.job.names("sensitive"):
        column = task.job.columns[name]
        values = column.protected or release.columns[name].labels
        bounds.append(Bound(name, frozenset(values), column.C or settings(task.job).C))
    return bounds


def require_verified(release: Release, task: Task) -> None:
    """Raise PartyError unless the table meets its requirement: the last gate before anything is written."""
    finding = verify_release(release, task)
    if finding is not None:
        raise PartyError("verification-failed", str(finding))


def verify_table(task: Task, out: Path) -> Checked:
    """Verify the table in a result folder, or a CSV file. Raises PartyError for the first thing that is wrong."""
    path = out / TABLE if out.is_dir() else out
    if not path.is_file():
        raise PartyError("file-missing", f"there is no table at {path}")
    release = read_csv(path, task.job.published)
    if release.n_rows == 0:
        raise PartyError("verification-failed", "the table has no rows")
    _check_labels(release, task)
    require_verified(release, task)
    lines = [
        f"{path}: {release.n_rows} {noun(release.n_rows, 'row meets', 'rows meet')} the requirement of "
        f"{task.job.name}, counted again from the rows"
    ]
    report = out / REPORT
    if out.is_dir() and report.is_file():
        _check_report(task, release, report)
        lines.append(f"{report}: names this job and this number of rows")
    return Checked(
        "\n".join(lines), {"rows": release.n_rows, "verified": True, "job_sha256": task.digest.hex()}
    )


def _check_labels(release: Release, task: Task) -> None:
    """Every published value must be a node of its taxonomy, an interval of its grid, or of its listed domain."""
    for name, values in task.taxonomies.items():
        is_node = _nodes_of(values)
        for label in release.columns[name].labels:
            if not is_node(label):
                raise _unknown(name, "is not a node of its taxonomy", label)
    for name in task.job.names("class", "sensitive"):
        domain = task.job.columns[name].domain
        for label in release.columns[name].labels:
            if domain is not None and label not in domain:
                raise _unknown(name, "is not in its domain", label)


def _unknown(name: str, what: str, label: str) -> PartyError:
    return PartyError("verification-failed", f"column {name} has a value that {what}", private=label)


def _nodes_of(values: Taxonomy | Grid) -> Callable[[str], bool]:
    """What tells whether a label is a node of a taxonomy, or an interval of a grid."""
    if isinstance(values, Taxonomy):
        return frozenset(values.printed).__contains__
    return lambda label: values.interval(label) is not None


def _check_report(task: Task, release: Release, path: Path) -> None:
    report = json_object(path.read_bytes())
    if report is None:
        raise PartyError("verification-failed", f"{path} is not a report")
    if report.get("job_sha256") != task.digest.hex():
        raise PartyError(
            "verification-failed",
            f"{path} is about another job (or another version of this one)",
            remedy="verify against the job file that made the table",
        )
    if report.get("rows") != release.n_rows:
        raise PartyError("verification-failed", f"{path} speaks of another number of rows")
