"""The files of an LKC release: written by whoever makes it, and checked by the parties it is delivered to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from anonymize.release import Release
from crypto.rng import SEED_BYTES, Prg, Rng, SystemRng
from jobs.errors import PartyError
from jobs.file.values import values_of
from jobs.lkc.blocks import linked_columns
from jobs.lkc.forms.all import form_of
from jobs.lkc.parts import COLUMNS, known_of, rows_mixed
from jobs.lkc.release import release_of_result, table_of_rows
from jobs.lkc.report import keys_of, protected_fields, write_report
from jobs.lkc.result import Made
from jobs.lkc.tables import write_table
from jobs.lkc.verify import (
    require_verified,
    verified_fields,
)
from jobs.release.checking import check_delivered
from jobs.release.csv import (
    REPORT,
    csv_bytes,
    most_csv_bytes,
    read_csv,
    require_canonical,
    same_rows,
)
from jobs.release.report import SIGNATURES, asked_fields, joint_fields, require_no_more, require_same_fields
from jobs.release.sums import SUMS, file_fields
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Task


def write_joint_release(task: Task, folder: Path, collected: Collected, watch: Stopwatch) -> bytes:
    """Make, verify and write the table of a joint run, its report and digests; return the digest of the release."""
    result: Made = collected.result
    with watch.phase("release"):
        rows = release_of_result(task, result, collected.parts, collected.key)
        drawn: Rng = SystemRng()
        if _is_rendered(task):
            rows, drawn = rows.sorted(), _coins_of(task, result)
    written = write_table(task, folder, rows, watch, drawn, is_linked=result.is_linked)
    report = result.report(task, written.release, written.verified)
    report[SIGNATURES] = collected.signatures
    return write_report(task, folder, report, watch.seconds, collected.parties)


def _is_rendered(task: Task) -> bool:
    """Return whether the tables follow from the result: columns that parties send by themselves do not."""
    return bool(task.job.roster) and not task.partition.matched and not rows_mixed(task)


def _coins_of(task: Task, result: Made) -> Rng:
    """Return the coins that order the rows of a result's tables: everybody who has the result has them."""
    return Prg(hashlib.sha256(b"jointcut/rows/1" + task.digest + result.encoded).digest()[:SEED_BYTES])


def render(task: Task, result: Made) -> dict[str, bytes]:
    """Return the tables of a joint run by the names of their files, where these follow from its result.

    Rows are sorted by what they print before they are put into the order of the coins: no order of a source is left.
    """
    if not _is_rendered(task):
        return {}
    form, job, drawn = form_of(task.job), task.job, _coins_of(task, result)
    rows = result.counted.ordered(job.published).sorted()
    tables = form.tables(job, form.grouped(job, rows, {}, drawn), drawn)
    return {name: csv_bytes(table) for name, table in tables.items()}


def check_delivery(task: Task, result: Made, files: Mapping[str, bytes], parts: Mapping[str, bytes]) -> None:
    """Check files the coordinator delivers against what we computed ourselves. Raises PartyError.

    Of the report everything that follows from job and result; scores, metrics, words, the time, the versions and the
    costs are the coordinator's alone.

    parts:  what we sent: of a vertical job the columns that we contributed.
    """
    report = check_delivered(task, files, result.reveals)
    form = form_of(task.job)
    tables = {name: read_csv(files[name], columns) for name, columns in form.columns(task.job).items()}
    release = form.rows(task.job, tables, result.n_records)
    ours = _known(task, result, parts)
    if not all(same_rows(release, ours, names) for names in linked_columns(task.job, list(ours.columns))):
        raise PartyError("result-mismatch", "the delivered table is not the one that was computed")
    verified = require_verified(release, task)
    done = result.follows()
    require_no_more(report, keys_of(task, release, done))
    follows = {
        **asked_fields(task),
        **joint_fields(task),
        "requirements": verified_fields(verified),
        "sensitive": protected_fields(task, release),
        "rows": release.n_records,
        **done,
        "files": file_fields({name: files[name] for name in tables}),
    }
    require_same_fields(follows, result.comparable(report))
    for name, table in tables.items():
        require_canonical(files[name], table, "result-mismatch", f"the delivered {name}")
    if any(files[name] != content for name, content in render(task, result).items()):
        raise PartyError(
            "result-mismatch", "the delivered table has the rows that were computed in another order"
        )


def _known(task: Task, result: Made, parts: Mapping[str, bytes]) -> Release:
    """The delivered table as far as we know it: where rows were mixed, all of it."""
    if result.mixed is not None and result.mixed.rows is not None:
        return table_of_rows(task, result, result.mixed.rows)
    return known_of(result, parts.get(COLUMNS))


def most_bytes(task: Task, result: Made) -> int:
    """How large the delivered table may be, by the result; 0 where it has raw values that we do not know."""
    if result.mixed is not None and result.mixed.rows is not None:
        table = table_of_rows(task, result, result.mixed.rows)
        return most_csv_bytes({name: c.labels for name, c in table.columns.items()}, table.n_rows)
    labels = result.public_labels
    labels |= {n: values_of(task, n).published for n in task.job.names("sensitive") if n not in labels}
    for name in task.job.published:
        if name not in labels:
            domain = task.job.columns[name].domain
            if domain is None:
                return 0
            labels[name] = domain
    n, files = result.n_records, form_of(task.job).columns(task.job)
    number = (str(n),)
    of_files = ({name: labels.get(name, number) for name in columns} for columns in files.values())
    return sum(most_csv_bytes(each, n) for each in of_files)


def delivered(task: Task) -> tuple[str, ...]:
    """The files of a release that parties receive, with report and digests."""
    return (*form_of(task.job).columns(task.job), REPORT, SUMS)
