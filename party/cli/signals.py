"""Signals that stop a server, or let a server read its files again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from party.net.waiting import stopped


def stop_signals() -> asyncio.Future[int]:
    """Return the number of the first stop signal, when it comes. The second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[int] = loop.create_future()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def first(number: int) -> None:
        if stop.done():  # both signals came before the loop took the first one
            signal.raise_signal(number)
            return
        for each in numbers:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        stop.set_result(number)

    for number in numbers:
        loop.add_signal_handler(number, first, number)
    return stop


class Reloading:
    """Reload at every SIGHUP, one after the other."""

    def __init__(self, reload: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for signals from now on."""
        self._reload = reload
        self._tasks: set[asyncio.Task[None]] = set()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._begin)

    async def stop(self) -> None:
        """End the reload that goes on, and those that wait."""
        await stopped(*self._tasks)

    def _begin(self) -> None:
        task = asyncio.create_task(self._after(*self._tasks))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _after(self, *before: asyncio.Task[None]) -> None:
        if before:
            await asyncio.wait(before)
        await self._reload()
