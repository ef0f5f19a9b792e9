"""The privacy ledger: what is charged stays charged, whatever happens, and nobody gets more than the limit."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.errors import BudgetError, Exit, PartyError, PolicyError
from jobs.owner.charge import check_releases
from jobs.owner.ledger import STATE_WORDS, ChargedJob, ChargedRun, History, PrivacyLedger
from tests.support.examples import examples
from tests.support.rng import SeededRng

TEN = Fraction(10)


def job(epsilon: Fraction = Fraction(1), name: str = "flu", digest: bytes = b"\x01" * 32) -> ChargedJob:
    return ChargedJob("dp", name, digest, epsilon)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "privacy.sqlite"


@pytest.fixture
def ledger(path: Path) -> PrivacyLedger:
    return PrivacyLedger(path, "patients")


def refused(ledger: PrivacyLedger, asked: ChargedJob, limit: Fraction) -> BudgetError:
    with pytest.raises(BudgetError) as caught:
        ledger.reserve(asked, limit)
    return caught.value


def test_a_data_set_without_releases(ledger: PrivacyLedger, path: Path) -> None:
    assert ledger.entries() == []
    assert ledger.spent() == 0
    assert ledger.stored(bytes(32)) is None
    ledger.check(job(), Fraction(1))
    assert not path.exists()  # looking leaves nothing behind


def test_the_life_of_a_charge(ledger: PrivacyLedger) -> None:
    number = ledger.reserve(job(), TEN)
    assert [(e.state, e.charged) for e in ledger.entries()] == [("reserved", 1)]
    ledger.open(number)
    assert [(e.state, e.charged) for e in ledger.entries()] == [("opened", 1)]
    assert ledger.stored(b"\x01" * 32) is None
    ledger.finish(number, b"the counts")
    (entry,) = ledger.entries()
    assert (entry.number, entry.job, entry.kind, entry.state) == (number, "flu", "dp", "finished")
    assert (entry.epsilon, entry.job_sha256) == (1, "01" * 32)
    assert ledger.stored(b"\x01" * 32) == b"the counts"
    assert ledger.stored(b"\x02" * 32) is None


def test_only_what_was_never_opened_is_given_back(ledger: PrivacyLedger) -> None:
    first, second = ledger.reserve(job(), TEN), ledger.reserve(job(), TEN)
    ledger.open(second)
    for number in (first, second, first, 99):
        ledger.give_back(number)
    assert [(e.state, e.charged) for e in ledger.entries()] == [("returned", 0), ("opened", 1)]


@pytest.mark.parametrize("step", ["open", "finish"])
def test_no_step_is_skipped_or_repeated(ledger: PrivacyLedger, step: str) -> None:
    number = ledger.reserve(job(), TEN)
    if step == "open":
        ledger.give_back(number)
        with pytest.raises(BudgetError) as caught:
            ledger.open(number)
    else:
        with pytest.raises(BudgetError) as caught:
            ledger.finish(number, b"")
    assert caught.value.problem.error_id == "budget-ledger"


def test_the_limit_is_on_the_sum(ledger: PrivacyLedger) -> None:
    half = Fraction(1, 2)
    ledger.reserve(job(half), Fraction(1))
    ledger.reserve(job(half), Fraction(1))
    error = refused(ledger, job(Fraction(1, 10**9)), Fraction(1))
    assert (error.problem.error_id, error.problem.exit_code) == ("budget-exceeded", Exit.BUDGET)
    assert error.problem.private == "1 of 1 is spent"
    assert "spent" not in error.problem.message  # what others released is the owner's business
    assert len(ledger.entries()) == 2
    with pytest.raises(BudgetError):
        ledger.check(job(), Fraction(1))


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=2), min_size=1, max_size=8))
def test_never_more_than_the_limit(tmp_path_factory: pytest.TempPathFactory, asked: list[Fraction]) -> None:
    """Exactly: thirds add up to one, and no rounding lets a job through."""
    ledger, limit, taken = (
        PrivacyLedger(tmp_path_factory.mktemp("x") / "l", "d"),
        Fraction(7, 3),
        Fraction(0),
    )
    for epsilon in asked:
        if taken + epsilon <= limit:
            ledger.reserve(job(epsilon), limit)
            taken += epsilon
        else:
            refused(ledger, job(epsilon), limit)
        assert ledger.spent() == taken


def test_data_sets_in_one_file_are_apart(path: Path) -> None:
    one, other = PrivacyLedger(path, "patients"), PrivacyLedger(path, "staff")
    number = one.reserve(job(), Fraction(1))
    one.open(number)
    one.finish(number, b"x")
    assert other.spent() == 0
    assert other.stored(b"\x01" * 32) is None
    other.reserve(job(), Fraction(1))
    assert one.spent() == 1


def test_the_last_finished_result_is_kept(ledger: PrivacyLedger) -> None:
    for result in (b"one", b"two"):
        number = ledger.reserve(job(), TEN)
        ledger.open(number)
        ledger.finish(number, result)
    ledger.open(ledger.reserve(job(), TEN))
    assert ledger.stored(b"\x01" * 32) == b"two"
    assert ledger.spent() == 3


def test_lkc_releases_are_listed_and_cost_nothing(ledger: PrivacyLedger) -> None:
    number = opened(ledger, a_run())
    (entry,) = ledger.entries()
    assert (entry.kind, entry.state, entry.charged, entry.job) == ("lkc", "opened", 0, "table")
    assert STATE_WORDS[entry.state] == "charged, not delivered"
    assert entry.deliveries == ()
    ledger.deliver(number, b"\x0a" * 32)
    (entry,) = ledger.entries()
    assert (entry.kind, entry.state, entry.charged, entry.job) == ("lkc", "released", 0, "table")
    assert [(d.release, d.agreed) for d in entry.deliveries] == [("0a" * 32, True)]
    assert ledger.stored(b"\x07" * 32) is None


def opened(ledger: PrivacyLedger, run: ChargedRun) -> int:
    """Charge a run that opens something."""
    number = ledger.charge_run(run, unlimited)
    ledger.open(number)
    return number


def unlimited(history: History) -> None:
    """Allow any run."""


def at_most_two(history: History) -> None:
    """Refuse a third run."""
    check_releases(history.entries, 2)


def a_run(run: int = 1, digest: int = 7, table: int = 3) -> ChargedRun:
    return ChargedRun(
        ChargedJob("lkc", "table", bytes([digest] * 32)),
        bytes([run] * 16),
        bytes([table] * 32),
    )


def test_a_run_that_opened_nothing_gives_its_charge_back(ledger: PrivacyLedger) -> None:
    first = ledger.charge_run(replace(a_run(1), published=b"a"), unlimited)
    second = ledger.charge_run(a_run(2), at_most_two)
    with pytest.raises(PolicyError):  # a run that may still open something counts
        ledger.charge_run(a_run(3), at_most_two)
    ledger.open(second)
    for number in (first, second):
        ledger.give_back(number)
    assert [entry.state for entry in ledger.entries()] == ["returned", "opened"]
    ledger.charge_run(a_run(3), at_most_two)


def test_what_a_run_publishes_is_noted_with_it(ledger: PrivacyLedger) -> None:
    assert ledger.history() == History()
    number = ledger.charge_run(replace(a_run(1), published=b"before"), unlimited)
    assert ledger.history().published == {number: b"before"}
    ledger.note_published(number, b"after")
    found = ledger.history()
    assert (found.published, found.entries) == ({number: b"after"}, ledger.entries())


def test_the_limit_counts_what_is_charged_delivered_or_not(ledger: PrivacyLedger) -> None:
    ledger.charge_run(a_run(1), at_most_two)
    ledger.deliver(ledger.charge_run(a_run(2), at_most_two), bytes(32))
    with pytest.raises(PolicyError) as caught:
        ledger.charge_run(a_run(3), at_most_two)
    assert caught.value.problem.private == "2 of 2 are charged"
    assert "2" not in caught.value.problem.message
    assert len(ledger.entries()) == 2


def test_a_run_is_found_again_by_job_and_table(ledger: PrivacyLedger) -> None:
    first = opened(ledger, a_run(1))
    assert ledger.kept_run(b"\x07" * 32, b"\x03" * 32) is None
    ledger.finish(first, b"one")
    assert ledger.kept_run(b"\x07" * 32, b"\x03" * 32) == (first, b"one")
    assert ledger.kept_run(b"\x08" * 32, b"\x03" * 32) is None
    assert ledger.kept_run(b"\x07" * 32, b"\x04" * 32) is None
    second = opened(ledger, a_run(2))
    assert ledger.kept_run(b"\x07" * 32, b"\x03" * 32) == (first, b"one")
    ledger.finish(second, b"two")
    assert ledger.kept_run(b"\x07" * 32, b"\x03" * 32) == (second, b"two")


def test_a_release_that_is_delivered_in_the_end_is_not_said_to_have_broken_off(ledger: PrivacyLedger) -> None:
    number = opened(ledger, a_run())
    ledger.end(number, "io-failed", "hospital-b")
    assert [(e.ended, e.ended_at) for e in ledger.entries()] == [("io-failed", "hospital-b")]
    ledger.deliver(number, bytes(32))
    assert [(e.state, e.ended, e.ended_at) for e in ledger.entries()] == [("released", "", "")]


def test_a_run_that_failed_to_give_a_release_again_leaves_the_release(ledger: PrivacyLedger) -> None:
    number = opened(ledger, a_run())
    ledger.deliver(number, bytes(32))
    ledger.end(number, "peer-lost", "hospital-b")
    assert [(e.state, e.ended, e.ended_at) for e in ledger.entries()] == [("released", "", "")]


def test_a_number_is_given_to_one_run_only(ledger: PrivacyLedger) -> None:
    """A coordinator chooses it: used again, it would make one run of tables that never met."""
    ledger.charge_run(a_run(1), unlimited)
    with pytest.raises(PartyError, match="the number of an earlier one"):
        ledger.charge_run(a_run(1, table=4), unlimited)
    assert len(ledger.entries()) == 1


def test_what_a_single_holder_did_not_put_in_place_is_given_back(ledger: PrivacyLedger) -> None:
    ledger.give_back(ledger.reserve(ChargedJob("lkc", "table", bytes(32)), None))
    (entry,) = ledger.entries()
    assert (entry.state, entry.stands) == ("returned", False)


def test_the_key_of_table_digests_is_made_once_and_is_the_owners(ledger: PrivacyLedger, path: Path) -> None:
    key = ledger.key(SeededRng(1))
    assert ledger.key(SeededRng(2)) == key
    assert PrivacyLedger(path, "staff").key(SeededRng(2)) != key
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_ledger_of_an_earlier_version_is_read_and_goes_on(path: Path, ledger: PrivacyLedger) -> None:
    """It knew entries alone."""
    with sqlite3.connect(path) as old:
        old.execute(
            "CREATE TABLE entries (id INTEGER PRIMARY KEY, data TEXT NOT NULL, job_sha256 TEXT NOT NULL, job TEXT "
            "NOT NULL, kind TEXT NOT NULL, epsilon TEXT NOT NULL, state TEXT NOT NULL, began TEXT NOT NULL, "
            "result BLOB)"
        )
        old.execute(
            "INSERT INTO entries VALUES (1, 'patients', ?, 'flu', 'dp', '1', 'finished', 'then', ?)",
            ("01" * 32, b"x"),
        )
    old.close()
    assert ledger.stored_entry(b"\x01" * 32) == (1, b"x")
    ledger.deliver(1, bytes(32))
    assert ledger.stored(b"\x01" * 32) == b"x"  # a release that was delivered is kept, too
    assert [e.state for e in ledger.entries()] == ["released"]


def test_reservations_at_the_same_time(ledger: PrivacyLedger) -> None:
    """Two jobs that fit one by one, but not together: checking and charging are one step."""

    def attempt(_: int) -> bool:
        try:
            ledger.reserve(job(), Fraction(5))
            return True
        except BudgetError:
            return False

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(attempt, range(16)))
    assert sum(done) == 5
    assert ledger.spent() == 5


KILLED = """
import os, sys
from fractions import Fraction
from pathlib import Path
from jobs.owner.ledger import ChargedJob, PrivacyLedger
ledger = PrivacyLedger(Path(sys.argv[1]), "patients")
number = ledger.reserve(ChargedJob("dp", "flu", bytes(32), Fraction(1)), Fraction(3))
if sys.argv[2] == "opened":
    ledger.open(number)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("state", ["reserved", "opened"])
def test_a_process_that_is_killed_stays_charged(path: Path, ledger: PrivacyLedger, state: str) -> None:
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, path, state], cwd=root, env=os.environ, timeout=60, check=False
    )
    assert done.returncode == -9
    assert [(e.state, e.charged) for e in ledger.entries()] == [(state, 1)]


def test_runs_that_a_killed_daemon_left_are_given_an_end(path: Path) -> None:
    """Charges stay; the owner's own releases, and runs with an end, are no runs that a daemon left."""
    own = PrivacyLedger(path, "patients")
    ledger = own.asked_by("coordinator")
    assert ledger.give_up("hospital-a") == 0
    assert not path.exists()
    numbers = [ledger.reserve(job(), TEN) for _ in range(5)]
    own.reserve(job(), TEN)
    for number in numbers[1:]:
        ledger.open(number)
    for number in numbers[2:]:
        ledger.finish(number, b"x")
    ledger.deliver(numbers[3], b"r" * 32)
    ledger.end(numbers[4], "io-failed", "hospital-b")
    assert (ledger.give_up("hospital-a"), ledger.give_up("hospital-a")) == (3, 0)
    lost = ("peer-lost", "hospital-a")
    ends = [(e.ended, e.ended_at) for e in own.entries()]
    assert ends == [lost, lost, lost, ("", ""), ("io-failed", "hospital-b"), ("", "")]
    assert own.spent() == 6


def test_a_file_that_is_no_ledger(path: Path, ledger: PrivacyLedger) -> None:
    """Without a ledger nothing may be released: it is not started anew."""
    path.write_bytes(b"no database" * 100)
    for attempt in (
        ledger.entries,
        lambda: ledger.reserve(job(), TEN),
        lambda: ledger.stored(bytes(32)),
    ):
        with pytest.raises(BudgetError) as caught:
            attempt()
        assert (caught.value.problem.error_id, caught.value.problem.exit_code) == (
            "budget-ledger",
            Exit.BUDGET,
        )
        assert str(path) not in caught.value.problem.message
    assert path.read_bytes() == b"no database" * 100


def test_a_folder_that_cannot_be_written(ledger: PrivacyLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system refuses before SQLite does: the ledger says so in its own words."""

    def refuses(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    number = ledger.reserve(job(), TEN)
    monkeypatch.setattr(Path, "touch", refuses)
    with pytest.raises(BudgetError) as caught:
        ledger.end(number, "io-failed", "hospital-a")
    assert caught.value.problem.error_id == "budget-ledger"
    assert "Read-only file system" in caught.value.problem.cause


def test_a_charge_is_on_disk_before_it_is_said_to_be(ledger: PrivacyLedger, path: Path) -> None:
    """Another program sees it, and SQLite was told to wait for the disk, also for the journal to be gone from it.

    With a rollback journal the commit is its removal: of the levels only EXTRA syncs the folder after it.
    """
    ledger.reserve(job(Fraction(1, 3)), TEN)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT epsilon, state FROM entries").fetchall() == [("1/3", "reserved")]
    other.close()
    seen: list[str] = []
    with ledger.connected() as connection:
        for pragma in ("synchronous", "journal_mode"):
            seen += [str(connection.execute(f"PRAGMA {pragma}").fetchone()[0])]
    assert seen == ["3", "delete"]  # EXTRA
