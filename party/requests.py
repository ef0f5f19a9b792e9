"""What the coordinator says: a bundle first, then one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from jobs.bundle import MAX_BUNDLE_BYTES
from jobs.errors import PartyError, TransportError
from jobs.task import Task
from party.decoding import open_foreign
from party.net import control
from party.net.link import RunKey
from party.net.mailbox import Mailbox
from party.net.protocol import FEW_LINKS
from party.net.waiting import stopped

T = TypeVar("T")

Requests = Mailbox[control.Request]


@dataclass(frozen=True, slots=True)
class Left:
    """The coordinator ended its side of the stream."""


Heard: TypeAlias = control.Request | Left


async def receive_task(
    requests: Requests,
    caller: str,
    patience_s: float,
    check: Callable[[int], None],
    first: control.Submit | None = None,
) -> tuple[RunKey, Task]:
    """Take the bundle, which ``first`` began; return the run and the task.

    ``check`` raises PartyError for a protocol that is not spoken. Raises TransportError if it is not here in time.
    """
    try:
        async with asyncio.timeout(patience_s):
            begun, encoded = await _receive_bundle(requests, check, first)
    except TimeoutError:
        raise _silent(caller, "no whole bundle", patience_s, "submit_s") from None
    task = await asyncio.to_thread(open_foreign, encoded)
    task = replace(task, all_linked=begun.protocol < FEW_LINKS)
    return RunKey(task.digest, begun.run, begun.protocol), task


async def _receive_bundle(
    requests: Requests, check: Callable[[int], None], first: control.Submit | None
) -> tuple[control.Submit, bytes]:
    """The bundle, and its last part."""
    parts = bytearray()
    while True:
        request, first = first or await _next(requests), None
        if isinstance(request, Left):
            raise out_of_order(request)
        if not isinstance(request, control.Submit) or len(request.run) != control.RUN_BYTES:
            raise PartyError("peer-protocol", "a job begins with its bundle")
        check(request.protocol)
        parts += request.bundle.content
        if len(parts) > MAX_BUNDLE_BYTES:
            raise PartyError("peer-protocol", f"a bundle of more than {MAX_BUNDLE_BYTES} bytes")
        if request.bundle.last:
            return request, bytes(parts)


async def hear(requests: Requests, caller: str, patience_s: float, setting: str = "coordinator_s") -> Heard:
    """Wait for the caller's next request. Raises TransportError if there is none in time, as ``setting`` says."""
    try:
        async with asyncio.timeout(patience_s):
            return await _next(requests)
    except TimeoutError:
        raise _silent(caller, "no request", patience_s, setting) from None


def _silent(caller: str, what: str, patience_s: float, setting: str) -> TransportError:
    return TransportError(
        "peer-timeout",
        f"{what} from {caller} within {patience_s:g} s",
        remedy=f"look at the log of {caller}; raise `timeouts.{setting}` if that needs so long",
    )


async def _next(requests: Requests) -> Heard:
    request = await requests.get()
    return Left() if request is None else request


async def unless_told(work: Coroutine[Any, Any, T], requests: Requests) -> T:
    """Do the work, unless the coordinator cancels it or goes away meanwhile."""
    task, told = asyncio.create_task(work), asyncio.create_task(_next(requests))
    try:
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise out_of_order(told.result())
        return task.result()
    finally:
        await stopped(task, told)


def out_of_order(heard: object) -> PartyError:
    """What a request leads to that was not to come now. Whoever leaves or cancels ends the job at any time."""
    if isinstance(heard, Left | control.Cancel):
        return PartyError("cancelled", "the coordinator cancelled the job or went away")
    return PartyError("peer-protocol", f"{type(heard).__name__} is out of order")
