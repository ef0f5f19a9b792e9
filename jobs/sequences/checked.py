"""Check of a released table of sequences, and of the report beside the table, by anybody with both and the job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from anonymize.trajectory.paths import Paths
from crypto.errors import LocalProtocolError
from jobs.data.counted import counted
from jobs.errors import PartyError
from jobs.file.values import require_one_spelling
from jobs.release.checking import Undetermined, compare, met_words, of_any_report, report_beside, require_same
from jobs.release.csv import REPORT, TABLE, read_csv, require_canonical
from jobs.release.encoded import MALFORMED
from jobs.release.report import BY_MAKER
from jobs.sequences.domains import place_column, time_column
from jobs.sequences.reading import settings
from jobs.sequences.release import published
from jobs.sequences.report import n_maximal_frequent, told_by_table
from jobs.sequences.requirement import requirement_words
from jobs.sequences.reread import reread
from jobs.sequences.result import digest_of, reveals_of, sweeps_of
from jobs.sequences.sentences import item_words
from jobs.sequences.settings import REPORT as SAID
from jobs.sequences.verify import Verified, require_verified, verified_fields
from jobs.task import Checked, Task


def verify_table(task: Task, out: Path) -> Checked:
    """Verify the table in a result folder, or a CSV file. Raises PartyError for the first error."""
    path = out / TABLE if out.is_dir() else out
    if not path.is_file():
        raise PartyError("file-missing", f"there is no table at {path}")
    release = read_csv(path, published(task.job))
    seen = reread(release, task)
    of_values = {name: release.columns[name].labels for name in task.job.names("sensitive")}
    require_one_spelling(task.job, {place_column(task.job): seen.places, **of_values})
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
    report = report_beside(task, out)
    left = ["exclusion"] if settings(task.job).exclusion != SAID and time_column(task.job) is not None else []
    lines += [_EXCLUSION] if left else []
    if report is not None:
        following = _following(task, seen.paths, release.n_rows, verified, report)
        require_same(compare(following, report), out / REPORT)
        require_canonical(path.read_bytes(), release, "verification-failed", str(path))
        of_maker = (*stated(task), *BY_MAKER)
        lines += [_AS_SAID.format(out / REPORT), _of_the_maker(of_maker)]
        left += [f"report.{key}" for key in of_maker]
    fields = {
        "rows": release.n_rows,
        "records": seen.paths.n_records,
        "verified": True,
        "requirement": found,
        "job_sha256": task.digest.hex(),
    }
    result = None if report is None else _result_of(task, seen.paths, report)
    return Checked("\n".join(lines), fields | ({"not_verified": left} if left else {}), result)


_AS_SAID = "{}: job, requirement and values in the report agree with job and table"
_EXCLUSION = "not verified: exclusion: only the holder can test it, on the raw readings"


def _result_of(task: Task, paths: Paths, report: Mapping[str, Any]) -> str | None:
    """Return the digest of the joint result with the given records and the report's sweeps. Raises PartyError."""
    if not task.job.roster:
        return None
    try:
        return digest_of(task, paths, report["sweeps"])
    except (*MALFORMED, LocalProtocolError) as error:
        raise PartyError(
            "verification-failed", "no joint run makes the report's records and sweeps"
        ) from error


def _of_the_maker(keys: Iterable[str]) -> str:
    """Name the figures for which a reader has only the report maker's word."""
    named = ", ".join(f"`{key}`" for key in keys)
    return f"not checked: {named}, as the report states"


def stated(task: Task) -> tuple[str, ...]:
    """Return the keys of a report that do not follow from its table: only the holder can count the raw readings.

    In a joint run the parties sign the sweeps.
    """
    return ("sweeps",) if task.job.roster else _OF_ONE_HOLDER


_OF_ONE_HOLDER = ("sweeps", "items_suppressed", "lost", "frequent", "exclusion", "data")


def _following(
    task: Task, paths: Paths, n_rows: int, verified: Verified, report: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the expected content of a report, without the maker's own statements."""
    return {
        **told_by_table(task, paths, n_rows, verified, n_maximal_frequent(task, paths)),
        **task.mode.fields(task, None, paths),
        "reveals": _reveals(task, paths, report),
        **dict.fromkeys(stated(task), Undetermined(partial(_are_figures, task))),
        **of_any_report(task, [TABLE]),
    }


def _are_figures(task: Task, said: Any) -> bool:
    """Return whether a value has numbers and no text, under names of figures or of columns."""
    if isinstance(said, list):
        return all(_are_figures(task, each) for each in said)
    if isinstance(said, dict):
        known = all(_NAME.fullmatch(name) or name in task.job.columns for name in said)
        return known and all(_are_figures(task, each) for each in said.values())
    return said is None or isinstance(said, int | float)


_NAME = re.compile(r"[a-z][a-z_]{0,31}")


def _reveals(task: Task, paths: Paths, report: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the reveals of a run with the report's sweeps and the given records; None without sweeps."""
    if not task.job.roster:
        return []
    try:
        sweeps = sweeps_of(report["sweeps"], settings(task.job).L)
        is_later = report["reveals"][0]["name"] == "earlier_run"
    except (*MALFORMED, AttributeError):
        return None
    return reveals_of(task, paths, sweeps, is_later=is_later)
