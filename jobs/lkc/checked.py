"""Check of a released LKC table, and of the report beside the table, by anybody with both and the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from anonymize.release import Release
from anonymize.table import MAX_RECORDS
from anonymize.verification.tables import NOT_IN_A_TABLE
from jobs import plain_columns
from jobs.data.rows_read import REASONS
from jobs.errors import PartyError
from jobs.file.fields import PERSON
from jobs.file.schema import qid_of
from jobs.file.values import values_of
from jobs.lkc.forms.form import form_of
from jobs.lkc.method import method_of
from jobs.lkc.options.option import options_of_job
from jobs.lkc.report import risk_fields, told_by_table
from jobs.lkc.sentences import links_are_unread, not_in_the_table
from jobs.lkc.verify import Verified, asked_of, require_verified, verified_fields
from jobs.release.checking import (
    Undetermined,
    compare_readings,
    met_words,
    of_any_report,
    report_beside,
    require_same,
)
from jobs.release.csv import REPORT
from jobs.task import Checked, Task

_BYTES = "whether the files hold a text beside the table, since another version of Arrow wrote the files"


def verify_table(task: Task, out: Path) -> Checked:
    """Verify the table in a result folder, or a CSV file. Raises PartyError for the first error."""
    release, path, tables = _read(task, out)
    if release.n_records == 0:
        raise PartyError("verification-failed", "the table has no rows")
    _check_labels(release, task)
    unread = method_of(task.job).check_groups(task, release)
    verified = require_verified(release, task)
    lines = [met_words(task, path, release.n_records, "row", "rows")]
    lines += [f"  {found.entry.words}: {found.worst}" for found in verified]
    lines += [f"not verified: {words}" for words in (*not_in_the_table(task), *unread.values())]
    told = plain_columns.measure(task.job.columns, release)
    lines += [f"  {told['meaning']}"] if told.get("meaning") else []
    lines += [f"  {words}" for words in plain_columns.about_formulas(release)]
    report = report_beside(task, out)
    undetermined: tuple[str, ...] = ()
    if report is not None:
        readings = _readings(task, release, verified, report, out / REPORT)
        undetermined = require_same(compare_readings(readings, report), out / REPORT)
        store = form_of(task.job).store
        if not all(store.require_written(file, table) for file, table in tables.items()):
            lines.append(f"WARNING, not verified: {_BYTES}")
            unread = {**unread, "bytes": _BYTES}
        lines.append(
            f"{out / REPORT}: job, requirement and values in the report agree with job and table. Not compared, "
            f"because job and table do not determine them: {', '.join(undetermined)}"
        )
    left = sorted({key for found in verified for key in NOT_IN_A_TABLE.intersection(asked_of(found.entry))})
    left += ["unit"] if task.job.lkc.unit == PERSON else []
    left += [*(["relinking"] if links_are_unread(task.job) else []), *unread]
    left += [f"report.{name}" for name in undetermined]
    fields = {
        "rows": release.n_records,
        "verified": True,
        "requirements": verified_fields(verified),
        "job_sha256": task.digest.hex(),
    }
    return Checked("\n".join(lines), fields | ({"not_verified": left} if left else {}))


def _read(task: Task, out: Path) -> tuple[Release, Path, Mapping[Path, Release]]:
    """Return the rows of a release, its place, and its tables. Raises PartyError."""
    form = form_of(task.job)
    columns = form.columns(task.job)
    if out.is_dir() or len(columns) > 1:
        paths = {name: out / name for name in columns}
    else:
        paths = dict.fromkeys(columns, out)
    for path in paths.values():
        if not form.store.files(path.parent, path.name):
            raise PartyError("file-missing", f"there is no table at {path}")
    tables = {name: form.store.read(path, columns[name]) for name, path in paths.items()}
    release = form.rows(task.job, tables, MAX_RECORDS)
    path = next(iter(paths.values())) if len(paths) == 1 else out
    return release, path, {paths[name]: table for name, table in tables.items()}


def files_of(task: Task, folder: Path) -> list[str]:
    """Return the names of the files of the tables in a folder. Raises PartyError."""
    form = form_of(task.job)
    return [file for name in form.columns(task.job) for file in form.store.files(folder, name)]


def table_of_folder(task: Task, folder: Path) -> Release:
    """Return the rows of a release. Raises PartyError."""
    return _read(task, folder)[0]


def _check_labels(release: Release, task: Task) -> None:
    """Require that the method can print every published value, or that the listed domain has the value."""
    quasi, printed = form_of(task.job).quasi, method_of(task.job).known_labels
    for column in qid_of(task.job, task.taxonomies):
        is_known = quasi.label_test(task, column, printed)
        for label in release.columns[column.name].labels:
            if not is_known(label):
                raise _unknown(column.name, quasi.stranger, label)
    for name in task.job.names("class", "sensitive"):
        domain = _domain_of(task, name)
        for label in release.columns[name].labels:
            if domain is not None and label not in domain:
                raise _unknown(name, "is not in its domain", label)
    for name in task.job.published_clusters:
        for label in set(release.columns[name].labels) - set(
            task.job.clusters.domain if task.job.clusters else ()
        ):
            raise _unknown(name, "is no cluster of the model", label)


def _domain_of(task: Task, name: str) -> frozenset[str] | None:
    """Return the possible values of a class or sensitive column in a release; None if the job does not say."""
    column = task.job.columns[name]
    if not column.is_listed:
        return None
    return frozenset(values_of(task, name).published if column.role == "sensitive" else column.domain or ())


def _unknown(name: str, what: str, label: str) -> PartyError:
    return PartyError("verification-failed", f"column {name} has a value that {what}", private=label)


def _readings(
    task: Task, release: Release, verified: Sequence[Verified], report: Mapping[str, Any], path: Path
) -> Iterator[dict[str, Any]]:
    """Yield the expected content of a report for each reading of its statements. Raises PartyError."""
    if report.get("rows") != release.n_records:
        raise PartyError("verification-failed", f"{path} and the table have different numbers of rows")
    left_out = _left_out(task, release, report, path)
    risk = {} if "risk" in left_out else risk_fields(task, release)
    told = {
        **told_by_table(task, release, verified),
        "rows": release.n_records,
        **risk,
        **task.mode.fields(task, None, release),
        "reveals": Undetermined(partial(_are_reveals, task)) if task.job.roster else [],
        **left_out,
        **of_any_report(task, files_of(task, path.parent)),
    }
    for done in method_of(task.job).readings(task, release, report, path):
        yield told | done


def _are_reveals(task: Task, said: Any) -> bool:
    """Return True if a report lists reveals in the form of reports, and the mode has each reveal."""
    listed = [[each.name, each.to] for each in task.reveals]
    return isinstance(said, list) and all(
        isinstance(each, dict)
        and each.keys() == {"name", "shape", "to", "iteration"}
        and [each["name"], each["to"]] in listed
        and isinstance(each["shape"], list)
        and all(type(n) is int for n in (*each["shape"], each["iteration"]))
        for each in said
    )


def _left_out(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the fields of the left-out rows, and the risk beside the rows, from the number of used rows.

    No table shows the number of used rows. Raises PartyError if the job does not allow the resulting number of
    left-out rows.
    """
    if task.job.roster:
        return {}
    data, options = report.get("data"), options_of_job(task.job)
    data = data if isinstance(data, Mapping) else {}
    used = data.get("used")
    n_left_out = used - release.n_records if type(used) is int else -1
    if not 0 <= n_left_out <= sum(option.most_left_out(used or 0) for option in options):
        raise PartyError(
            "verification-failed",
            f"{path}: `data.used` is not the number of rows of the table plus the rows that the job may leave out",
        )
    if not _adds_up(task, data):
        raise PartyError("verification-failed", f"{path}: `data.read` is not the sum of `used` and `dropped`")
    read = {"read": Undetermined(), "dropped": Undetermined(), "used": Undetermined() if options else used}
    told: dict[str, Any] = {"data": read}
    for option in options:
        told |= option.fields(task, n_left_out, release)
    return told


def _adds_up(task: Task, data: Mapping[str, Any]) -> bool:
    """Return whether so many rows are missing as columns dropped; a row may be dropped by several columns."""
    read, dropped = data.get("read"), data.get("dropped")
    if (
        type(read) is not int
        or not isinstance(dropped, dict)
        or not dropped.keys() <= task.job.columns.keys()
    ):
        return False
    times: list[Any] = []
    for reasons in dropped.values():
        if not isinstance(reasons, dict) or not reasons.keys() <= REASONS.keys():
            return False
        times += reasons.values()
    if not all(type(n) is int and n > 0 for n in times):
        return False
    return bool(max(times, default=0) <= read - data["used"] <= sum(times))
