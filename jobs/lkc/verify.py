"""An LKC table checked by what it says, whoever made it: its groups counted again from its labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anonymize.lkc.verification import (
    NOT_IN_A_TABLE,
    Bound,
    Claim,
    Finding,
    verify_cells,
    verify_lkc,
    verify_persons,
    verify_remainders,
)
from anonymize.release import Release
from anonymize.table import Ints, QidColumn
from anonymize.taxonomy import Taxonomy
from jobs.data.counted import noun
from jobs.errors import PartyError, json_object
from jobs.fields import PERSON
from jobs.lkc.asked import settings
from jobs.lkc.words import not_in_the_table
from jobs.release_csv import REPORT, TABLE, read_csv
from jobs.schema import qid_of
from jobs.task import Checked, Task


def verify_release(release: Release, task: Task, held: Sequence[str] | None = None) -> Finding | None:
    """Check a table against its job's requirement, from its labels alone.

    held:  the sensitive columns that a party of a vertical job can look at, of its own; None: all.
    """
    job, claim = task.job, claim_of(release, task, held)
    finding = verify_lkc(release, claim)
    if finding is None and job.insider:
        return verify_cells(release, job.names("qid", "class"), claim)
    return finding


def claim_of(release: Release, task: Task, held: Sequence[str] | None = None) -> Claim:
    """What the job file says of its table, word for word; C by column, each with its own or that of the model."""
    asked, bounds = settings(task.job), bounds_of(release, task, held)
    of_columns = {"C": {bound.column: bound.confidence for bound in bounds}}
    protected = {bound.column: bound.values for bound in bounds}
    return Claim(task.job.names("qid"), asked.L, asked.claimed | of_columns, protected)


def bounds_of(release: Release, task: Task, held: Sequence[str] | None = None) -> list[Bound]:
    """The bound of every sensitive column of a job, or of those ``held``."""
    bounds = []
    for name in task.job.names("sensitive") if held is None else held:
        column = task.job.columns[name]
        values = column.protected or release.columns[name].labels
        bounds.append(Bound(name, frozenset(values), column.C or settings(task.job).C))
    return bounds


def require_verified(release: Release, task: Task, held: Sequence[str] | None = None) -> None:
    """Raise PartyError unless the table meets its requirement: the last gate before anything is written, and before
    the columns that a party has ``held`` leave it.
    """
    finding = verify_release(release, task, held)
    if finding is not None:
        raise PartyError("verification-failed", str(finding))


@dataclass(frozen=True)
class ByRow:
    """A table as its one holder knows it: whose each row is, where the job tells that apart.

    party, person:  numbers, shape (n_rows,).
    """

    release: Release
    party: Ints | None = field(default=None, repr=False)
    person: Ints | None = field(default=None, repr=False)


def require_counted(known: ByRow, task: Task) -> None:
    """Raise PartyError unless the table meets what cannot be counted in it without knowing whose each row is."""
    if known.party is not None:
        require_remainders(known.release, known.party, task)
    if known.person is not None:
        require_persons(known.release, known.person, task)


def require_persons(release: Release, person: Ints, task: Task) -> None:
    """Raise PartyError unless every group has K different people. person: of every row, shape (n_rows,)."""
    finding = verify_persons(release, person, claim_of(release, task))
    if finding is not None:
        raise PartyError("verification-failed", f"counting people, {finding}")


def require_remainders(release: Release, party: Ints, task: Task) -> None:
    """Raise PartyError unless what any `colluders` parties leave of a table meets its requirement, too.

    party:  of every row a number for whose it is, shape (n_rows,).
    """
    finding = verify_remainders(release, party, claim_of(release, task))
    if finding is not None:
        raise PartyError("verification-failed", f"without the rows of colluding parties, {finding}")


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
    lines += [f"not verified: {words}" for words in not_in_the_table(task)]
    report = out / REPORT
    if out.is_dir() and report.is_file():
        _check_report(task, release, report)
        lines.append(f"{report}: names this job and this number of rows")
    left = sorted(NOT_IN_A_TABLE.intersection(settings(task.job).claimed))
    left += ["unit"] if task.job.model.unit == PERSON else []
    fields = {"rows": release.n_rows, "verified": True, "job_sha256": task.digest.hex()}
    return Checked("\n".join(lines), fields | ({"not_verified": left} if left else {}))


def _check_labels(release: Release, task: Task) -> None:
    """Every published value must be a node of its taxonomy, an interval of its grid, or of its listed domain."""
    for column in qid_of(task.job, task.taxonomies):
        is_node = _nodes_of(column)
        for label in release.columns[column.name].labels:
            if not is_node(label):
                raise _unknown(column.name, "is not a node of its taxonomy", label)
    for name in task.job.names("class", "sensitive"):
        domain = task.job.columns[name].domain
        for label in release.columns[name].labels:
            if domain is not None and label not in domain:
                raise _unknown(name, "is not in its domain", label)
    for name in task.job.published_clusters:
        for label in set(release.columns[name].labels) - set(
            task.job.clusters.domain if task.job.clusters else ()
        ):
            raise _unknown(name, "is no cluster of the model", label)


def _unknown(name: str, what: str, label: str) -> PartyError:
    return PartyError("verification-failed", f"column {name} has a value that {what}", private=label)


def _nodes_of(column: QidColumn) -> Callable[[str], bool]:
    """What tells whether a label is a node of a taxonomy or the rest of one, or an interval of a grid."""
    values = column.values
    if isinstance(values, Taxonomy):
        return column.rest_labels.union(values.printed).__contains__
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
