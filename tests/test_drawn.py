"""Tests marked `more` that each run of continuous integration draws."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.bare import bare
from tests.support.drawn import LONG

ROOT = Path(__file__).resolve().parents[1]
MODULE = "tests/crypto/ot/test_consistency.py"


def collected(*options: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", MODULE, *options]
    done = subprocess.run(command, cwd=ROOT, env=bare(), capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith(MODULE)]


def test_as_many_of_the_tests_left_out_as_asked_for_are_drawn() -> None:
    always, more, some = collected(), collected("-m", "more"), collected("--drawn-more", "5")
    assert not {*always} & {*more}
    assert {*always} < {*some} < {*always, *more}
    assert len(some) == len(always) + 5


def test_long_tests_are_where_they_are_said_to_be() -> None:
    assert [place for place in LONG if not (ROOT / place).exists()] == []


def test_cases_are_drawn_by_lot() -> None:
    """Of all cells of the fault matrix so many run each time; the others wait for `make test-all`."""
    module = "tests/matrix/test_matrix.py"
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", module]
    done = subprocess.run(command, cwd=ROOT, env=bare(), capture_output=True, text=True, check=True)
    assert sum("::test_a_fault[" in line for line in done.stdout.splitlines()) == 3
