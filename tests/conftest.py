"""What every test may use."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from crypto import engine
from tests.support.bare import strip
from tests.support.databases import DSN_ENV, Database, Server, serving
from tests.support.engines import Both, compiled
from tests.support.fast import taking_seconds
from tests.support.scheduling import pytest_xdist_make_scheduler  # noqa: F401  a hook
from tests.support.vectors import Golden

# Before anything is started: no test may pass because of what this machine happens to set.
strip(os.environ)
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as for what a shell runs in the background: children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).resolve().parent

# Machines are shared: how long an example takes says nothing.
settings.register_profile("jointcut", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# What decides whether a commit is good says the same of it every time; every other run draws examples of its own.
settings.register_profile("repeatable", settings.get_profile("jointcut"), derandomize=True)
# Who only asks whether a test fails, and not for the smallest example of it. The same examples again.
settings.register_profile(
    "failing", settings.get_profile("repeatable"), phases=(Phase.explicit, Phase.generate, Phase.target)
)
settings.load_profile("jointcut")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-vectors", action="store_true", help="write the golden vectors anew")
    parser.addoption("--every-python", action="store_true", help="fail where a supported Python is not here")


def pytest_collection() -> None:
    """Hundreds of thousands of objects come and stay: nothing is to be gained by looking through them meanwhile."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    left_out = taking_seconds()
    for item in items:
        module = item.path.relative_to(TESTS).as_posix()
        test = f"{module}::{getattr(item, 'originalname', item.name)}"
        if test in left_out or module in left_out or f"{module.partition('/')[0]}/" in left_out:
            item.add_marker(pytest.mark.seconds)


@pytest.fixture(autouse=True)
def _both_engines() -> None:
    """What a test garbles, transposes or looks up is computed by both engines and compared, where there are two."""
    other = compiled()
    engine.use(engine.Reference() if isinstance(other, str) else Both(other))
    engine.after(0, lambda: None)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(bool(request.config.getoption("--rewrite-vectors")))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, of this process alone."""
    with serving() as server:
        yield server


@pytest.fixture
def database(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Database:
    """An empty database of it, whose address is where a table in PostgreSQL is looked for."""
    made = postgres.database()
    monkeypatch.setenv(DSN_ENV, made.dsn())
    return made
