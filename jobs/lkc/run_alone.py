"""One holder's LKC release, from the table to the folder, by whatever method."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from anonymize.release import Release
from anonymize.tds import Observer
from crypto.rng import SystemRng
from jobs.as_it_is import require_meant
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.lkc.alone import without_withheld
from jobs.lkc.forms.form import form_of
from jobs.lkc.method import method_of
from jobs.lkc.report import withheld_fields
from jobs.lkc.tables import table_alone, write_table
from jobs.lkc.verify import ByRow
from jobs.options import Noted, Options
from jobs.owner.listing import listed
from jobs.reading import load_table
from jobs.release.report import write_report_of
from jobs.stopwatch import Stopwatch
from jobs.task import Task

WITHHOLD = "withhold"
"""The phase in which rows are withheld: how long it took depends on rows that the release does not have."""


def release_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Anonymize one holder's table into a new folder; list the release in the holder's privacy ledger."""
    return listed(task, source, out, options, partial(_release, task, source, watch, shown))


def _release(
    task: Task, source: Source, watch: Stopwatch, shown: Observer, folder: Path
) -> tuple[bytes, Noted]:
    """Make, verify and write table, report and digests; return the digest, and what the holder alone is told."""
    with watch.phase("read"):
        read = load_table(source, task)
    loaded = read
    if task.job.withhold is not None:
        with watch.phase(WITHHOLD):
            loaded = without_withheld(task, read, shown)
    with watch.phase("anonymize"):
        made = method_of(task.job).made_alone(task, loaded, shown)
    with watch.phase("release"):
        counted = made.counted()
        rows = table_alone(task, counted, partial(made.again, source))
        require_meant(task.job.columns, rows)
    written = write_table(
        task, folder, rows, watch, SystemRng(), _by_row(counted, loaded), loaded.raw_of_records
    )
    with watch.phase("report"):
        report = made.report(written) | {"data": loaded.rows.fields()}
        if task.job.withhold is not None:
            withheld = read.table.n_records - loaded.table.n_records
            report |= withheld_fields(task, withheld, written.release)
    seconds = {phase: took for phase, took in watch.seconds.items() if phase != WITHHOLD}
    return write_report_of(folder, tuple(form_of(task.job).columns(task.job)), report, seconds), made.noted


def _by_row(counted: Release, loaded: Loaded) -> ByRow:
    """Whose each row is, as far as the job tells that apart."""
    weights = loaded.table.weights
    party = None if loaded.party is None else np.repeat(loaded.party, weights)
    person = None if loaded.person is None else np.repeat(loaded.person, weights)
    return ByRow(counted, party, person)
