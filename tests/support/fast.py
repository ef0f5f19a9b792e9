"""Tests, modules and folders that `make test-fast` leaves out, since they take long; listed in
tests/seconds.txt.

`make test-fast FLAGS=--junitxml=REPORT` measures, and `python -m tests.support.fast REPORT` adds what was slow. Run
both twice: what a test that is now left out had made for others, one of these makes next.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

LIST = Path(__file__).resolve().parents[1] / "seconds.txt"
MOST_S, MOST_OF_MODULE_S = 0.12, 1.0
"""Seconds of a test with all its parameters, and of all tests of a module, that are left in."""


def name_of(item: pytest.Item) -> str:
    """Return the name of a test without its parameters, relative to tests/: `crypto/test_x.py::test_y`."""
    return f"{module_of(item.path)}::{getattr(item, 'originalname', item.name)}"


@cache
def module_of(path: Path) -> str:
    """Return the path of a module, relative to tests/."""
    return path.relative_to(LIST.parent).as_posix()


def taking_seconds() -> frozenset[str]:
    """Names relative to tests/, without parameters: `crypto/test_x.py::test_y`, `crypto/test_x.py` or `crypto/`."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def times(report: Path) -> dict[str, dict[str, float]]:
    """Return the seconds of each test with all its parameters, by module and name, by a report that pytest wrote."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314  written by pytest
        module = f"{case.get('classname', '').removeprefix('tests.').replace('.', '/')}.py"
        found[module][case.get("name", "").partition("[")[0]] += float(case.get("time", 0))
    return found


def slow(report: Path) -> set[str]:
    """Return the tests and modules that took long by a report that pytest wrote."""
    measured = times(report)
    found = {module for module, tests in measured.items() if sum(tests.values()) > MOST_OF_MODULE_S}
    return found | {
        f"{m}::{test}" for m, tests in measured.items() for test, took in tests.items() if took > MOST_S
    }


def add(report: Path) -> None:
    """Write the list with what a report adds to it."""
    head = [line for line in LIST.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    found = taking_seconds() | slow(report)
    kept = sorted(
        name for name in found if name.partition("::")[0] == name or name.partition("::")[0] not in found
    )
    LIST.write_text("\n".join([*head, *kept, ""]), encoding="utf-8")


if __name__ == "__main__":
    add(Path(sys.argv[1]))
