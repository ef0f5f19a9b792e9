"""A coroutine is completed under a running loop, too; an interrupt cancels the coroutine, and waits for its end."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextvars import ContextVar

import pytest

from coordinator.completing import completed

CELL: ContextVar[str] = ContextVar("CELL", default="")


async def work() -> tuple[str, threading.Thread]:
    await asyncio.sleep(0)
    return CELL.get(), threading.current_thread()


async def failing() -> None:
    raise ValueError("broken")


def test_without_a_running_loop_this_thread_does_the_work() -> None:
    assert completed(work()) == ("", threading.main_thread())
    with pytest.raises(ValueError, match="broken"):
        completed(failing())


def test_with_a_running_loop_a_thread_does_the_work_in_the_same_context() -> None:
    async def cell() -> tuple[str, threading.Thread]:
        CELL.set("cell 1")
        with pytest.raises(ValueError, match="broken"):
            completed(failing())
        return completed(work())

    context, thread = asyncio.run(cell())
    assert context == "cell 1"
    assert thread is not threading.main_thread()
    assert not thread.is_alive()


def test_an_interrupt_cancels_the_work_and_waits_for_its_end() -> None:
    told: list[str] = []

    async def endless() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            told.append("tidied")

    async def cell() -> None:
        with pytest.raises(KeyboardInterrupt):
            completed(endless())
        assert told == ["tidied"]

    # As in a kernel: the runner of asyncio would take the signal itself.
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(cell())
    finally:
        loop.close()
