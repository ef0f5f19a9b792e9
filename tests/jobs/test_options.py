"""Options of a release: where a single holder's privacy ledger is, and whose it is."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from jobs.data.sources import Csv
from jobs.options import NO_OPTIONS, UNLIMITED, Noted, Options
from jobs.owner.ledger import ChargedJob, PrivacyLedger


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "table.csv"
    path.parent.mkdir()
    path.write_text("a\n")
    return path


def begun(ledger: PrivacyLedger) -> None:
    ledger.reserve(ChargedJob("lkc", "job", bytes(32)), None)


def test_the_ledger_stands_beside_the_table(table: Path) -> None:
    begun(NO_OPTIONS.own_ledger(Csv(table)))
    ledger, count = sorted(set(table.parent.iterdir()) - {table})
    assert ledger.name.startswith("table.csv.")
    assert count.name == f"{ledger.name}.count"


def test_a_link_to_a_table_has_the_tables_ledger(table: Path, tmp_path: Path) -> None:
    """Otherwise every link would be a fresh budget."""
    link = tmp_path / "elsewhere.csv"
    link.symlink_to(table)
    begun(NO_OPTIONS.own_ledger(Csv(link)))
    assert {path.name for path in tmp_path.iterdir()} == {"data", "elsewhere.csv"}
    assert len(NO_OPTIONS.own_ledger(Csv(table)).entries()) == 1


def test_a_ledger_that_is_named_is_used_for_every_table_apart(table: Path, tmp_path: Path) -> None:
    other = table.with_name("other.csv")
    other.write_text("a\n")
    options = Options(ledger=tmp_path / "my.ledger")
    begun(options.own_ledger(Csv(table)))
    assert {path.name for path in table.parent.iterdir()} == {"table.csv", "other.csv"}
    assert len(options.own_ledger(Csv(table)).entries()) == 1
    assert options.own_ledger(Csv(other)).entries() == []


def test_looking_at_a_ledger_makes_none(table: Path) -> None:
    assert not NO_OPTIONS.own_ledger(Csv(table)).exists
    assert list(table.parent.iterdir()) == [table]


def test_who_says_nothing_is_charged_and_never_refused() -> None:
    assert NO_OPTIONS == Options(as_records=False, budget=UNLIMITED, ledger=None)
    assert UNLIMITED > 10**6
    assert isinstance(UNLIMITED, Fraction)
    assert Noted() == Noted(again=False, rows=None)
