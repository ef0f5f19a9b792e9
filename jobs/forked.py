"""Independent computations on the same large values, in processes that share these values with this process."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def mapped(work: Callable[[T], R], items: Sequence[T], *, pays: bool) -> Iterator[R]:
    """Yield the result of every item, in order.

    work:  reads no file and starts no thread. Its results are pickled, and so are errors.
    pays:  False where a process would take longer to start than its part of the work.
    """
    n_workers = min(_cores(), len(items)) if pays else 1
    if n_workers < 2:
        yield from map(work, items)
        return
    yield from _in_processes(work, items, n_workers)


def _cores() -> int:
    """Return the number of processes that help. Elsewhere than on Linux, libraries may not survive a fork."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def _in_processes(work: Callable[[T], R], items: Sequence[T], n_workers: int) -> Iterator[R]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(n_workers, get_context("fork"), _begin, (work,))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of idle threads of libraries, from 3.12 on
            results = deque(pool.submit(_do, item) for item in items)
        while results:
            yield results.popleft().result()
    except BaseException:  # also an interrupt, or a reader that stops: nobody waits for the rest of the work
        for worker in list(pool._processes.values()):
            worker.terminate()
        raise
    finally:
        pool.shutdown()


_work: Callable[[Any], Any]
"""Work of a forked process. The process inherits the work, which is not pickled."""


def _begin(work: Callable[[Any], Any]) -> None:
    """Begin a forked process, which leaves interrupts of the keyboard to its parent."""
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _do(item: Any) -> Any:
    return _work(item)
