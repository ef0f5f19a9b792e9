"""Connections taken by a listener: none is lost, whenever the listener closes."""

from __future__ import annotations

import asyncio
import gc
import socket
from pathlib import Path

import pytest

from party.net.pipes import Listener, streams_of
from tests.support.duplex import run


async def _held(connection: socket.socket) -> None:
    """Hold a connection until stopped."""
    _, writer = await streams_of(connection)
    try:
        await asyncio.Event().wait()
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_that_comes_when_the_listener_closes(tmp_path: Path, turns: int) -> None:
    """The caller sees the end, and no socket is left to the garbage collector."""

    async def scenario() -> bytes:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(tmp_path / "0"))
        listening.listen()
        listener = Listener(listening, _held, 1)
        await asyncio.sleep(0.01)  # it waits for a caller
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(5)
            caller.connect(str(tmp_path / "0"))
            for _ in range(turns):
                await asyncio.sleep(0)
            await listener.close()
            gc.collect()
            try:
                return caller.recv(1)
            except ConnectionResetError:  # taken by the kernel alone
                return b""

    assert run(scenario()) == b""
