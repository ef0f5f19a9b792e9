"""Coroutines run together, without leftovers when a coroutine ends early; and long background work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


async def unless_broken(work: Coroutine[Any, Any, T], pumps: Sequence[asyncio.Task[None]]) -> T:
    """Do the work, unless a link breaks meanwhile. The cause is then raised at once."""
    task = asyncio.create_task(work)
    waiting: set[asyncio.Task[Any]] = {task, *pumps}
    try:
        while not task.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for pump in done - {task}:
                pump.result()
        return task.result()
    finally:
        await stopped(task)


async def together(*work: Coroutine[Any, Any, None]) -> None:
    """Do all work at once; on a failure, stop the rest."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        await stopped(*tasks)


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Work in a thread. When stopped meanwhile, wait for the thread's end, since the thread may be writing."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def stopped(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait for the end, whatever the outcome."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Turns:
    """Pieces of work in order of arrival, in a separate thread started by the first piece.

    The shared threads of asyncio load tables, sign and read bundles, and work of minutes would block the shared
    threads. The separate thread does not keep a process from ending.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[tuple[Callable[[], None], Future[None]]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def take(self, work: Callable[[], None]) -> None:
        """Return when the work is done, after all earlier work. Raises the errors of the work.

        If stopped before its turn, the work does not begin. If stopped during its turn, the work goes on as long as
        the process lives.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        done: Future[None] = Future()
        self._waiting.put((work, done))
        await asyncio.wrap_future(done)

    def _work(self) -> None:
        while True:
            work, done = self._waiting.get()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                work()
            except BaseException as error:  # noqa: BLE001  told to the waiting caller
                done.set_exception(error)
            else:
                done.set_result(None)
            del work, done  # the work holds a run, with its table
