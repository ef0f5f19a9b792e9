"""The owner's page as a server beside the daemon: a thread and an event loop of its own.

Nothing that happens here can hold up a job, and what fails here ends here. Connections are bounded in number
(``MOST_AT_ONCE``: the next one ends the oldest) and time (``PATIENCE_S``, whether or not anything is said).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from jobs.errors import ConfigError
from party.owner.config import Web

log = logging.getLogger("party")

MOST_AT_ONCE = 16
PATIENCE_S = 30.0
MOST_HEAD_BYTES = 16 << 10
_STOP_S = 5.0


class _Connection(H11Protocol):
    """A connection that does not last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        self._over = self.loop.call_later(PATIENCE_S, transport.abort)
        others = [each for each in self.connections if each is not self and not each.transport.is_closing()]
        if len(others) >= MOST_AT_ONCE:
            min(others, key=_since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over.cancel()
        super().connection_lost(exc)


def _since(connection: Any) -> float:
    """When it came."""
    since: float = connection.since
    return since


class PageServer:
    """Serves an application in a thread."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        self._listening = listening
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=_Connection,
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level=logging.ERROR,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                h11_max_incomplete_event_size=MOST_HEAD_BYTES,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Answer nobody any more."""
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        self._listening.close()

    def _serve(self) -> None:
        try:
            asyncio.run(self._server.serve(sockets=[self._listening]))
        except BaseException as error:  # noqa: BLE001  the daemon goes on without its page
            log.error("the owner's page is served no more: %s", type(error).__name__)


@asynccontextmanager
async def serving(web: Web, make: Callable[[str, int], ASGIApp]) -> AsyncIterator[str]:
    """Serve what is made for a host and a port while the block runs; gives the address.

    Raises ConfigError if that cannot be had.
    """
    host, _, port = web.listen.rpartition(":")
    listening = _listening(web, host.strip("[]"), int(port))
    number = listening.getsockname()[1]
    server = PageServer(make(host, number), listening)
    server.start()
    try:
        yield f"{host}:{number}"
    finally:
        await asyncio.to_thread(server.stop)


def _listening(web: Web, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            "config-invalid",
            f"cannot listen on {web.listen}: the address is in use, or not ours",
            remedy="choose another `web.listen`, or stop what uses it",
        ) from error
