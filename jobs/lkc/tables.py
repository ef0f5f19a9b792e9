"""Tables of an LKC release: made of rows, verified, and written in the form of the job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anonymize.release import Release
from crypto.rng import Rng
from jobs.data.arrow import pa
from jobs.data.table_file import changed
from jobs.lkc.forms.form import Raw, Tables, form_of
from jobs.lkc.options.option import ByRow
from jobs.lkc.verify import Verified, require_counted, require_linked, require_verified
from jobs.release.csv import read_csv, rows_to_csv, same_rows
from jobs.stopwatch import Stopwatch
from jobs.task import Task


def table_single(task: Task, counted: Release, again: Callable[[], Iterator[pa.RecordBatch]]) -> Release:
    """Return the rows of a single holder's table: from the codes, or from pass 2 with plain columns.

    counted:  the table without plain columns.
    again:    makes pass 2.

    Raises DataError if the table changed between the two passes.
    """
    if not task.job.names("plain"):
        return counted
    release = read_csv(rows_to_csv(again(), task.job.published), task.job.published)
    if not same_rows(release, counted, list(counted.columns)):
        raise changed("")
    return release


@dataclass(frozen=True)
class Arranged:
    """Rows in the form of the job.

    grouped:  linked rows, with the columns for readers.
    tables:   the written tables, by file name.
    release:  the rows that readers can make of the tables.
    """

    grouped: Release = field(repr=False)
    tables: Tables = field(repr=False)
    release: Release = field(repr=False)


def arrange(task: Task, rows: Release, rng: Rng, raw: Raw | None = None) -> Arranged:
    """Bring the rows of a table into the form of the job.

    rng:  draws the order of rows.
    raw:  quasi-identifiers published unchanged.
    """
    form, job = form_of(task.job), task.job
    grouped = form.grouped(job, rows, raw or {}, rng)
    tables = form.tables(job, grouped, rng)
    return Arranged(grouped, tables, form.rows(job, tables, rows.n_records))


def require_arranged(
    task: Task, arranged: Arranged, known: ByRow | None = None, *, is_linked: bool = True
) -> tuple[Verified, ...]:
    """Raise PartyError unless the tables meet the requirement; return the findings.

    known:      further knowledge of a single holder of all rows.
    is_linked:  True if all values of a row belong to the same record. Otherwise only the values of a block
                do, and only blocks are verified.
    """
    if is_linked:
        require_linked(arranged.grouped, task)
    verified = require_verified(arranged.release, task)
    if known is not None:
        require_counted(known, task)
    return verified


@dataclass(frozen=True)
class Written:
    """Release in its folder.

    release:   the rows that readers can make of the release.
    verified:  the findings.
    files:     digest and size of the files, by name.
    """

    release: Release
    verified: tuple[Verified, ...]
    files: Mapping[str, Mapping[str, Any]]


def write_table(
    task: Task, folder: Path, rows: Release, watch: Stopwatch, rng: Rng, known: ByRow, raw: Raw | None
) -> Written:
    """Verify the table of a single holder, then write the table.

    rng, raw:  as in :func:`arrange`.
    known:     as in :func:`require_arranged`.
    """
    with watch.phase("release"):
        arranged = arrange(task, rows, rng, raw)
    with watch.phase("verify"):
        verified = require_arranged(task, arranged, known)
    with watch.phase("write"):
        store = form_of(task.job).store
        files: dict[str, Mapping[str, Any]] = {}
        for name, table in arranged.tables.items():
            files |= store.write(table, folder, name, rng)
    return Written(arranged.release, verified, files)
