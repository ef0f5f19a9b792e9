"""HTTP proxies for tests: Debian's tinyproxy as a process, and one in this process that answers as it is told."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from party.net.splicing import Stream, splice
from tests.support.loopback import HOST, free_ports

_START_S = 20.0


@contextmanager
def tinyproxy(folder: Path, *allowed: str) -> Iterator[tuple[str, Path]]:
    """A real proxy that connects to ports ``allowed``: its `proxy` for configurations, and its log."""
    program = shutil.which("tinyproxy")
    if program is None:
        pytest.skip("tinyproxy is not installed: apt-get install tinyproxy")
    folder.mkdir(parents=True, exist_ok=True)
    port, log = free_ports(["proxy"])["proxy"], folder / "tinyproxy.log"
    log.touch()
    lines = [f"Port {port}", f"Listen {HOST}", f"Allow {HOST}", f'LogFile "{log}"', "LogLevel Connect"]
    lines += ["Timeout 60", "MaxClients 100", *(f"ConnectPort {port}" for port in allowed)]
    (folder / "tinyproxy.conf").write_text("\n".join(lines) + "\n")
    process = subprocess.Popen([program, "-d", "-c", str(folder / "tinyproxy.conf")])
    try:
        _await_listening(port, process)
        yield f"http://{HOST}:{port}", log
    finally:
        process.terminate()
        process.wait(_START_S)


def _await_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
            return
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Something that takes connections, notes what it is asked, and says this: its `proxy`, and the questions."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(EOFError, OSError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    try:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


@asynccontextmanager
async def leading_to(address: str) -> AsyncIterator[str]:
    """A proxy that connects whoever asks with this address, whatever they asked for: its `proxy`."""
    host, port = address.split(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        far = Stream(*await asyncio.open_connection(host, int(port)))
        await splice(Stream(reader, writer), far)

    server = await asyncio.start_server(serve, HOST, 0)
    try:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
