"""A few pages over HTTP/1, each made anew for whoever asks: for probes and for programs that collect figures.

It runs in the daemon's own loop, so that an answer shows that the daemon answers. A request is one head of at most
8 KiB, within ``PATIENCE_S``; what comes after it is not read. At most ``MOST_AT_ONCE`` connections: the next one ends
the oldest, so nobody keeps a probe out by being slow. Heads are parsed by Python's own parser.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler

from jobs.errors import ConfigError
from party.owner.identity import is_loopback

MOST_HEAD_BYTES = 8 << 10
PATIENCE_S = 5.0
MOST_AT_ONCE = 16
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """What a page says."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    kind: str = _TEXT


Page = Callable[[], Awaitable[Answer]]


class Pages:
    """Serves pages by their paths. Only GET and HEAD; on loopback only to who calls it by a name of loopback."""

    def __init__(self, listen: str, pages: Mapping[str, Page]) -> None:
        """``listen``: host:port."""
        self._listen = listen
        self._pages = pages
        self._visits: dict[asyncio.Task[None], None] = {}
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen; return the address, with the port that was chosen. Raises ConfigError if it cannot be had."""
        host, _, port = self._listen.rpartition(":")
        try:
            self._server = await asyncio.start_server(
                self._visited, host.strip("[]"), int(port), limit=MOST_HEAD_BYTES
            )
        except (OSError, UnicodeError) as error:
            raise ConfigError(
                "config-invalid",
                f"cannot listen on {self._listen}: the address is in use, or not ours",
                remedy="choose another `operations.listen`, or stop what uses it",
            ) from error
        return f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Answer nobody any more."""
        if self._server is not None:
            self._server.close()
        for visit in list(self._visits):
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.current_task()
        assert visit is not None
        while len(self._visits) >= MOST_AT_ONCE:
            oldest = next(iter(self._visits))
            del self._visits[oldest]
            oldest.cancel()
        self._visits[visit] = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._serve(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._visits.pop(visit, None)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = _Head(await reader.readuntil(b"\r\n\r\n"))
        except asyncio.LimitOverrunError:
            answer, method = _short(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), "GET"
        else:
            answer, method = await self._answer(head), head.command
        writer.write(_encoded(answer, with_body=method != "HEAD"))
        await writer.drain()
        with suppress(OSError):
            writer.write_eof()

    async def _answer(self, head: _Head) -> Answer:
        if head.refused is not None:
            return _short(head.refused)
        if head.command not in {"GET", "HEAD"}:
            return _short(HTTPStatus.METHOD_NOT_ALLOWED)
        if is_loopback(self._listen) and not _names_loopback(head.headers.get("Host", "")):
            return _short(HTTPStatus.MISDIRECTED_REQUEST)
        page = self._pages.get(head.path.partition("?")[0])
        return await page() if page is not None else _short(HTTPStatus.NOT_FOUND)


class _Head(BaseHTTPRequestHandler):
    """The head of a request as Python's server parses it; no connection stands behind it."""

    refused: HTTPStatus | None = None

    def __init__(self, head: bytes) -> None:
        self.client_address = ("", 0)
        self.rfile = io.BytesIO(head)
        self.wfile = io.BytesIO()
        self.raw_requestline = self.rfile.readline()
        self.command = ""
        if not self.parse_request() and self.refused is None:
            self.refused = HTTPStatus.BAD_REQUEST

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Keep what is wrong: what is said of it is ours to say."""
        self.refused = HTTPStatus(code)

    def log_message(self, *_: object) -> None:
        """Nothing of a request is for a log."""


def _names_loopback(host: str) -> bool:
    """Whether a `Host` names this machine: a page of somebody else's in a browser here names another.

    None at all is what the oldest probes send, and no browser.
    """
    return not host or is_loopback(host if host.rpartition("]")[2].count(":") == 1 else f"{host}:80")


def _short(status: HTTPStatus) -> Answer:
    return Answer(f"{status.phrase}\n".encode(), status)


def _encoded(answer: Answer, *, with_body: bool) -> bytes:
    status = answer.status
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {answer.kind}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Content-Security-Policy: default-src 'none'",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + (answer.body if with_body else b"")
