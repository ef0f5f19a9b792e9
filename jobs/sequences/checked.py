"""A released table of sequences, and the report beside it, checked by whoever has them and the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from anonymize.trajectory.exclusion import excludes
from anonymize.trajectory.paths import Paths
from crypto.errors import LocalProtocolError
from jobs.compared import check_beside, met_words
from jobs.data.counted import counted
from jobs.encoded import MALFORMED
from jobs.errors import PartyError
from jobs.release_csv import TABLE, read_csv
from jobs.report import as_text, first_other
from jobs.sequences.asked import requirement_words
from jobs.sequences.domains import vocabulary_in
from jobs.sequences.reading import settings
from jobs.sequences.release import published
from jobs.sequences.report import n_maximal_frequent, told_by_table
from jobs.sequences.reread import reread
from jobs.sequences.result import digest_of
from jobs.sequences.settings import GLOBAL
from jobs.sequences.settings import REPORT as SAID
from jobs.sequences.verify import Verified, require_verified, verified_fields
from jobs.sequences.words import item_words
from jobs.signatures import SIGNATURES
from jobs.task import Checked, Task


def verify_table(task: Task, out: Path) -> Checked:
    """Verify the table in a result folder, or a CSV file. Raises PartyError for the first thing that is wrong."""
    path = out / TABLE if out.is_dir() else out
    if not path.is_file():
        raise PartyError("file-missing", f"there is no table at {path}")
    release = read_csv(path, published(task.job))
    seen = reread(release, task)
    verified = require_verified(task, seen.paths, seen.schema)
    found = verified_fields(task, verified)
    _, many = item_words(task.job)
    fewest = f"the rarest is in {counted(found['fewest_records'], 'record', 'records')}"
    shares = ", ".join(f"{100 * share:.2f} % {name}" for name, share in found["largest_share"].items())
    lines = [
        met_words(task, path, seen.paths.n_records, "record", "records"),
        f"  {requirement_words(task.job)}: {sum(found['sequences']):,} sets of {many}; {fewest}"
        + (f"; the greatest share is {shares}" if shares else ""),
    ]
    lines += check_beside(task, out, partial(_contradicted, task, seen.paths, release.n_rows, verified))
    fields = {
        "rows": release.n_rows,
        "records": seen.paths.n_records,
        "verified": True,
        "requirement": found,
        "job_sha256": task.digest.hex(),
    }
    return Checked("\n".join(lines), fields)


def _contradicted(
    task: Task, paths: Paths, n_rows: int, verified: Verified, report: Mapping[str, Any], _: Path
) -> str | None:
    """The first key of a report that job and table contradict."""
    told = told_by_table(task, paths, n_rows, verified, n_maximal_frequent(task, paths))
    told |= task.mode.fields(task, None, paths)
    return first_other(told, report) or next(_disputed(task, paths, told, report), None)


_OF_RAW_READINGS = ("lost", "frequent", "exclusion", "gaps", "data", "items_suppressed")
"""What a single holder's report says besides, and no joint one."""


def _disputed(task: Task, paths: Paths, told: Mapping[str, Any], report: Mapping[str, Any]) -> Iterator[str]:
    """Keys whose figures the table contradicts, though they do not follow from it."""
    if settings(task.job).suppress != GLOBAL:
        last = report["sweeps"][-1] if isinstance(report.get("sweeps"), list) and report["sweeps"] else None
        if not _same(_without_zeros(_at(last, "kept")), _without_zeros(told["requirement"]["sequences"])):
            yield "sweeps"
    if task.job.roster:
        yield from (key for key in _OF_RAW_READINGS if key in report)
        yield from _disputed_of_joint(task, paths, report)
        return
    yield from (key for key in _OF_RAW_READINGS if key not in report)
    if not _same(report.get("reveals"), []):
        yield "reveals"
    before, gone = _at(report["lost"], "of_instances"), _at(report["lost"], "instances")
    if type(before) is not int or type(gone) is not int or before - gone != paths.n_instances:
        yield "lost"
    if report["frequent"] is not None and not _same(
        _at(report["frequent"], "after"), told["maximal_frequent"]
    ):
        yield "frequent"
    found = report["exclusion"]
    untested = settings(task.job).exclusion != SAID and not _same(_at(found, "exposed"), 0)
    if untested or not _same(_at(found, "possible"), excludes(paths, vocabulary_in(task, paths))):
        yield "exclusion"
    if not _same(_at(report["data"], "records"), paths.n_records):
        yield "data"


def _disputed_of_joint(task: Task, paths: Paths, report: Mapping[str, Any]) -> Iterator[str]:
    """What can be revealed, and that what the parties signed is the result with these records and sweeps."""
    allowed, reveals = {each.name for each in task.reveals}, report.get("reveals")
    if not isinstance(reveals, list) or not {str(_at(each, "name")) for each in reveals} <= allowed:
        yield "reveals"
    signed = _at(report.get(SIGNATURES), "result")
    if signed is not None:
        try:
            digest = digest_of(task, paths, report["sweeps"])
        except (*MALFORMED, LocalProtocolError):
            digest = ""
        if signed != digest:
            yield SIGNATURES


def _at(fields: Any, key: str) -> Any:
    return fields.get(key) if isinstance(fields, Mapping) else None


def _same(told: Any, found: Any) -> bool:
    return as_text(told) == as_text(found)


def _without_zeros(counts: Any) -> list[Any] | None:
    """Numbers by length, up to the last that there are."""
    if not isinstance(counts, list | tuple):
        return None
    found = list(counts)
    while found and found[-1] == 0:
        found.pop()
    return found
