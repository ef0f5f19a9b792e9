"""One holder's DP release, from the table to the folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from anonymize.dp.diffgen import release_alone
from anonymize.dp.noise import exact_noise
from anonymize.table import CodedTable
from anonymize.tds import Observer
from crypto.rng import SystemRng
from jobs.data.sources import Source
from jobs.dp.asked import counting, requirement
from jobs.dp.charge import Charging, DpAccount
from jobs.dp.files import release_files, write_release
from jobs.dp.result import result_alone
from jobs.folder import new_folder
from jobs.options import Noted, Options
from jobs.reading import load_table
from jobs.stopwatch import Stopwatch
from jobs.task import Task


def release_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Release one holder's table into a new folder; the finished release is kept in its privacy ledger.

    The same job again gives the same files and costs nothing, also if the table has changed. Raises BudgetError
    if the budget does not allow it.
    """
    account = DpAccount(options.own_ledger(source), task, options.budget)
    account.check()
    with new_folder(out) as folder:
        if account.stored is None:
            with watch.phase("read"):
                loaded = load_table(source, task)
            noted = Noted(rows=loaded.rows)
            with watch.phase("release"):
                files = _charged_files(task, counting(task, loaded, SystemRng()), account, shown)
        else:
            noted, files = Noted(again=True), _unpacked(account.stored)
        release = write_release(folder, task, files, as_rows=options.as_records)
    account.deliver(release, agreed=True)
    return noted


def _charged_files(task: Task, table: CodedTable, account: DpAccount, shown: Observer) -> Mapping[str, bytes]:
    """Charge the job, make its release, and keep it before anybody sees it."""
    account.reserve()
    try:
        noise, observer = exact_noise(SystemRng()), Charging(account, shown)
        released = release_alone(table, requirement(task), noise, observer)
        files = release_files(task, result_alone(released), {})
        account.finish(_packed(files))
    finally:
        account.settle()
    return files


def _packed(files: Mapping[str, bytes]) -> bytes:
    return json.dumps({name: content.decode() for name, content in files.items()}).encode()


def _unpacked(stored: bytes) -> dict[str, bytes]:
    return {name: text.encode() for name, text in json.loads(stored).items()}
