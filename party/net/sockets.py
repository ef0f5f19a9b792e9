"""TCP connections: straight, or through an HTTP proxy (CONNECT).

The configuration decides alone: no variable of the environment names a proxy for us.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from typing import Any, Protocol

from party.owner.config import NodeConfig
from party.owner.proxy import Proxy

_EACH_S = 3.0
"""Time for each address of a host."""
_MOST_HEAD = 8192
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r]")
_END = b"\r\n\r\n"


class Obstacle(Exception):
    """Reason against reaching somebody, found on the way.

    reason:  fit for everybody: no address, no credentials.
    remedy:  for the owner of this end.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class Connect(Protocol):
    """Opens a TCP connection to ``host:port``, a non-blocking socket. Raises Obstacle."""

    async def __call__(self, address: str) -> socket.socket: ...


def connector(config: NodeConfig) -> Connect:
    """Return the opener of connections under a configuration."""
    return straight if config.proxy is None else Proxied(config.proxy, config.timeouts.connect_s)


async def straight(address: str) -> socket.socket:
    """Open a connection without a proxy. Raises Obstacle."""
    host, port = address.rsplit(":", 1)
    reason = "no answer"
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        raise Obstacle(getattr(error, "strerror", None) or "no such host") from error
    for family, kind, protocol, _, end in found:
        try:
            return await _connected(socket.socket(family, kind, protocol), end)
        except TimeoutError:
            reason = "no answer"
        except OSError as error:
            reason = (
                os.strerror(error.errno) if error.errno else "no answer"
            )  # asyncio's text has the address
    raise Obstacle(reason)


async def _connected(connection: socket.socket, end: Any) -> socket.socket:
    connection.setblocking(False)
    try:
        async with asyncio.timeout(_EACH_S):
            await asyncio.get_running_loop().sock_connect(connection, end)
    except BaseException:
        connection.close()
        raise
    return connection


class Proxied:
    """Opener of connections through a proxy."""

    def __init__(self, proxy: Proxy, patience_s: float) -> None:
        """``patience_s``: time for the answer of the proxy."""
        self._proxy = proxy
        self._patience_s = patience_s

    async def __call__(self, address: str) -> socket.socket:
        """Open a connection. Raises Obstacle. The proxy looks the name of the host up."""
        request = _request(address, self._proxy)
        try:
            connection = await straight(self._proxy.address)
        except Obstacle as error:
            raise Obstacle(f"the proxy cannot be reached: {error.reason}", _CHECK_PROXY) from error
        try:
            async with asyncio.timeout(self._patience_s):
                await asyncio.get_running_loop().sock_sendall(connection, request)
                _check_status(await _head(connection))
        except TimeoutError as error:
            connection.close()
            raise Obstacle("the proxy gave no answer in time", _CHECK_PROXY) from error
        except OSError as error:
            connection.close()
            raise Obstacle("the proxy hung up", _CHECK_PROXY) from error
        except BaseException:
            connection.close()
            raise
        return connection


_CHECK_PROXY = "check `proxy` in the configuration"


def _request(address: str, proxy: Proxy) -> bytes:
    """Return the request for a connection to ``address``. Raises Obstacle for a host that is no host."""
    host, port = address.rsplit(":", 1)
    try:
        name = host if host.startswith("[") else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise Obstacle("no such host") from error
    if not re.fullmatch(r"[!-~]+", name):  # nothing that ends a line
        raise Obstacle("no such host")
    lines = [f"CONNECT {name}:{port} HTTP/1.1", f"Host: {name}:{port}"]
    if proxy.basic:
        lines.append(f"Proxy-Authorization: Basic {proxy.basic}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


async def _head(connection: socket.socket) -> bytes:
    """Read the answer of a proxy up to the empty line. Raises Obstacle.

    A peer or relay says nothing before we do, so nothing may follow.
    """
    found = b""
    while _END not in found:
        if len(found) > _MOST_HEAD:
            raise Obstacle("the proxy answered in a form that is not HTTP's", _CHECK_PROXY)
        piece = await asyncio.get_running_loop().sock_recv(connection, _MOST_HEAD)
        if not piece:
            raise Obstacle("the proxy hung up", _CHECK_PROXY)
        found += piece
    return found


def _check_status(head: bytes) -> None:
    """Raise Obstacle unless a proxy has opened the connection."""
    found = _STATUS.match(head)
    if found is None:
        raise Obstacle("the proxy answered in a form that is not HTTP's", _CHECK_PROXY)
    status = int(found[1])
    if status // 100 != 2:
        raise Obstacle(f"the proxy refused the connection (HTTP {status})", _remedy(status))
    if not head.endswith(_END) or head.count(_END) > 1:
        raise Obstacle("the proxy sent more than its answer", _CHECK_PROXY)


def _remedy(status: int) -> str:
    if status in {401, 407}:
        return "write the credentials that the proxy asks for: `proxy: http://USER:PASSWORD@HOST:PORT`"
    if status in {403, 405}:
        return "ask the administrator of the proxy to allow CONNECT to the host and port of the peer"
    return "check the address of the peer, and ask the administrator of the proxy"
