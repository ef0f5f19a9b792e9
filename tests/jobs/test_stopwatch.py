"""Seconds by phase: shown as a phase begins, added up as it ends, however it ends."""

from __future__ import annotations

import pytest

import jobs.stopwatch
from jobs.stopwatch import Stopwatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that is told next, over and over."""
    now = [100.0]
    monkeypatch.setattr(jobs.stopwatch.time, "perf_counter", lambda: now[0])
    return now


def test_a_phase_lasts_as_long_as_its_block(clock: list[float]) -> None:
    shown: list[str] = []
    watch = Stopwatch(shown.append)
    with watch.phase("read"):
        assert shown == ["read"]
        clock[0] += 2
    clock[0] += 50
    with watch.phase("write"):
        clock[0] += 0.00004
    assert watch.seconds == {"read": 2, "write": 0}
    assert shown == ["read", "write"]


def test_phases_of_one_name_add_up(clock: list[float]) -> None:
    shown: list[str] = []
    watch = Stopwatch(shown.append)
    for seconds in (1, 2.25):
        with watch.phase("read"):
            clock[0] += seconds
    assert watch.seconds == {"read": 3.25}
    assert shown == ["read"]


def test_a_phase_that_fails_was_there_too(clock: list[float]) -> None:
    watch = Stopwatch(lambda name: None)

    def fail() -> None:
        with watch.phase("read"):
            clock[0] += 3
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert watch.seconds == {"read": 3}
