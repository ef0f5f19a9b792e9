"""`report.json` of a release of sequences.

Everybody with the table can count the report's figures on the table again. Only a single holder knows the figures
on the raw readings, in the holder's own report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonymize.trajectory.exclusion import Exclusion, Untested
from anonymize.trajectory.metrics import Loss, frequent_or_none
from anonymize.trajectory.paths import Paths
from anonymize.trajectory.sweep import Suppressed, Sweep
from jobs.data.counted import counted
from jobs.release.report import asked_fields
from jobs.sequences.reading import settings
from jobs.sequences.requirement import least_frequent, notes
from jobs.sequences.sentences import item_words, limits_words, verified_words
from jobs.sequences.verify import Verified, verified_fields
from jobs.task import Shown, Task


def told_by_table(
    task: Task, paths: Paths, n_rows: int, verified: Verified, n_maximal: int | None
) -> dict[str, Any]:
    """Return the part of a report that every reader can compare: it follows from job and released table alone."""
    return asked_fields(task) | {
        "requirement": verified_fields(task, verified),
        "sensitive": {name: list(values) for name, values in verified.protected.items()},
        "notes": notes(task),
        "verified": verified_words(task),
        "limits": limits_words(task, paths),
        "rows": n_rows,
        "records": paths.n_records,
        "empty_paths": paths.n_empty,
        "instances": paths.n_instances,
        "maximal_frequent": n_maximal,
        "items": item_words(task.job)[1],
    }


def n_maximal_frequent(task: Task, paths: Paths) -> int | None:
    """Count the maximal frequent sequences of a table; None if there are too many sequences to count."""
    asked = settings(task.job)
    found = frequent_or_none(paths, least_frequent(asked, paths.n_records), asked.max_candidates)
    return None if found is None else len(found)


def sweeps_fields(sweeps: Sequence[Sweep]) -> dict[str, Any]:
    """Return the questions of the run: by sweep and size how many sequences were tested and kept; public."""
    return {"sweeps": [{"tested": list(sweep.tested), "kept": list(sweep.kept)} for sweep in sweeps]}


def suppressed_fields(suppressed: Suppressed) -> dict[str, Any]:
    """Return the report's fields of the losses, and the number of items suppressed in all records."""
    return {**sweeps_fields(suppressed.sweeps), "items_suppressed": len(suppressed.taken)}


def loss_fields(loss: Loss) -> dict[str, Any]:
    """Return the losses of a holder's records; for the holder."""
    return {"instances": loss.lost, "of_instances": loss.instances, "records": loss.touched}


def exclusion_fields(
    exclusion: Exclusion | Untested | None, timed: bool, turns: int, emptied: int
) -> dict[str, Any]:
    """Return the disclosures by exclusion, and the cost of preventing disclosures; for the holder of all records.

    Items without times exclude nobody: 0 are exposed. With times, None means untested.
    """
    if isinstance(exclusion, Untested):
        return {"possible": True, "exposed": None, "records": None, "fewest_candidates": None}
    if exclusion is None:
        exposed = None if timed else 0
        return {"possible": False, "exposed": exposed, "records": exposed, "fewest_candidates": None}
    return {
        "possible": True,
        "exposed": exclusion.n_exposed,
        "records": exclusion.records,
        "fewest_candidates": exclusion.least,
        "turns": turns,
        "emptied": emptied,
    }


def shown_fields(report: Mapping[str, Any]) -> Shown:
    """Return the fields for the console: the kept part, a single holder's losses, settings without effect."""
    records, instances, items = report["records"], report["instances"], report["items"]
    size = f"{counted(records, 'record', 'records')} with {instances:,} {items}"
    lines = [*_dropped(report.get("data", {})), *_lost(report), *report.get("notes", [])]
    return Shown(size, {"records": records, "instances": instances, "rows": report["rows"]}, lines)


def _dropped(data: Mapping[str, Any]) -> list[str]:
    if not data or data["read"] == data["used"]:
        return []
    rows, gone = data["read"] - data["used"], data["records_dropped"]
    return [
        f"left out: {counted(rows, 'row', 'rows')} of {data['read']:,} without a needed value, and "
        f"{counted(gone, 'record', 'records')} without a row left"
    ]


def _lost(report: Mapping[str, Any]) -> list[str]:
    if "lost" not in report:
        return []
    return records_words(report, report["items"])


def records_words(told: Mapping[str, Any], items: str) -> list[str]:
    """Say what became of a holder's records, and how many an attacker may find by exclusion; for the holder.

    told:  `lost`, `exclusion` and `empty_paths` of the records.
    items: name of items, plural.
    """
    lost = told["lost"]
    suppressed = (
        f"suppressed: {lost['instances']:,} of {lost['of_instances']:,} {items}, in "
        f"{counted(lost['records'], 'record', 'records')}; "
        f"{counted(told['empty_paths'], 'record has', 'records have')} no items left"
    )
    return [suppressed, *_exclusion_lines(told["exclusion"])]


def _exclusion_lines(found: Mapping[str, Any]) -> list[str]:
    if found["exposed"] is None and found["possible"]:
        return [
            "warning: exclusion was not tested, because there are too many sequences of L readings or fewer: a "
            "reader who knows that nobody is at two places at once may find records"
        ]
    if found["exposed"] is None:
        return [
            "warning: exclusion was not tested: some records are at two places at the same time; say `places: "
            "first` to keep a single place"
        ]
    if not found["exposed"]:
        return []
    return [
        f"warning: {counted(found['records'], 'record', 'records')} may be found by a reader who knows that nobody "
        "is at two places at once: as few as "
        f"{counted(found['fewest_candidates'], 'candidate is', 'candidates are')} left"
    ]
