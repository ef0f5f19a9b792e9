"""Connection of a browser to the owner's page: few at a time, and none for long, so that the daemon keeps its files.

Each connection is an open file of the daemon. A process of this machine that opens connections and says nothing would
use up the files that the daemon needs for its peers.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from party.web.guards import HEADERS

MOST = 64
"""Connections at the same time. A further connection is closed at once."""
LASTS_S = 60.0
"""Longest time of a connection, which is for one request and its answer."""


class Connection(H11Protocol):
    """Connection that ends by itself."""

    lasts_s = LASTS_S

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._end = self.loop.call_later(self.lasts_s, transport.abort)
        if len(self.connections) > MOST:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request, with the headers of every answer."""
        told = {"content-type": "text/plain; charset=utf-8", **HEADERS}
        headers = [(name.encode(), value.encode()) for name, value in told.items()]
        answer = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (answer, h11.Data(data=f"{msg}\n".encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
