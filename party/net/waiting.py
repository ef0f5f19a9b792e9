"""Several coroutines at once, and none left behind when one of them ends early."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
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
