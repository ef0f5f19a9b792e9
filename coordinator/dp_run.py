"""DP releases: a single holder's run, and the files of any."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from anonymize.diffgen import release_alone
from anonymize.noise import exact_noise
from anonymize.noisy_table import as_records
from anonymize.table import CodedTable
from anonymize.tds import Observer
from coordinator.dp_verify import require_verified_counts
from coordinator.report import finished_now, versions
from crypto.rng import SystemRng
from party.budget import Budget, data_set
from party.bundle import Bundle
from party.data import Source, load_table
from party.dp_release import COUNTS, counts_csv
from party.dp_report import dp_report_fields
from party.dp_result import DpResult, result_alone
from party.dp_run import Account, Charging
from party.release_file import REPORT, TABLE, csv_bytes, new_folder

UNLIMITED = Fraction(10**9)
"""A single holder who states no budget is charged all the same, and refused nothing."""


@dataclass(frozen=True)
class DpOptions:
    """What the command line says about a DP release, and about the ledger of any.

    as_records:  write `anonymized.csv`, too: rows repeated as often as the counts say, after Norm-Sub.
    budget:      single holder: the most that all releases of the table may spend together.
    ledger:      single holder: the privacy ledger; default beside the table. LKC releases are listed there, too.
    """

    as_records: bool = False
    budget: Fraction = UNLIMITED
    ledger: Path | None = None


NO_OPTIONS = DpOptions()


@dataclass(frozen=True)
class Noted:
    """What the holder of the table is told besides the release, on the own console only.

    again:    the files are those of an earlier run of the job, which cost nothing more.
    dropped:  rows without a class or number. outside: per column, rows with a value outside the domain.
    """

    again: bool = False
    dropped: int = 0
    outside: Mapping[str, int] = field(default_factory=dict)


def run_dp_alone(bundle: Bundle, source: Source, out: Path, options: DpOptions, shown: Observer) -> Noted:
    """Release one holder's table into a new folder; the finished release is kept in its privacy ledger.

    The same job again gives the same files and costs nothing, also if the table has changed. Raises BudgetError
    if the budget does not allow it.
    """
    account = Account(own_budget(source, options.ledger), bundle, options.budget)
    account.check()
    with new_folder(out) as folder:
        if account.stored is None:
            shown.phase("read")
            loaded = load_table(source, bundle)
            noted = Noted(False, loaded.n_dropped, loaded.outside)
            files = _charged_files(bundle, loaded.table, account, shown)
        else:
            noted, files = Noted(again=True), _unpacked(account.stored)
        write_dp_files(folder, bundle, files, as_rows=options.as_records)
    return noted


def note_lkc_release(bundle: Bundle, source: Source, ledger: Path | None) -> None:
    """List an LKC release in a single holder's privacy ledger, where one is named or stands beside the table.

    No ledger is begun for it: without DP releases there is nothing it would limit.
    """
    budget = own_budget(source, ledger)
    if ledger is not None or budget.exists:
        budget.note_lkc(bundle.job.name, bundle.digest)


def own_budget(source: Source, ledger: Path | None) -> Budget:
    """A single holder's privacy ledger: beside the table itself, not beside a link to it."""
    table = source.path.resolve()
    return Budget(ledger or table.with_name(f"{table.name}.privacy.sqlite"), data_set(table))


def _charged_files(
    bundle: Bundle, table: CodedTable, account: Account, shown: Observer
) -> Mapping[str, bytes]:
    """Charge the job, make its release, and keep it before anybody sees it."""
    account.reserve()
    try:
        noise, observer = exact_noise(SystemRng()), Charging(account, shown)
        released = release_alone(table, bundle.dp_requirement, noise, observer)
        files = dp_files(bundle, result_alone(released), {})
        account.finish(_packed(files))
    finally:
        account.settle()
    return files


def dp_files(bundle: Bundle, result: DpResult, parties: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
    """Counts and report of a release."""
    made = {"versions": versions(), "cost": {"parties": dict(parties)}}
    report = dp_report_fields(bundle, result) | finished_now() | made
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    return {COUNTS: counts_csv(result.table, bundle.job.published), REPORT: text.encode()}


def write_dp_files(folder: Path, bundle: Bundle, files: Mapping[str, bytes], *, as_rows: bool) -> None:
    """Verify, then write; with rows instead of counts in addition, if they are wanted."""
    table = require_verified_counts(bundle, files[COUNTS], files[REPORT])
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if as_rows:
        (folder / TABLE).write_bytes(csv_bytes(as_records(table)))


def _packed(files: Mapping[str, bytes]) -> bytes:
    return json.dumps({name: content.decode() for name, content in files.items()}).encode()


def _unpacked(stored: bytes) -> dict[str, bytes]:
    return {name: text.encode() for name, text in json.loads(stored).items()}
