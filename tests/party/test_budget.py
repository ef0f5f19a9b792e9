"""The privacy ledger: what is charged stays charged, whatever happens, and nobody gets more than the limit."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from party.budget import Budget, Job
from party.errors import BudgetError, Exit

TEN = Fraction(10)


def job(epsilon: Fraction = Fraction(1), name: str = "flu", digest: bytes = b"\x01" * 32) -> Job:
    return Job(name, digest, epsilon)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "privacy.sqlite"


@pytest.fixture
def budget(path: Path) -> Budget:
    return Budget(path, "patients")


def refused(budget: Budget, asked: Job, limit: Fraction) -> BudgetError:
    with pytest.raises(BudgetError) as caught:
        budget.reserve(asked, limit)
    return caught.value


def test_a_data_set_without_releases(budget: Budget, path: Path) -> None:
    assert budget.entries() == []
    assert budget.spent() == 0
    assert budget.stored(bytes(32)) is None
    budget.check(job(), Fraction(1))
    assert not path.exists()  # looking leaves nothing behind


def test_the_life_of_a_charge(budget: Budget) -> None:
    number = budget.reserve(job(), TEN)
    assert [(e.state, e.charged) for e in budget.entries()] == [("reserved", 1)]
    budget.open(number)
    assert [(e.state, e.charged) for e in budget.entries()] == [("opened", 1)]
    assert budget.stored(b"\x01" * 32) is None
    budget.finish(number, b"the counts")
    (entry,) = budget.entries()
    assert (entry.number, entry.job, entry.kind, entry.state) == (number, "flu", "dp", "finished")
    assert (entry.epsilon, entry.job_sha256) == (1, "01" * 32)
    assert budget.stored(b"\x01" * 32) == b"the counts"
    assert budget.stored(b"\x02" * 32) is None


def test_only_what_was_never_opened_is_given_back(budget: Budget) -> None:
    first, second = budget.reserve(job(), TEN), budget.reserve(job(), TEN)
    budget.open(second)
    for number in (first, second, first, 99):
        budget.give_back(number)
    assert [(e.state, e.charged) for e in budget.entries()] == [("returned", 0), ("opened", 1)]


@pytest.mark.parametrize("step", ["open", "finish"])
def test_no_step_is_skipped_or_repeated(budget: Budget, step: str) -> None:
    number = budget.reserve(job(), TEN)
    if step == "open":
        budget.give_back(number)
        with pytest.raises(BudgetError) as caught:
            budget.open(number)
    else:
        with pytest.raises(BudgetError) as caught:
            budget.finish(number, b"")
    assert caught.value.problem.error_id == "budget-ledger"


def test_the_limit_is_on_the_sum(budget: Budget) -> None:
    half = Fraction(1, 2)
    budget.reserve(job(half), Fraction(1))
    budget.reserve(job(half), Fraction(1))
    error = refused(budget, job(Fraction(1, 10**9)), Fraction(1))
    assert (error.problem.error_id, error.problem.exit_code) == ("budget-exceeded", Exit.BUDGET)
    assert error.problem.private == "1 of 1 is spent"
    assert "spent" not in error.problem.message  # what others released is the owner's business
    assert len(budget.entries()) == 2
    with pytest.raises(BudgetError):
        budget.check(job(), Fraction(1))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=2), min_size=1, max_size=8))
def test_never_more_than_the_limit(tmp_path_factory: pytest.TempPathFactory, asked: list[Fraction]) -> None:
    """Exactly: thirds add up to one, and no rounding lets a job through."""
    budget, limit, taken = (
        Budget(tmp_path_factory.mktemp("x") / "l", "d"),
        Fraction(7, 3),
        Fraction(0),
    )
    for epsilon in asked:
        if taken + epsilon <= limit:
            budget.reserve(job(epsilon), limit)
            taken += epsilon
        else:
            refused(budget, job(epsilon), limit)
        assert budget.spent() == taken


def test_data_sets_in_one_file_are_apart(path: Path) -> None:
    one, other = Budget(path, "patients"), Budget(path, "staff")
    number = one.reserve(job(), Fraction(1))
    one.open(number)
    one.finish(number, b"x")
    assert other.spent() == 0
    assert other.stored(b"\x01" * 32) is None
    other.reserve(job(), Fraction(1))
    assert one.spent() == 1


def test_the_last_finished_result_is_kept(budget: Budget) -> None:
    for result in (b"one", b"two"):
        number = budget.reserve(job(), TEN)
        budget.open(number)
        budget.finish(number, result)
    budget.open(budget.reserve(job(), TEN))
    assert budget.stored(b"\x01" * 32) == b"two"
    assert budget.spent() == 3


def test_lkc_releases_are_listed_and_cost_nothing(budget: Budget) -> None:
    budget.note_lkc("table", b"\x07" * 32)
    (entry,) = budget.entries()
    assert (entry.kind, entry.state, entry.charged, entry.job) == ("lkc", "released", 0, "table")
    assert budget.stored(b"\x07" * 32) is None


def test_reservations_at_the_same_time(budget: Budget) -> None:
    """Two jobs that fit one by one, but not together: checking and charging are one step."""

    def attempt(_: int) -> bool:
        try:
            budget.reserve(job(), Fraction(5))
            return True
        except BudgetError:
            return False

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(attempt, range(16)))
    assert sum(done) == 5
    assert budget.spent() == 5


KILLED = """
import os, sys
from fractions import Fraction
from pathlib import Path
from party.budget import Budget, Job
budget = Budget(Path(sys.argv[1]), "patients")
number = budget.reserve(Job("flu", bytes(32), Fraction(1)), Fraction(3))
if sys.argv[2] == "opened":
    budget.open(number)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("state", ["reserved", "opened"])
def test_a_process_that_is_killed_stays_charged(path: Path, budget: Budget, state: str) -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, path, state], cwd=root, env=os.environ, timeout=60, check=False
    )
    assert done.returncode == -9
    assert [(e.state, e.charged) for e in budget.entries()] == [(state, 1)]


def test_a_file_that_is_no_ledger(path: Path, budget: Budget) -> None:
    """Without a ledger nothing may be released: it is not started anew."""
    path.parent.mkdir()
    path.write_bytes(b"no database" * 100)
    for attempt in (
        budget.entries,
        lambda: budget.reserve(job(), TEN),
        lambda: budget.stored(bytes(32)),
    ):
        with pytest.raises(BudgetError) as caught:
            attempt()
        assert (caught.value.problem.error_id, caught.value.problem.exit_code) == (
            "budget-ledger",
            Exit.BUDGET,
        )
        assert str(path) not in caught.value.problem.message
    assert path.read_bytes() == b"no database" * 100


def test_a_charge_is_on_disk_before_it_is_said_to_be(budget: Budget, path: Path) -> None:
    """Another program sees it, and SQLite was told to wait for the disk, also for the journal to be gone from it.

    With a rollback journal the commit is its removal: of the levels only EXTRA syncs the folder after it.
    """
    budget.reserve(job(Fraction(1, 3)), TEN)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT epsilon, state FROM entries").fetchall() == [("1/3", "reserved")]
    other.close()
    seen: list[str] = []
    with budget._connected() as connection:
        for pragma in ("synchronous", "journal_mode"):
            seen += [str(connection.execute(f"PRAGMA {pragma}").fetchone()[0])]
    assert seen == ["3", "delete"]  # EXTRA
