"""The index of attacks names tests that there are, and every test of attacks is in it."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINES = (HERE / "README.md").read_text().splitlines()
ROWS = [line for line in LINES if re.match(r"\| [a-e]\d\d", line)]
OTHERS = [line for line in LINES if line.startswith("| – |")]
"""Attacks that were tried without a program of their own."""
SECOND = [line for line in LINES if re.match(r"\| [A-F]\d? \|", line)]
"""Points of the second attack."""


def named(row: str) -> list[str]:
    return re.findall(r"`([\w/]+\.py)`", row.split(" | ")[-1])


def test_tests_that_are_named_are_there() -> None:
    assert [
        test for row in ROWS + OTHERS + SECOND for test in named(row) if not (HERE.parent / test).is_file()
    ] == []


def test_every_test_of_attacks_is_named() -> None:
    there = {f"attacks/{path.name}" for path in HERE.glob("test_*.py")} - {"attacks/test_index.py"}
    # Of what was built against the attacks, not of one of them; and of a note in docs/security.md.
    since = {"attacks/test_accountability.py", "attacks/test_counted_otherwise.py"}
    assert there <= {test for row in ROWS + OTHERS for test in named(row)} | since


def test_every_program_has_a_row() -> None:
    programs = [name for row in ROWS for name in re.findall(r"[a-e]\d\d", row.split(" | ")[0])]
    last = {"a": 21, "b": 1, "c": 7, "d": 6, "e": 2}
    every = [f"{kind}{number:02d}" for kind, most in last.items() for number in range(1, most + 1)]
    assert sorted(programs) == every


def test_every_point_of_the_second_attack_has_a_row() -> None:
    """Each names a test, or the document that tells the limit."""
    points = [row.split(" | ")[0].removeprefix("| ") for row in SECOND]
    last = {"A": 2, "C": 2, "D": 3, "E": 9}
    assert points == sorted(
        [*(f"{kind}{n}" for kind, most in last.items() for n in range(1, most + 1)), "B", "F"]
    )
    assert [row for row in SECOND if not named(row) and "docs/" not in row] == []
