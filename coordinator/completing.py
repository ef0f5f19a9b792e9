"""Completion of a coroutine, whether or not the thread has a running event loop, as the thread of a notebook has."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Event
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def completed(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine with an event loop of its own; in a thread if this thread has a running loop.

    An interrupt of the caller cancels the coroutine, and is raised after the coroutine has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    stoppable = _Stoppable(work)
    context = copy_context()  # a notebook finds the cell of an output by the context
    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(context.run, asyncio.run, stoppable.run()).result()
        except KeyboardInterrupt:
            stoppable.stop()
            raise


class _Stoppable(Generic[T]):
    """Coroutine that another thread may stop at any moment, even before its start."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
        self._stopped, self._ended = Event(), Event()

    async def run(self) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._started.set_result((asyncio.get_running_loop(), task))
        try:
            if self._stopped.is_set():
                task.cancel()
            return await self._work
        finally:
            self._ended.set()

    def stop(self) -> None:
        """Cancel the coroutine, and wait for its end. A thread that is not started yet cancels by itself."""
        self._stopped.set()
        if self._started.done():
            loop, task = self._started.result()
            with suppress(RuntimeError):  # the loop is closed: the coroutine has ended
                loop.call_soon_threadsafe(task.cancel)
            self._ended.wait()
