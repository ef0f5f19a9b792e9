"""Forecasts of a ledger for LKC jobs before they are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.data.sources import Csv
from jobs.data.tables import Table
from jobs.errors import PolicyError
from jobs.owner.charge import table_digest
from jobs.owner.forecast import spent
from jobs.owner.ledger import ChargedJob, ChargedRun, PrivacyLedger
from jobs.owner.listing import charged_job
from jobs.owner.policy import Policy
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS, PARTIES, joint_job

TASK, ME = jobs.task_of(joint_job()), PARTIES[0]
COINS = SeededRng("forecast")


@pytest.fixture
def ledger(tmp_path: Path) -> PrivacyLedger:
    return PrivacyLedger(tmp_path / "privacy.sqlite", "patients")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return TASK.load(Csv(jobs.write_csv(tmp_path / "t.csv", sample_rows(20), COLUMNS)), ME)


def charge(ledger: PrivacyLedger, job: ChargedJob, run: int, table: bytes = bytes(32)) -> None:
    ledger.charge_run(ChargedRun(job, bytes([run] * 16), table), lambda history: None)


def test_what_is_charged_and_left(ledger: PrivacyLedger) -> None:
    charge(ledger, charged_job(TASK), 1)
    charge(ledger, ChargedJob("another model", "table", bytes(32)), 2)
    ledger.give_back(ledger.reserve(charged_job(TASK), None))
    found = spent(ledger.entries(), Policy(max_lkc_releases=3))
    assert found.words == "LKC releases: 1 charged, left: 2"
    assert found.fields == {"lkc_releases": 1, "max_lkc_releases": 3}
    assert spent(ledger.entries(), Policy()).words == "LKC releases: 1 charged, left: 0"


def test_one_release_too_many_is_refused(ledger: PrivacyLedger, table: Table) -> None:
    once = Policy(max_lkc_releases=1)
    assert TASK.model.charges.forecast(ledger, once, TASK, ME, table, COINS) == ""
    assert not ledger.exists  # looking begins none
    charge(ledger, charged_job(TASK), 1)
    for seen in (table, None):
        with pytest.raises(PolicyError):
            TASK.model.charges.forecast(ledger, once, TASK, ME, seen, COINS)


def test_a_kept_result_is_given_again(ledger: PrivacyLedger, table: Table) -> None:
    digest = table_digest(ledger.key(COINS), table, TASK, ME, COINS)
    run = ChargedRun(charged_job(TASK), bytes(16), digest)
    number = ledger.charge_run(run, lambda history: None)
    ledger.open(number)
    once = Policy(max_lkc_releases=1)
    with pytest.raises(PolicyError):  # it came to no result
        TASK.model.charges.forecast(ledger, once, TASK, ME, table, COINS)
    ledger.finish(number, b"result")
    assert "is kept" in TASK.model.charges.forecast(ledger, once, TASK, ME, table, COINS)
