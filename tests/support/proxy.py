"""A port in front of a daemon, which carries bytes and can harm them."""

from __future__ import annotations

import asyncio

from party.net.waiting import stopped, together
from tests.support.loopback import HOST


class Proxy:
    """A port in front of a daemon. Armed, it does something once, to the connection that carries its n-th byte."""

    def __init__(self, target: int, port: int) -> None:
        self._target, self._port = target, port
        self.carried = 0
        self._kind, self._left = "", 0
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def armed(self) -> bool:
        """True until the byte has come."""
        return bool(self._kind)

    def arm(self, kind: str, after: int) -> None:
        self._kind, self._left = kind, after

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, HOST, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await stopped(*self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ours = asyncio.current_task()
        assert ours is not None
        self._connections.add(ours)
        writers = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._target)
            writers.append(far_writer)
            await together(self._pump(reader, far_writer), self._pump(far_reader, writer))
        except (OSError, asyncio.CancelledError):
            for each in writers:
                each.transport.abort()
        finally:
            for each in writers:
                each.close()
            self._connections.discard(ours)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            self.carried += len(data)
            if self._kind and len(data) > self._left:
                kind, self._kind = self._kind, ""
                data = await self._harmed(kind, data)
            self._left = max(0, self._left - len(data))
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _harmed(self, kind: str, data: bytes) -> bytes:
        match kind:
            case "flip":
                return data[: self._left] + bytes([data[self._left] ^ 1]) + data[self._left + 1 :]
            case "reorder":
                return data[len(data) // 2 :] + data[: len(data) // 2]
            case "delay":
                await asyncio.sleep(0.3)
                return data
            case "stall":
                await asyncio.Event().wait()
            case "reset":
                raise ConnectionResetError
        return b""
