"""Two streams of bytes as one: what comes out of either goes into the other, no faster than it is taken there."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from party.net.waiting import stopped

BUFFER_BYTES = 1 << 18
"""What a stream holds unread before it stops reading: so much, twice at most, in each direction of a connection."""
HEAD_BYTES = 1024
IDLE_S = 300.0
"""A connection on which nothing is said for so long is dead: gRPC gives signs of life every minute at least."""
_CLOSE_S = 2.0


@dataclass(frozen=True, eq=False)
class Stream:
    """A connection, both ways."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, content: bytes) -> None:
        """Write; waits while the network is slower than we are. Raises OSError."""
        self.writer.write(content)
        await self.writer.drain()

    async def head(self) -> bytes:
        """Read the head of an HTTP message, without the empty line; nothing behind it.

        Raises asyncio.IncompleteReadError, OSError, and ValueError if it is longer than ``HEAD_BYTES``.
        """
        content = bytearray()
        while not content.endswith(b"\r\n\r\n"):
            if len(content) == HEAD_BYTES:
                raise ValueError("the head of a message is too long")
            content += await self.reader.readexactly(1)
        return bytes(content[:-4])

    async def close(self) -> None:
        """Send what was written, for a moment, and hang up."""
        self.writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self.writer.wait_closed()
        self.abort()

    def abort(self) -> None:
        """Hang up at once."""
        self.writer.transport.abort()


async def secured(
    raw: socket.socket, context: ssl.SSLContext, hello_s: float, server: str | None = None
) -> Stream:
    """TLS over a connection: with a server of this name, or as a server. Raises OSError.

    asyncio forgets a connection whose handshake is given up before it has begun. So where we are stopped, the
    connection ends first, which ends the handshake.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=BUFFER_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    options: Any = {"ssl": context, "ssl_handshake_timeout": hello_s, "ssl_shutdown_timeout": _CLOSE_S}
    making = asyncio.ensure_future(
        loop.connect_accepted_socket(lambda: protocol, raw, **options)
        if server is None
        else loop.create_connection(lambda: protocol, sock=raw, server_hostname=server, **options)
    )
    try:
        transport, _ = await asyncio.shield(making)
    except asyncio.CancelledError:
        with suppress(OSError):
            raw.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            (await making)[0].abort()
        raise
    return Stream(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


async def splice(one: Stream, other: Stream, idle_s: float = IDLE_S) -> None:
    """Carry bytes both ways until either end hangs up, or says or takes nothing for ``idle_s``; then hang up both."""
    pumps = [
        asyncio.create_task(_pump(one, other, idle_s)),
        asyncio.create_task(_pump(other, one, idle_s)),
    ]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        await stopped(*pumps)
        await asyncio.gather(one.close(), other.close())
    finally:
        for pump in pumps:
            pump.cancel()
        one.abort()
        other.abort()


async def _pump(source: Stream, target: Stream, idle_s: float) -> None:
    with suppress(OSError, TimeoutError):  # either end is gone, which ends both
        while True:
            async with asyncio.timeout(idle_s):
                part = await source.reader.read(BUFFER_BYTES)
                if not part:
                    return
                await target.send(part)
