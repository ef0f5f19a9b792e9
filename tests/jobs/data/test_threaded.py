"""Work in threads: the results of one thread, in order; errors where they happen; nothing left running."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jobs.data import threaded
from jobs.data.threaded import mapped
from tests.support.pools import pool_threads


def test_results_come_in_order_from_several_threads() -> None:
    both = threading.Barrier(2, timeout=30)

    def work(item: int) -> tuple[int, int]:
        if item < 2:
            both.wait()  # passes if two threads work at once
        return item * 7, threading.get_ident()

    found = list(mapped(work, range(50)))
    assert [value for value, _ in found] == [item * 7 for item in range(50)]
    assert threading.get_ident() not in {thread for _, thread in found}


def test_one_thread_takes_items_in_order() -> None:
    seen: list[int] = []
    assert list(mapped(seen.append, range(200), threads=1)) == [None] * 200
    assert seen == list(range(200))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_few_items(n: int) -> None:
    assert list(mapped(str, range(n))) == list(map(str, range(n)))


def test_few_results_wait_for_their_reader() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    for number, _ in enumerate(mapped(str, items())):
        assert len(taken) - number <= threaded._AHEAD + 1


def test_an_error_of_the_work_comes_after_the_results_before_it() -> None:
    before = pool_threads()
    found: list[int] = []
    with pytest.raises(ZeroDivisionError):
        found.extend(mapped(lambda item: 12 // item, [3, 2, 1, 0, 5]))
    assert found == [4, 6, 12]
    assert pool_threads() <= before


def test_an_error_of_the_items_comes_after_the_results_before_it() -> None:
    before = pool_threads()

    def items() -> Iterator[int]:
        yield from (3, 2)
        raise OSError("the disk")

    found: list[int] = []
    with pytest.raises(OSError, match="the disk"):
        found.extend(mapped(lambda item: 12 // item, items()))
    assert found == [4, 6]
    assert pool_threads() <= before


def test_a_reader_that_stops_leaves_nothing_running() -> None:
    before = pool_threads()
    for value in mapped(str, range(1000)):
        if value == "5":
            break
    assert pool_threads() <= before


def test_a_reader_that_fails_leaves_nothing_running() -> None:
    before = pool_threads()

    def reads() -> None:
        for value in mapped(str, range(1000)):
            raise KeyError(value)

    with pytest.raises(KeyError):
        reads()
    assert pool_threads() <= before
