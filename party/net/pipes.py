"""Byte streams of tunnels and relay: connections taken in bounded number, lines, and joined streams.

Bytes pass unread. Memory is bounded: a reader stops while the writer is slower.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias

from party.net.waiting import stopped

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

AHEAD_BYTES = 1 << 16
"""Bytes read ahead by a stream, and bytes waiting for being sent, before the sender has to wait."""
MOST_LINE = 100
"""Most bytes of a line, with the line feed."""
IDLE_S = 300.0
"""Time without a byte after which joined streams are over. gRPC's signs of life come every minute at the latest."""
_LINGER_S = 1.0
_CLOSE_S = 2.0
_TIRED_S = 0.1


class Listener:
    """Listening socket with a task for each connection, at most ``most`` at a time."""

    def __init__(
        self, listening: socket.socket, serve: Callable[[socket.socket], Coroutine[Any, Any, None]], most: int
    ) -> None:
        listening.setblocking(False)
        self._listening = listening
        self._serve = serve
        self._most = most
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._tired: asyncio.TimerHandle | None = None
        self._listen()

    async def close(self) -> None:
        """Listen no more, and end all connections."""
        if self._tired is not None:
            self._tired.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()
        await asyncio.sleep(0)  # each task begins, so that it closes what it holds
        await stopped(*self._tasks)

    def _listen(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        """Take a connection over at once: nobody can be stopped between the acceptance and the task."""
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # no more files; or the caller has left
            self._loop.remove_reader(self._listening)
            self._tired = self._loop.call_later(_TIRED_S, self._listen)
            return
        if len(self._tasks) >= self._most:
            connection.close()
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def streams_of(connection: socket.socket) -> Streams:
    """Return the streams of a connected socket. Here and below the socket then belongs to the streams."""
    loop = asyncio.get_running_loop()
    return await _streams(lambda make: loop.create_connection(make, sock=connection))


async def secured(
    connection: socket.socket, context: ssl.SSLContext, name: str, patience_s: float
) -> Streams:
    """Return the streams over TLS to the server ``name``. Raises OSError, with the socket closed."""
    loop = asyncio.get_running_loop()
    return await _streams(
        lambda make: loop.create_connection(
            make, sock=connection, ssl=context, server_hostname=name, ssl_handshake_timeout=patience_s
        )
    )


async def answered(connection: socket.socket, context: ssl.SSLContext, patience_s: float) -> Streams:
    """Return the streams over TLS to a client. Raises OSError, with the socket closed."""
    loop = asyncio.get_running_loop()
    return await _streams(
        lambda make: loop.connect_accepted_socket(
            make, connection, ssl=context, ssl_handshake_timeout=patience_s
        )
    )


class _Protocol(asyncio.StreamReaderProtocol):
    """Protocol of streams with a known transport, to be closed if nobody waits for the streams any more."""

    made: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.made = transport
        super().connection_made(transport)


async def _streams(open_transport: Callable[[Callable[[], _Protocol]], Awaitable[Any]]) -> Streams:
    reader = asyncio.StreamReader(limit=AHEAD_BYTES)
    protocol = _Protocol(reader)
    try:
        transport, _ = await open_transport(lambda: protocol)
    except BaseException:
        if protocol.made is not None:
            protocol.made.abort()
        raise
    transport.set_write_buffer_limits(high=AHEAD_BYTES)
    return reader, asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())


async def line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line, without the line feed. Raises EOFError, or ValueError for a line that is too long.

    Bytes behind the line stay: the bytes may belong to a joined connection.
    """
    await asyncio.sleep(0)  # lines that are here already must not keep others from working
    found = bytearray()
    while not found.endswith(b"\n"):
        if len(found) >= MOST_LINE:
            raise ValueError("the line is too long")
        found += await reader.readexactly(1)
    return bytes(found[:-1])


async def said(writer: asyncio.StreamWriter, words: bytes) -> None:
    """Send a line."""
    writer.write(words + b"\n")
    await writer.drain()


def dropped(streams: Streams) -> None:
    """Close a connection at once."""
    streams[1].transport.abort()


class _Moved:
    """Number of forwarded bytes."""

    n_bytes = 0


async def joined(one: Streams, other: Streams, idle_s: float = IDLE_S) -> int:
    """Forward bytes both ways until an end is over, or nothing moves for ``idle_s``; return the number of bytes.

    Both connections are closed then. Bytes on the way still arrive, within a second.
    """
    moved = _Moved()
    ways = {
        asyncio.create_task(_copied(one[0], other[1], moved)),
        asyncio.create_task(_copied(other[0], one[1], moved)),
    }
    try:
        await _first_end(ways, moved, idle_s)
        await asyncio.wait(ways, timeout=_LINGER_S)
    finally:
        try:
            await stopped(*ways)
            await asyncio.gather(closed(one[1]), closed(other[1]))
        finally:  # at once, if we are stopped
            dropped(one)
            dropped(other)
    return moved.n_bytes


async def _first_end(ways: set[asyncio.Task[None]], moved: _Moved, idle_s: float) -> None:
    """Return once a direction has ended, or nothing has moved for a while."""
    while True:
        before = moved.n_bytes
        done, _ = await asyncio.wait(ways, timeout=idle_s, return_when=asyncio.FIRST_COMPLETED)
        if done or moved.n_bytes == before:
            return


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, moved: _Moved) -> None:
    with suppress(OSError):  # the end of a broken connection is an end
        while piece := await reader.read(AHEAD_BYTES):
            writer.write(piece)
            await writer.drain()
            moved.n_bytes += len(piece)
    with suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection once all bytes are sent; a slow end is cut."""
    writer.close()
    try:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await writer.wait_closed()
    finally:
        writer.transport.abort()
