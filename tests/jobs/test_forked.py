"""Work in several processes: the results of one process, in order; errors and interrupts as in one process."""

from __future__ import annotations

import os
from multiprocessing import active_children
from threading import Event

import pytest

from jobs import forked
from jobs.forked import mapped


def test_results_are_those_of_one_process_in_order() -> None:
    base = 7  # a value that is not pickled
    found = list(mapped(lambda x: (x * base, os.getpid()), range(20), pays=True))
    assert [value for value, _ in found] == [x * base for x in range(20)]
    alone = list(mapped(lambda x: (x * base, os.getpid()), range(20), pays=False))
    assert {process for _, process in alone} == {os.getpid()}


def test_several_processes_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "_cores", lambda: 2)
    assert os.getpid() not in set(mapped(lambda _: os.getpid(), range(4), pays=True))


@pytest.mark.parametrize("n", [0, 1])
def test_one_item_needs_no_process(n: int) -> None:
    assert list(mapped(lambda _: os.getpid(), range(n), pays=True)) == [os.getpid()] * n


def test_an_error_of_the_work_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "_cores", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        list(mapped(lambda x: 1 // x, [1, 0, 2], pays=True))


def test_an_interrupt_does_not_wait_for_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "_cores", lambda: 2)
    results = mapped(lambda x: x and Event().wait(), [0, 1], pays=True)
    assert next(results) == 0
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt())  # type: ignore[attr-defined]
    assert active_children() == []


def test_who_stops_reading_stops_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "_cores", lambda: 2)
    results = mapped(lambda x: x, range(1000), pays=True)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert list(results) == []
