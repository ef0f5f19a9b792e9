"""Server of the owner's page, in the event loop of the daemon. No error of the page ends a job."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import uvicorn

from crypto.rng import SystemRng
from jobs.errors import ConfigError
from party.owner.config import PartyConfig
from party.owner.current import CurrentJob
from party.owner.deciding import user
from party.web.app import Sources, app_of
from party.web.connection import Connection
from party.web.signing_in import SignIns

log = logging.getLogger("party")

_THREADS = 2
_GRACE_S, _STOP_S = 1, 3.0


class WebServer:
    """Server of the owner's page."""

    def __init__(
        self,
        config: PartyConfig,
        listen: str,
        in_force: Callable[[], PartyConfig],
        current: Callable[[], CurrentJob | None],
    ) -> None:
        """Listen, without an answer yet. Raises ConfigError if the address is not available."""
        self._socket = _listening(listen)
        self._threads = ThreadPoolExecutor(_THREADS, "page")
        sign_ins = SignIns(config.state_dir, SystemRng())
        by = f"{user()} (page)"
        app = app_of(Sources(listen, in_force, current, sign_ins, by, self._threads))
        self._server = _Quiet(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",  # no line for each malformed request
                access_log=False,  # addresses have the tokens of sign-ins
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Serve beside the daemon from now on."""
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        self._serving.add_done_callback(_note_end)

    async def stop(self) -> None:
        """End the page; return soon, whatever the browsers do."""
        self._server.should_exit = True
        if self._serving is not None:
            await asyncio.wait({self._serving}, timeout=_STOP_S)
            self._serving.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Quiet(uvicorn.Server):
    """Server that leaves the signals of the process to the daemon."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listening(listen: str) -> socket.socket:
    host, port = listen.rsplit(":", 1)
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family)
    except OSError as error:
        raise ConfigError(
            "config-invalid",
            f"the owner's page cannot listen on {listen}: {error.strerror}",
            remedy="choose a different `web.listen`, or stop the process that uses the port",
        ) from error


def _note_end(serving: asyncio.Task[None]) -> None:
    if not serving.cancelled() and (error := serving.exception()) is not None:
        log.error("the owner's page ended: %s; the daemon goes on", type(error).__name__)
