"""Tests marked `more` that each run of continuous integration draws."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bare import bare
from tests.support.drawn import LONG

ROOT = Path(__file__).resolve().parents[1]
MODULE = "tests/crypto/ot/test_consistency.py"
MATRIX = "tests/matrix/test_matrix.py"


_COLLECT = """
import pytest, sys
for options in sys.argv[1:]:
    print("--")
    assert pytest.main(["--collect-only", "--quiet", *options.split(" ")]) == 0
"""
"""Collect several times in one process, which imports the tests once."""


@pytest.fixture(scope="module")
def collected() -> list[list[str]]:
    """Return the tests that are collected of a module: always, those marked `more`, with some of these drawn; then
    of the fault matrix.
    """
    asked = [MODULE, f"{MODULE} -m more", f"{MODULE} --drawn-more 5", MATRIX]
    done = subprocess.run(
        [sys.executable, "-c", _COLLECT, *asked],
        cwd=ROOT,
        env=bare(),
        capture_output=True,
        text=True,
        check=True,
    )
    _, *lists = done.stdout.split("--\n")
    return [[line for line in each.splitlines() if line.startswith("tests/")] for each in lists]


def test_as_many_of_the_tests_left_out_as_asked_for_are_drawn(collected: list[list[str]]) -> None:
    always, more, some, _ = collected
    assert not {*always} & {*more}
    assert {*always} < {*some} < {*always, *more}
    assert len(some) == len(always) + 5


def test_long_tests_are_where_they_are_said_to_be() -> None:
    assert [place for place in LONG if not (ROOT / place).exists()] == []


def test_cases_are_drawn_by_lot(collected: list[list[str]]) -> None:
    """Of all cells of the fault matrix so many run each time; the others wait for `make test-all`."""
    assert sum("::test_a_fault[" in line for line in collected[-1]) == 3
