"""A party that accepts no connections from outside: it keeps some to its relay, over which others reach it.

Whoever calls us over them meets our own server, and has to show it a certificate, as over any connection: the relay
decides nothing but whether we are connected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from party.net.splicing import BUFFER_BYTES, Stream, splice
from party.net.waiting import stopped
from party.net.ways import ALIVE, CALL, SIGN_S, WAIT, NotReached, call_relay, connected, hearing
from party.owner.config import NodeConfig

log = logging.getLogger("party")

WAITING = 4
"""Connections that wait for a call; one that is called is replaced at once."""
MOST = 128
"""Calls at once that we take from the relay."""
FIRST_S, LONGEST_S = 0.5, 30.0
"""How long we wait after a first failure, and at most: each failure doubles it."""
_SILENT_S = 3 * SIGN_S


class Presence:
    """Keeps us connected to our relay, from :meth:`start` to :meth:`stop`."""

    def __init__(self, config: NodeConfig, address: str, first_s: float = FIRST_S) -> None:
        """``address``: where our server listens. ``first_s``: as ``FIRST_S``."""
        self._config = config
        self._address = _from_here(address)
        self._first_s = first_s
        self._free = asyncio.Semaphore(MOST)
        self._tasks: set[asyncio.Task[None]] = set()
        self._said: str | None = None

    def start(self) -> None:
        """Connect, again and again; returns at once."""
        for _ in range(WAITING):
            self._begin(self._stay())

    async def stop(self) -> None:
        """Hang up."""
        await stopped(*self._tasks)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _stay(self) -> None:
        """Have one connection wait for a call, then the next; after a failure later and later."""
        pause_s = self._first_s
        while True:
            await self._free.acquire()
            try:
                stream = await self._called()
            except NotReached as error:
                self._free.release()
                self._say(str(error))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_S)
            except BaseException:
                self._free.release()
                raise
            else:
                pause_s = self._first_s
                self._begin(self._carry(stream)).add_done_callback(partial(self._carried, stream))

    async def _called(self) -> Stream:
        """Wait at the relay until somebody calls. Raises NotReached."""
        stream = await call_relay(self._config)
        with hearing(stream):
            async with asyncio.timeout(_SILENT_S):
                await stream.send(WAIT)
                head = await stream.head()
            if not head.startswith(b"HTTP/1.1 101 "):
                raise ValueError("the relay does not let us wait")
            self._say("")
            await _until_called(stream)
        return stream

    async def _carry(self, far: Stream) -> None:
        """Let who calls speak to our server."""
        try:
            near = Stream(
                *await asyncio.open_connection(sock=await connected(self._address), limit=BUFFER_BYTES)
            )
            await splice(near, far)
        except OSError:
            log.debug("a call from the relay met no server")

    def _carried(self, far: Stream, _: asyncio.Task[None]) -> None:
        far.abort()
        self._free.release()

    def _say(self, reason: str) -> None:
        """Log it once when the relay is lost, and once when it is there."""
        if reason == self._said:
            return
        self._said = reason
        if reason:
            log.warning("not connected to the relay, so nobody can call us: %s", reason)
        else:
            log.info("connected to the relay")


def _from_here(address: str) -> str:
    """Where a server is reached on its own machine."""
    host, port = address.rsplit(":", 1)
    return f"{_ALL.get(host, host)}:{port}"


_ALL = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  addresses of all interfaces
"""How who listens everywhere is called."""


async def _until_called(stream: Stream) -> None:
    """Answer the relay's signs of life until one is a call. Raises what ends a connection, ValueError included."""
    while True:
        async with asyncio.timeout(_SILENT_S):
            sign = await stream.reader.readexactly(1)
        if sign not in (ALIVE, CALL):
            raise ValueError("not a sign that a relay gives")
        await stream.send(sign)
        if sign == CALL:
            return
