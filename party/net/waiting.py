"""Several coroutines at once, and none left behind when one of them ends early; long work that nobody waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


async def unless_broken(work: Coroutine[Any, Any, T], pumps: Sequence[asyncio.Task[None]]) -> T:
    """Do the work, unless a link breaks meanwhile: then what broke it is raised at once."""
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
    """Do all of it at once; when one fails, stop the others."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        await stopped(*tasks)


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Work in a thread; when we are stopped meanwhile, wait until it has ended: it may be writing."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def stopped(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait for their end, whatever it is."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Turns:
    """Pieces of work in the order they came, in a thread of their own that the first one starts.

    The threads that asyncio shares out load tables, sign and read bundles: work of minutes would keep them from it.
    This thread does not keep a process that ends from ending.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[tuple[Callable[[], None], Future[None]]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def take(self, work: Callable[[], None]) -> None:
        """Return when the work is done, after all that came before. Raises what it raises.

        If we are stopped before its turn, it is not begun; if meanwhile, it goes on as long as the process lives.
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
            except BaseException as error:  # noqa: BLE001  told to whoever waits for it
                done.set_exception(error)
            else:
                done.set_result(None)
