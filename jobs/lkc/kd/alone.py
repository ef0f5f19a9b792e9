"""One holder's kd release, from the table to the folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from anonymize.kd.median import MedianHolder
from anonymize.kd.single import KdOutcome, SingleHolder, anonymize_kd
from anonymize.kd.table import GroupsByLeaves, box_labels, release_of_boxed_rows
from anonymize.release import Release
from anonymize.table import CodedTable
from anonymize.tds import Observer
from jobs.data.sources import Source
from jobs.listing import listed
from jobs.lkc.asked import requirement
from jobs.lkc.files import table_alone, write_table
from jobs.lkc.kd.report import build_report
from jobs.lkc.report import write_report
from jobs.lkc.settings import MEDIAN, PUBLIC
from jobs.options import Noted, Options
from jobs.publishing import boxed_rows
from jobs.reading import load_table
from jobs.stopwatch import Stopwatch
from jobs.task import Task

_HOLDERS = {PUBLIC: SingleHolder, MEDIAN: MedianHolder}
"""By `split` who says where groups are cut."""


def release_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Anonymize one holder's table into a new folder; list the release in the holder's privacy ledger."""

    def release(folder: Path) -> tuple[bytes, Noted]:
        return _release(task, source, folder, watch, shown)

    return listed(task, source, out, options, release)


def _release(
    task: Task, source: Source, folder: Path, watch: Stopwatch, shown: Observer
) -> tuple[bytes, Noted]:
    """Make, verify and write table, report and digests; return the digest, and what the holder alone is told."""
    with watch.phase("read"):
        loaded = load_table(source, task)
    table = loaded.table
    with watch.phase("anonymize"):
        outcome = anonymized(task, table, shown)
    with watch.phase("release"):
        rows = _table(task, source, table, outcome)
    written = write_table(task, folder, rows, watch, raw=loaded.raw_of_records)
    with watch.phase("report"):
        report = build_report(
            task, table.schema, outcome.table, outcome.cuts, written.release, written.verified
        )
        report |= {"data": loaded.rows.fields()}
    noted = Noted(refused_for_sensitive=outcome.refused if table.schema.sensitive else None)
    return write_report(task, folder, report, watch.seconds), noted


def anonymized(task: Task, table: CodedTable, shown: Observer) -> KdOutcome:
    """Anonymize what pass 1 read of a holder's table. Raises PrivacyError."""
    assert task.job.split is not None
    return anonymize_kd(table, requirement(task), shown, _HOLDERS[task.job.split])


def _table(task: Task, source: Source, table: CodedTable, outcome: KdOutcome) -> Release:
    """The rows of the table. Raises DataError if the table changed between the two passes."""
    schema, boxes = table.schema, outcome.table.boxes

    def again() -> Iterator[pa.RecordBatch]:
        known = GroupsByLeaves(schema, table.qid, outcome.group)
        return boxed_rows(source, task, schema, box_labels(schema, boxes), known.of)

    return table_alone(task, release_of_boxed_rows(table, boxes, outcome.group), again)
