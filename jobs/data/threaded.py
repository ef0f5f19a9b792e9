"""Work in threads of this process, a little ahead of its reader. Memory holds a few results at a time.

Threads run side by side where the work leaves Python's lock: in Arrow, NumPy and hashes, on large arrays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 3
"""Most results that wait for their reader."""


def mapped(work: Callable[[T], R], items: Iterable[T], threads: int = 2) -> Iterator[R]:
    """Yield the result of every item, in order. An error comes after all results before the error.

    items:    taken in the reader's thread.
    threads:  with one thread, items are worked on in order.
    """
    from concurrent.futures import ThreadPoolExecutor

    pool, rest = ThreadPoolExecutor(threads), iter(items)
    waiting: deque[Future[R]] = deque()
    try:
        while True:
            try:
                waiting.append(pool.submit(work, next(rest)))
            except Exception as end:
                yield from (each.result() for each in waiting)
                if isinstance(end, StopIteration):
                    return
                raise
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
