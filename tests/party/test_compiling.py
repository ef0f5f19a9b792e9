"""A process compiles once it runs circuits of some size, beside its work; whatever fails leaves NumPy."""

from __future__ import annotations

import importlib.util
import logging
import threading

import pytest

import party.compiling
from crypto import engine
from party.compiling import ENOUGH_GATES, compile_where_it_pays, engine_line, prepare
from tests.support.engines import compiled


def finished() -> None:
    """Wait for what was begun."""
    for name in ("preparing", "compiling"):
        for thread in threading.enumerate():
            if thread.name == name:
                thread.join()


@pytest.fixture(autouse=True)
def new_process() -> None:
    """Forget what a test before has compiled."""
    party.compiling._compiled.cache_clear()


@pytest.fixture
def reference() -> engine.Engine:
    chosen = engine.Reference()
    engine.use(chosen)
    return chosen


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "llvmlite" else plain(name))


def test_without_the_package_nothing_happens_and_nothing_is_said(
    absent: None, reference: engine.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    compile_where_it_pays()
    engine.begin(ENOUGH_GATES)
    assert engine.in_force() is reference
    finished()
    assert engine.in_force() is reference
    assert not caplog.records
    assert engine_line() == "NumPy (`jointcut[fast]` is not installed)"


def test_a_process_that_prepares_compiles_before_its_first_circuit(
    reference: engine.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, however often it prepares, and also beside circuits."""
    begun: list[None] = []

    def noted() -> engine.Engine | str:
        begun.append(None)
        return compiled()

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(party.compiling, "_compiled", noted)
    compile_where_it_pays()
    for _ in range(2):
        prepare()
        finished()
    engine.begin(ENOUGH_GATES)
    finished()
    assert len(begun) == 1
    assert engine.in_force() is not reference or isinstance(compiled(), str)


def test_a_process_that_ends_waits_for_the_compiler(
    reference: engine.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM ended a daemon with SIGABRT that was stopped meanwhile, whoever began to compile."""
    waited_for: list[bool] = []

    def noted() -> str:
        waited_for.append(not threading.current_thread().daemon)
        return "no such instruction"

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(party.compiling, "_compiled", noted)
    compile_where_it_pays()
    prepare()
    finished()
    assert waited_for == [True]


def test_what_fails_leaves_numpy_with_one_line(
    reference: engine.Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> engine.Engine | str:
        return "no such instruction"

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(party.compiling, "_compiled", broken)
    compile_where_it_pays()
    engine.begin(ENOUGH_GATES)
    assert engine.in_force() is reference
    finished()
    assert engine.in_force() is reference
    assert [record.getMessage() for record in caplog.records] == [
        "circuits are computed by NumPy: no such instruction"
    ]
    assert caplog.records[0].levelno == logging.WARNING
    assert engine_line() == "NumPy (no such instruction)"


@pytest.mark.parametrize("error", [OSError("line one\nline two"), RuntimeError()])
def test_any_error_of_the_package_is_caught(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(reason := compiled(), str):
        pytest.skip(reason)

    def load() -> engine.Engine:
        raise error

    monkeypatch.setattr("crypto.compiled.loading.load", load)
    assert engine_line() == f"NumPy ({'line one' if error.args else 'RuntimeError'})"


def test_until_the_code_is_there_numpy_computes(reference: engine.Engine) -> None:
    if isinstance(reason := compiled(), str):
        pytest.skip(reason)
    compile_where_it_pays()
    engine.begin(ENOUGH_GATES - 1)
    assert not any(thread.name == "compiling" for thread in threading.enumerate())
    engine.begin(1)
    finished()
    assert type(engine.in_force()).__name__ == "Compiled"
    assert engine_line() == "code compiled for this CPU"
