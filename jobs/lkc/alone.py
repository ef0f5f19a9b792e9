"""One holder's LKC release, from the table to the folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from anonymize.criteria.criterion import Beside
from anonymize.lkc.metrics import why_stopped
from anonymize.lkc.requirement import criteria_of_size
from anonymize.lkc.single import anonymize_alone
from anonymize.lkc.withholding import withheld_rows
from anonymize.release import Release, release_of_rows
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer, Outcome
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.listing import listed
from jobs.lkc.asked import job_score, requirement
from jobs.lkc.beside import beside
from jobs.lkc.files import table_alone, write_table
from jobs.lkc.report import build_report, withheld_fields, write_report
from jobs.lkc.verify import ByRow
from jobs.options import Noted, Options
from jobs.publishing import generalized_rows
from jobs.reading import load_table, part_of
from jobs.stopwatch import Stopwatch
from jobs.task import Task

WITHHOLD = "withhold"
"""The phase in which rows are withheld: how long it took depends on rows that the release does not have."""


def release_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Anonymize one holder's table into a new folder; list the release in the holder's privacy ledger."""

    def release(folder: Path) -> tuple[bytes, Noted]:
        return _release(task, source, folder, watch, shown), Noted()

    return listed(task, source, out, options, release)


def _release(task: Task, source: Source, folder: Path, watch: Stopwatch, shown: Observer) -> bytes:
    """Make, verify and write table, report and digests; return the digest of the release."""
    with watch.phase("read"):
        read = load_table(source, task)
    loaded = read
    if task.job.withhold is not None:
        with watch.phase(WITHHOLD):
            loaded = without_withheld(task, read, shown)
    with watch.phase("anonymize"):
        outcome = anonymized(task, loaded, shown)
    table = loaded.table
    with watch.phase("release"):
        counted = release_of_rows(table, outcome.cut)
        rows = table_alone(task, counted, lambda: generalized_rows(source, task, outcome.schema, outcome.cut))
    written = write_table(task, folder, rows, watch, _by_row(counted, loaded), loaded.raw_of_records)
    release = written.release
    histograms = [table.class_histogram(i) for i in range(len(table.schema.qid))]
    with watch.phase("report"):
        of_size = criteria_of_size(table.schema, requirement(task).entries(table.schema))
        stopped = why_stopped(table, outcome, job_score(task.job), of_size)
        report = build_report(task, outcome, release, written.verified, histograms, stopped=stopped)
        report |= {"data": loaded.rows.fields()}
        if task.job.withhold is not None:
            report |= withheld_fields(task, read.table.n_records - table.n_records, release)
    seconds = {phase: took for phase, took in watch.seconds.items() if phase != WITHHOLD}
    return write_report(task, folder, report, seconds)


def _by_row(counted: Release, loaded: Loaded) -> ByRow:
    """Whose each row is, as far as the job tells that apart."""
    weights = loaded.table.weights
    party = None if loaded.party is None else np.repeat(loaded.party, weights)
    person = None if loaded.person is None else np.repeat(loaded.person, weights)
    return ByRow(counted, party, person)


def without_withheld(task: Task, loaded: Loaded, shown: Observer | None = None) -> Loaded:
    """The table without the rows that `withhold` leaves out, as if it never had them. Raises PrivacyError."""
    if task.job.withhold is None:
        return loaded
    table, asked = loaded.table, requirement(task)
    most = int(task.job.withhold * table.n_records)

    def part(rows: Ints) -> tuple[CodedTable, Beside]:
        some = part_of(loaded, rows, task)
        return some.table, beside(task, some, some.party)

    gone = withheld_rows(table, asked, job_score(task.job), most, part, shown)
    return part_of(loaded, np.setdiff1d(np.arange(len(table.cells)), gone), task)


def anonymized(task: Task, loaded: Loaded, shown: Observer) -> Outcome:
    """Anonymize what pass 1 read of a holder's table. Raises PrivacyError."""
    counted = beside(task, loaded, loaded.party)
    return anonymize_alone(loaded.table, requirement(task), job_score(task.job), shown, beside=counted)
