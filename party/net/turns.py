"""Long work that nobody waits for: one piece after the other, in a thread of its own.

The threads that asyncio shares out load tables, sign and read bundles: work of minutes would keep them from it. This
thread does not keep a process that ends from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue


class Turns:
    """Pieces of work in the order they came; the thread is started by the first."""

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
