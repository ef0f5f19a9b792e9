"""Signals that stop a server."""

from __future__ import annotations

import asyncio
import signal


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
