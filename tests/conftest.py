"""Fixtures of all tests."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from nacl import bindings

from crypto import engine
from crypto.ot import base
from party import compiling
from tests.support.bare import strip
from tests.support.costly import leave_tests_out, share
from tests.support.demo import INSTALLED, in_locale, run_demo
from tests.support.drawn import draw, draw_cases, pytest_configure  # noqa: F401  a hook
from tests.support.durations import pytest_terminal_summary  # noqa: F401  a hook
from tests.support.engines import Late, compiled
from tests.support.examples import FEW, leave_cases_out
from tests.support.fast import module_of, name_of, taking_seconds
from tests.support.forked import EXECUTED, Popen
from tests.support.group import INTEGERS
from tests.support.scheduling import (  # noqa: F401  hooks
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)
from tests.support.vectors import Golden

# Before anything is started: no test may pass because of what this machine happens to set.
strip(os.environ)
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as for what a shell runs in the background: children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).resolve().parent

# Machines are shared: how long an example takes says nothing.
settings.register_profile("many", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Few examples, and the same ones each time: the suite decides whether a commit is good.
settings.register_profile("few", settings.get_profile("many"), derandomize=True, max_examples=FEW)
# Mutants: the same examples each time, and no search for the smallest one that fails.
settings.register_profile(
    "failing",
    settings.get_profile("many"),
    derandomize=True,
    phases=(Phase.explicit, Phase.generate, Phase.target),
)
settings.load_profile("few")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-vectors", action="store_true", help="write the golden vectors anew")
    parser.addoption(
        "--every-python", action="store_true", help="install the wheel with each supported Python"
    )
    parser.addoption(
        "--drawn-more", type=int, default=0, metavar="N", help="run N of the tests marked `more`"
    )
    parser.addoption("--lot", type=share, default=1, metavar="N", help="run one in N of the costly tests")
    parser.addoption("--both-engines", action="store_true", help="compute each circuit with both engines")


def pytest_collection() -> None:
    """Hundreds of thousands of objects come and stay: nothing is to be gained by looking through them meanwhile."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage a tenth as often as Python does: tests leave little of it, and look through much."""
    gc.freeze()
    gc.set_threshold(7_000, 10, 10)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_cases_out(items)
    draw_cases(items)
    leave_tests_out(items, config.getoption("--lot"))
    draw(items, config.getoption("--drawn-more"))
    left_out = taking_seconds()
    for item in items:
        module = module_of(item.path)
        if name_of(item) in left_out or module in left_out or f"{module.partition('/')[0]}/" in left_out:
            item.add_marker(pytest.mark.seconds)


REAL_GROUP = ("crypto/ot/", "crypto/test_intersection.py")
"""Tests of base transfers and of their hostile messages. Golden transcripts are of the real group everywhere."""


def _real_group(request: pytest.FixtureRequest) -> bool:
    """Return whether base transfers of a test, or of a whole module, are in the real group."""
    module = request.path.relative_to(TESTS).as_posix()
    return module.startswith(REAL_GROUP) or bool(request.config.getoption("--both-engines"))


@pytest.fixture(autouse=True, scope="module")
def _group(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let base transfers cost nothing, but in tests of them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, operation in () if _real_group(request) else INTEGERS.items():
            patch.setattr(base, name, operation)
        yield


@pytest.fixture(autouse=True, scope="module")
def _forked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fork processes of our programs, but in tests of how such a process is started."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.path.relative_to(TESTS).as_posix().startswith(EXECUTED):
            patch.setattr(subprocess, "Popen", Popen)
        yield


@pytest.fixture(autouse=True, scope="module")
def _compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile the engine once, not for each `party check`, but in tests of when it is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name != "test_compiling.py":
            patch.setattr(compiling, "_compiled", compiled)
        yield


@pytest.fixture(scope="session")
def demo_in_a_c_locale(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run the installed demo once, at a path beyond ASCII; return what it printed and its folder."""
    folder = tmp_path_factory.mktemp("demo") / "hier drüben"
    return run_demo(INSTALLED, folder, in_locale({"LC_ALL": "C"})), folder


@pytest.fixture(autouse=True)
def _engine(request: pytest.FixtureRequest) -> None:
    """Choose the engine of circuits and transfers: both and compared in tests of crypto/, else the faster one."""
    both = request.path.is_relative_to(TESTS / "crypto") or request.config.getoption("--both-engines")
    engine.use(Late(both=bool(both)))
    engine.after(0, lambda: None)


@pytest.fixture
def golden(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Golden:
    """Compare with golden vectors. They are of the real group."""
    for name in INTEGERS:
        monkeypatch.setattr(base, name, getattr(bindings, name))
    return Golden(bool(request.config.getoption("--rewrite-vectors")))
