"""Tests that take half a second or more, listed in tests/costly.txt. `make test` runs one in four of them, by lot.

Library and tests decide the draw, as they decide that of the mutants: the same commit always runs the same tests, and
each test has its turn within some commits. All tests of a module run if the last commits changed the module, or the
source file that the module mirrors. `make test-all`, and pytest without `--lot`, run all costly tests.

`make test FLAGS="--lot 1 --junitxml=REPORT"` measures, and `python -m tests.support.costly REPORT` writes the list
anew. No test directly in tests/ or of the corpus is left out, and none with golden vectors: these tests compare what
is written down with what is so, and a commit must not leave the two apart.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.drawing import changed_files
from tests.support.drawn import lot
from tests.support.fast import module_of, name_of, times

TESTS = Path(__file__).resolve().parents[1]
LIST = TESTS / "costly.txt"
COMMITS = 40
"""Last commits that count, more than a landing has."""
LEAST_S = 0.5
"""Seconds from which a test is costly, with all its cases and what they set up."""


def costly() -> dict[str, float]:
    """Return the seconds of each test by its name, relative to tests/ and without parameters.

    A name is `crypto/test_x.py::test_y`.
    """
    lines = LIST.read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if not line.startswith("#")]
    return {name: float(seconds) for name, seconds in words}


def share(text: str) -> int:
    """Read the option `--lot`: run one in so many. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ArgumentTypeError(f"{text} is no share: write 1 for all costly tests, or 4 for one in four")
    return int(text)


def leave_tests_out(items: Sequence[pytest.Item], one_in: int) -> None:
    """Mark with `more` all but one in ``one_in`` of the costly tests among ``items``."""
    if one_in == 1:
        return
    changed = changed_files(TESTS.parent, COMMITS)
    listed = costly()
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        name = name_of(item)
        if name not in listed or _compares(item):
            continue
        module = module_of(item.path)
        if not {f"tests/{module}", mirrored(Path(module))} & changed:
            tests.setdefault(name, []).append(item)
    for name in sorted(tests, key=lot())[len(tests) // one_in :]:
        for item in tests[name]:
            item.add_marker(pytest.mark.more)


def _compares(item: pytest.Item) -> bool:
    """Return True for a test that compares what is written down with what is so."""
    folder = item.path.parent
    return folder in (TESTS, TESTS / "corpus") or "golden" in getattr(item, "fixturenames", ())


def mirrored(module: Path) -> str:
    """Return the source file that a module of tests mirrors: `party/net/client.py` of `party/net/test_client.py`."""
    return module.with_name(module.name.removeprefix("test_")).as_posix()


def write(report: Path) -> None:
    """Write the list by a report that pytest wrote."""
    head = [line for line in LIST.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    found = sorted(
        f"{module}::{test} {took:.1f}"
        for module, tests in times(report).items()
        for test, took in tests.items()
        if took >= LEAST_S
    )
    LIST.write_text("\n".join([*head, *found, ""]), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
