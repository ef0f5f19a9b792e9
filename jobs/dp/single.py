"""Single holder's DP release, from the table to the folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from anonymize.dp.diffgen import release_single
from anonymize.dp.noise import Noise, exact_noise
from anonymize.table import CodedTable
from anonymize.tds import Observer
from crypto.rng import SystemRng
from jobs.data.sources import Source
from jobs.dp.budget import counting, load, outside_words, require_fitting
from jobs.dp.charge import Charging, Epsilon
from jobs.dp.counts import COUNTS, rows_csv
from jobs.dp.files import render
from jobs.dp.requirement import requirement
from jobs.dp.result import result_single
from jobs.dp.verify import require_verified_counts
from jobs.options import Noted, Options
from jobs.owner.account import LedgerAccount
from jobs.owner.ledger import charges
from jobs.page.own import own_page_of_folder, place_own_page
from jobs.release.checking import read_report
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import new_folder
from jobs.release.making import files_of, write_release
from jobs.stopwatch import Stopwatch
from jobs.task import Rendered, Task


@dataclass(frozen=True)
class Made:
    """Part of a release that differs by method.

    rendered:  makes a release: task, counted records, noise, observer.
    beside:    verifies the files, and makes further tables for the holder: task, files, options.
    """

    rendered: Callable[[Task, CodedTable, Noise, Observer], Rendered]
    beside: Callable[[Task, Mapping[str, bytes], Options], Mapping[str, bytes]]


def release_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Release a single holder's table by DiffGen."""
    return made_in_folder(task, source, out, options, watch, shown, _DIFFGEN)


def made_in_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer, made: Made
) -> Noted:
    """Release a single holder's table into a new folder; keep the release in the holder's privacy ledger.

    The same job again gives the same files at no cost, even if the table has changed. Raises BudgetError if the
    budget does not suffice.
    """
    ledger = options.own_ledger(source)
    account = LedgerAccount(Epsilon(ledger, task, options.budget))
    account.check()
    with new_folder(out) as folder:
        loaded, kept = None, account.repeat()
        if kept is None:
            with watch.phase("read"):
                loaded = load(source, task)
            require_fitting(task, loaded.rows, source)
            noted = Noted(rows=loaded.rows, strays=tuple(outside_words(task, loaded.rows, source)))
            # The owner's page compares the release with the records that count, not with rows beyond the limit.
            loaded = replace(loaded, table=counting(task, loaded, SystemRng()), person=None)
            with watch.phase("release"):
                files = _charged_files(task, loaded.table, account, shown, made)
        else:
            noted, files = Noted(again=True), _unpacked(kept.encoded)
        release = write_release(task, folder, files, made.beside(task, files, options))
        if loaded is not None:
            place_own_page(own_page_of_folder(task, loaded, folder), folder)
    account.deliver(release, agreed=True)
    return replace(noted, charged=charges(ledger.entries()))


def _charged_files(
    task: Task, table: CodedTable, account: LedgerAccount, shown: Observer, made: Made
) -> Mapping[str, bytes]:
    """Charge the job, make its release, and keep the release before anybody sees the release."""
    account.reserve()
    try:
        rendered = made.rendered(task, table, exact_noise(SystemRng()), Charging(account.open, shown))
        files = files_of(rendered, {"cost": {"parties": {}}})
        account.finish(_packed(files))
    finally:
        account.settle()
    return files


def _diffgen(task: Task, table: CodedTable, noise: Noise, observer: Observer) -> Rendered:
    return render(task, result_single(release_single(table, requirement(task), noise, observer)))


def _rows(task: Task, files: Mapping[str, bytes], options: Options) -> dict[str, bytes]:
    table = require_verified_counts(task, files[COUNTS], read_report(files[REPORT])).table
    return {TABLE: rows_csv(table, task.job.published)} if options.as_records else {}


_DIFFGEN = Made(_diffgen, _rows)


def _packed(files: Mapping[str, bytes]) -> bytes:
    return json.dumps({name: content.decode() for name, content in files.items()}).encode()


def _unpacked(stored: bytes) -> dict[str, bytes]:
    return {name: text.encode() for name, text in json.loads(stored).items()}
