"""Tests that share daemons, or ports the system chooses, run in one worker; all others wherever there is room."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bare import bare
from tests.support.scheduling import BY_MODULE, SIMULATED, seconds_of, unit_of

TESTS = Path(__file__).resolve().parent
MODULE = """
import os, time
from pathlib import Path
import pytest

@pytest.mark.parametrize("i", range(4))
def test_x(i):
    time.sleep(0.05)
    with (Path(__file__).parent / "workers").open("a") as file:
        print(os.environ["PYTEST_XDIST_WORKER"], file=file)
"""
MODULES = (
    "coordinator/test_cli.py",
    "jobs/lkc/test_report.py",
    "party/test_a.py",
    "end_to_end/test_b.py",
    "crypto/test_c.py",
)


@pytest.mark.parametrize("module", sorted(SIMULATED))
def test_every_module_that_is_named_exists(module: str) -> None:
    assert (TESTS / module).is_file()


def test_every_place_that_is_named_exists() -> None:
    assert all((TESTS / place).exists() for place in BY_MODULE)


def test_every_module_that_simulates_with_daemons_is_named() -> None:
    """A call of `simulate` or `demo` that is not in process."""
    starts = re.compile(r'run_simulated\(|parties_on_loopback\(|call\("demo"|command\("simulate"')
    found = {
        str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py") if starts.search(path.read_text())
    } - {"test_scheduling.py"}
    assert found <= SIMULATED
    assert len(found) > 2


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/coordinator/test_cli.py::test_x[a::b]", "simulated"),
        ("tests/test_places.py::test_x", "simulated"),
        ("tests/party/net/test_link.py::test_x[1]", "party/net/test_link.py"),
        ("tests/crypto/test_rng.py::test_x[1]", "tests/crypto/test_rng.py::test_x[1]"),
        ("tests/test_ci.py::test_x", "tests/test_ci.py::test_x"),
    ],
)
def test_what_stays_together(test: str, unit: str) -> None:
    assert unit_of(test) == unit


def test_a_unit_with_a_costly_test_comes_before_one_with_many() -> None:
    """A costly test counts once, with all its cases."""
    costs = {"party/test_a.py::test_x": 9.0}
    many = [f"tests/party/test_b.py::test_y[{i}]" for i in range(100)]
    few = ["tests/party/test_a.py::test_x[1]", "tests/party/test_a.py::test_x[2]"]
    assert seconds_of(few, costs) == pytest.approx(9.1)
    assert seconds_of(many, costs) == pytest.approx(5)


@pytest.mark.more
def test_workers_get_whole_units(tmp_path: Path) -> None:
    for name in MODULES:
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "tests.support.scheduling"]
    options = [
        "--rootdir",
        tmp_path,
        "-c",
        tmp_path / "pytest.ini",
        "--import-mode=importlib",
        tmp_path / "tests",
    ]
    done = subprocess.run(
        [*command, *options], cwd=TESTS.parent, env=bare(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    workers = {name: (tmp_path / "tests" / name).with_name("workers").read_text().split() for name in MODULES}
    assert all(len(ran) == 4 for ran in workers.values())
    assert len({*workers["coordinator/test_cli.py"], *workers["jobs/lkc/test_report.py"]}) == 1
    assert len(set(workers["party/test_a.py"])) == len(set(workers["end_to_end/test_b.py"])) == 1
    assert {worker for ran in workers.values() for worker in ran} == {"gw0", "gw1"}
