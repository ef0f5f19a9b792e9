"""`coordinator verify`: a released table checked by what it says, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonymize.grid import Grid
from anonymize.release import Release
from anonymize.taxonomy import Taxonomy
from party.bundle import Bundle
from party.errors import PartyError, json_object
from party.release_file import REPORT, TABLE, read_csv, require_verified


@dataclass(frozen=True)
class Checked:
    """What was checked, for people and as fields."""

    text: str
    fields: dict[str, Any]


def verify_folder(bundle: Bundle, out: Path) -> Checked:
    """Verify the table in a result folder, or a CSV file. Raises PartyError for the first thing that is wrong."""
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


def _check_labels(release: Release, bundle: Bundle) -> None:
    """Every published value must be a node of its column's taxonomy, or an interval of its grid."""
    for name, values in bundle.taxonomies.items():
        for label in release.columns[name].labels:
            if not _is_label(values, label):
                raise PartyError(
                    "verification-failed",
                    f"column {name} has a value that is no node of its taxonomy",
                    private=label,
                )


def _is_label(values: Taxonomy | Grid, label: str) -> bool:
    if isinstance(values, Taxonomy):
        return label in values.printed
    edges = label.removeprefix("[").removesuffix(")").split(",")
    known = {values.edge_label(i): i for i in range(len(values.edges))}
    if len(edges) != 2 or edges[0] not in known or edges[1] not in known:
        return False
    return known[edges[0]] < known[edges[1]] and label == f"[{edges[0]},{edges[1]})"


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
