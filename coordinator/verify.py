"""`coordinator verify`: a released table checked by what it says, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonymize.grid import Grid
from anonymize.noisy_table import as_records
from anonymize.release import Release
from anonymize.taxonomy import Taxonomy
from coordinator.dp_verify import require_verified_counts
from party.bundle import Bundle
from party.dp_release import COUNTS
from party.errors import PartyError, json_object
from party.release_file import REPORT, TABLE, csv_bytes, read_csv, require_verified


@dataclass(frozen=True)
class Checked:
    """What was checked, for people and as fields."""

    text: str
    fields: dict[str, Any]


def verify_folder(bundle: Bundle, out: Path) -> Checked:
    """Verify the table in a result folder, or a CSV file. Raises PartyError for the first thing that is wrong."""
    if bundle.job.model.dp is not None:
        return _verify_counts(bundle, out)
    path = out / TABLE if out.is_dir() else out
    if not path.is_file():
        raise PartyError("file-missing", f"there is no table at {path}")
    release = read_csv(path, bundle.job.published)
    if release.n_rows == 0:
        raise PartyError("verification-failed", "the table has no rows")
    _check_labels(release, bundle)
    require_verified(release, bundle)
    lines = [f"{path}: {release.n_rows} rows meet the requirement of {bundle.job.name}"]
    report = out / REPORT
    if out.is_dir() and report.is_file():
        _check_report(bundle, release, report)
        lines.append(f"{report}: belongs to this job and this table")
    return Checked(
        "\n".join(lines), {"rows": release.n_rows, "verified": True, "job_sha256": bundle.digest.hex()}
    )


def _verify_counts(bundle: Bundle, out: Path) -> Checked:
    """A DP release: its counts, the report, and the rows made of the counts, where they are."""
    path = out / COUNTS if out.is_dir() else out
    if not path.is_file():
        raise PartyError("file-missing", f"there are no counts at {path}")
    report = out / REPORT
    found = report.read_bytes() if out.is_dir() and report.is_file() else None
    table = require_verified_counts(bundle, path.read_bytes(), found)
    complete = "all cells" if table.threshold is None else f"cells with counts from {table.threshold} on"
    lines = [f"{path}: {table.cells.n_rows} rows, {complete}, as {bundle.job.name} requires"]
    if found is not None:
        lines.append(f"{report}: belongs to this job and these counts; its account adds up to epsilon")
    records = out / TABLE
    if out.is_dir() and records.is_file():
        if records.read_bytes() != csv_bytes(as_records(table)):
            raise PartyError("verification-failed", f"{records} is not made of these counts")
        lines.append(f"{records}: made of these counts")
    fields = {"rows": table.cells.n_rows, "verified": True, "job_sha256": bundle.digest.hex()}
    return Checked("\n".join(lines), fields)


def _check_labels(release: Release, bundle: Bundle) -> None:
    """Every published value must be a node of its taxonomy, an interval of its grid, or of its listed domain."""
    for name, values in bundle.taxonomies.items():
        is_node = _nodes_of(values)
        for label in release.columns[name].labels:
            if not is_node(label):
                raise _unknown(name, "is no node of its taxonomy", label)
    for name in bundle.job.names("class", "sensitive"):
        domain = bundle.job.columns[name].domain
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


def _check_report(bundle: Bundle, release: Release, path: Path) -> None:
    report = json_object(path.read_bytes())
    if report is None:
        raise PartyError("verification-failed", f"{path} is no report")
    if report.get("job_sha256") != bundle.digest.hex():
        raise PartyError(
            "verification-failed",
            f"{path} is about another job (or another version of this one)",
            remedy="verify against the job file that made the table",
        )
    if report.get("rows") != release.n_rows:
        raise PartyError("verification-failed", f"{path} speaks of another number of rows")
