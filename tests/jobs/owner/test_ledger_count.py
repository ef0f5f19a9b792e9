"""A ledger that lacks entries is no new budget, until its owner says that it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from jobs.errors import BudgetError, Exit
from jobs.owner.ledger import ChargedJob, PrivacyLedger
from jobs.owner.ledger_count import file_of
from tests.support.commands import invoke
from tests.support.network import sample_network
from tests.support.samples import PARTIES

JOB = ChargedJob("dp", "counts", bytes(32), Fraction(1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a ledger with two entries, beside a copy of it with one."""
    made = tmp_path / "state" / "privacy.sqlite"
    made.parent.mkdir()
    ledger = PrivacyLedger(made, "patients")
    ledger.reserve(JOB, None)
    shutil.copy(made, tmp_path / "older")
    PrivacyLedger(made, "staff").reserve(JOB, None)
    return made


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by_an_older_copy(path: Path) -> None:
    shutil.copy(path.parent.parent / "older", path)


def deleted(path: Path) -> None:
    path.unlink()


def replaced_by_another(path: Path) -> None:
    path.unlink()
    file_of(path).rename(path.parent / "aside")
    for _ in range(2):
        PrivacyLedger(path, "visitors").reserve(JOB, None)
    (path.parent / "aside").rename(file_of(path))


@pytest.mark.parametrize("change", [emptied, replaced_by_an_older_copy, deleted, replaced_by_another])
def test_a_ledger_that_lacks_entries_is_told(path: Path, change: Callable[[Path], None]) -> None:
    change(path)
    ledger = PrivacyLedger(path, "patients")
    for ask in (
        ledger.entries,
        ledger.history,
        lambda: ledger.reserve(JOB, None),
        lambda: ledger.stored(bytes(32)),
    ):
        with pytest.raises(BudgetError) as caught:
            ask()
        assert caught.value.problem.error_id == "budget-ledger"
        assert "lacks runs that were charged" in caught.value.problem.message
    ledger.accept()
    ledger.reserve(JOB, None)
    assert ledger.entries()[-1].charged == 1


def test_a_ledger_that_only_grew_is_taken(path: Path) -> None:
    """A crash after an entry, before its count, leaves a count of fewer entries."""
    older = file_of(path).read_bytes()
    ledger = PrivacyLedger(path, "patients")
    number = ledger.reserve(JOB, None)
    file_of(path).write_bytes(older)
    ledger.open(number)
    assert [entry.state for entry in ledger.entries()] == ["reserved", "opened"]
    assert file_of(path).read_bytes() != older
    assert file_of(path).stat().st_mode & 0o777 == 0o600


def test_looking_at_no_ledger_makes_none(tmp_path: Path) -> None:
    ledger = PrivacyLedger(tmp_path / "privacy.sqlite", "patients")
    assert (ledger.entries(), ledger.exists) == ([], False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"junk", b"[]", b'{"entries": [2, ""]}'])
def test_a_damaged_count_is_told(path: Path, content: bytes) -> None:
    file_of(path).write_bytes(content)
    with pytest.raises(BudgetError, match="the count beside the privacy ledger is damaged"):
        PrivacyLedger(path, "patients").entries()


def test_an_owner_accepts_it_on_the_command_line(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    config = ("--config", net.config_path(PARTIES[0]))
    ran = invoke("party", "budget", "--accept", *config)
    assert (ran.code, "the privacy ledger cannot be read" in ran.err) == (Exit.BUDGET, True)
    net.config(PARTIES[0]).state_dir.mkdir()
    net.config(PARTIES[0]).ledger.reserve(JOB, None)
    (net.root / PARTIES[0] / "state" / "privacy.sqlite").unlink()
    ran = invoke("party", "budget", *config)
    assert ran.code == Exit.BUDGET
    assert "party budget --accept" in ran.err
    assert invoke("party", "budget", "--accept", *config).code == 0
    assert invoke("party", "budget", *config).code == 0


def test_a_thread_does_not_wait_for_itself(tmp_path: Path) -> None:
    """Python may end a run that was left where it collects garbage: in a thread that writes the ledger, too."""
    ledger = PrivacyLedger(tmp_path / "privacy.sqlite", "data")

    def run() -> Iterator[None]:
        try:
            yield
        finally:
            ledger.give_back(1)

    left = run()
    next(left)
    with ledger.connected(), pytest.raises(RuntimeError, match="already"):
        left.close()
    ledger.give_back(1)
    with ThreadPoolExecutor(1) as other, ledger.connected():
        waiting = other.submit(ledger.give_back, 1)
        assert not waiting.done()
    assert waiting.result(30) is None
