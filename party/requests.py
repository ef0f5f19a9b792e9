"""Coordinator's requests: a bundle first, then request after request."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from jobs.errors import PartyError, Problem, TransportError, json_object
from jobs.file.bundle import MAX_BUNDLE_BYTES
from jobs.task import Task
from party.decoding import open_foreign
from party.net import control
from party.net.mailbox import Mailbox
from party.net.waiting import stopped

T = TypeVar("T")

Requests = Mailbox[control.Request]


@dataclass(frozen=True, slots=True)
class Left:
    """End of the coordinator's side of the stream."""


Heard: TypeAlias = control.Request | Left


async def receive_task(requests: Requests, caller: str, patience_s: float) -> tuple[bytes, Task]:
    """Take the bundle; return the run and the task. Raises TransportError if late."""
    try:
        async with asyncio.timeout(patience_s):
            run, encoded = await _receive_bundle(requests)
    except TimeoutError:
        raise _silent(caller, "no whole bundle", patience_s, "submit_s") from None
    return run, await asyncio.to_thread(open_foreign, encoded)


async def _receive_bundle(requests: Requests) -> tuple[bytes, bytes]:
    parts = bytearray()
    while True:
        request = await _next(requests)
        if isinstance(request, Left):
            raise out_of_order(request)
        if not isinstance(request, control.Submit) or len(request.run) != control.RUN_BYTES:
            raise PartyError("peer-protocol", "a job begins with its bundle")
        parts += request.bundle.content
        if len(parts) > MAX_BUNDLE_BYTES:
            raise PartyError("peer-protocol", f"a bundle of more than {MAX_BUNDLE_BYTES} bytes")
        if request.bundle.last:
            return request.run, bytes(parts)


async def hear(requests: Requests, caller: str, patience_s: float) -> Heard:
    """Wait for the caller's next request. Raises TransportError if late."""
    try:
        async with asyncio.timeout(patience_s):
            return await _next(requests)
    except TimeoutError:
        raise _silent(caller, "no request", patience_s, "coordinator_s") from None


def _silent(caller: str, what: str, patience_s: float, setting: str) -> TransportError:
    return TransportError(
        "peer-timeout",
        f"{what} from {caller} within {patience_s:g} s",
        remedy=f"look at the log of {caller}; if {caller} needs so long, raise `timeouts.{setting}`",
    )


async def _next(requests: Requests) -> Heard:
    request = await requests.get()
    return Left() if request is None else request


async def unless_told(work: Coroutine[Any, Any, T], requests: Requests) -> T:
    """Do the work, unless the coordinator cancels or leaves meanwhile."""
    task, told = asyncio.create_task(work), asyncio.create_task(_next(requests))
    try:
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise out_of_order(told.result())
        return task.result()
    finally:
        await stopped(task, told)


def out_of_order(heard: object) -> PartyError:
    """Return the error for an unexpected request. A coordinator that leaves or cancels ends the job at any time."""
    if isinstance(heard, control.Cancel):
        return PartyError("cancelled", f"the coordinator cancelled the job{_reason(heard.problem)}")
    if isinstance(heard, Left):
        return PartyError("cancelled", "the coordinator cancelled the job or went away")
    return PartyError("peer-protocol", f"{type(heard).__name__} is out of order")


def _reason(told: str) -> str:
    """Return the reason, on the coordinator's word alone; empty for an unreadable reason."""
    fields = json_object(told)
    problem = Problem.received(fields or {})
    if fields is None or problem.error_id in ("cancelled", "peer-protocol"):
        return ""
    where = f" at {problem.party}" if problem.party else ""
    return f"; it says: {problem.error_id}{where}"
