"""Connections through an HTTP proxy that answers in every way."""

from __future__ import annotations

import asyncio
import socket

import pytest

from party.net.sockets import Obstacle, Proxied, straight
from party.owner.proxy import Proxy
from tests.support.duplex import run
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S
from tests.support.relays import listening

OK = b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n"


async def _asked(answer: bytes, address: str = "hospital-a:7400", basic: str = "") -> tuple[bytes, str]:
    """Connect through a proxy that gives an answer; return its request, and the reason against the connection."""
    here = f"{HOST}:{free_ports(['proxy'])['proxy']}"
    requests = []

    async def serve(connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with connection:
            requests.append(await loop.sock_recv(connection, 4096))
            await loop.sock_sendall(connection, answer)
            if answer == OK:
                await loop.sock_recv(connection, 1)

    async with listening(here, serve):
        try:
            (await Proxied(Proxy(here, basic), GUARD_S)(address)).close()
        except Obstacle as error:
            return b"".join(requests), error.reason
        return b"".join(requests), ""


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("hospital-a:7400", b"hospital-a:7400"),
        ("[2001:db8::1]:7400", b"[2001:db8::1]:7400"),
        ("krankenhaus-köln.example:7400", b"xn--krankenhaus-kln-ltb.example:7400"),
    ],
)
def test_the_request(address: str, named: bytes) -> None:
    request, reason = run(_asked(OK, address))
    assert (request, reason) == (b"CONNECT " + named + b" HTTP/1.1\r\nHost: " + named + b"\r\n\r\n", "")


def test_the_request_with_credentials() -> None:
    """The example of RFC 7617."""
    request, _ = run(_asked(OK, basic="QWxhZGRpbjpvcGVuIHNlc2FtZQ=="))
    assert request.endswith(b"\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n")


@pytest.mark.parametrize("host", ["a\x00b", "a\x1fb", "a..b", "x" * 64 + ".example"])
def test_a_host_that_is_none_is_never_asked_for(host: str) -> None:
    request, reason = run(_asked(OK, f"{host}:7400"))
    assert (request, reason) == (b"", "no such host")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n", ""),
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "the proxy refused the connection (HTTP 407)",
        ),
        (b"HTTP/1.1 503 \r\n\r\n<html>", "the proxy refused the connection (HTTP 503)"),
        (  # the head ends in the second piece, and a long page follows
            b"HTTP/1.1 403 No\r\nX: ".ljust(8189, b"y") + b"\r\n\r\n" + b"<html>" * 500,
            "the proxy refused the connection (HTTP 403)",
        ),
        (
            b"HTTP/1.1 301 Moved\r\nLocation: http://other/\r\n\r\n",
            "the proxy refused the connection (HTTP 301)",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "the proxy refused the connection (HTTP 100)"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "the proxy answered in a form that is not HTTP's"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "the proxy answered in a form that is not HTTP's"),
        (b"x" * 100_000, "the proxy answered in a form that is not HTTP's"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, "the proxy answered in a form that is not HTTP's"),
        (b"HTTP/1.1 200 OK\r\n", "the proxy hung up"),
        (b"", "the proxy hung up"),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", "the proxy sent more than its answer"),
        (b"HTTP/1.1 200 OK\r\n\r\n\r\n\r\n", "the proxy sent more than its answer"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_answers(answer: bytes, reason: str) -> None:
    assert run(_asked(answer))[1] == reason


def test_a_proxy_that_is_not_there() -> None:
    async def scenario() -> str:
        with pytest.raises(Obstacle) as caught:
            await Proxied(Proxy(f"{HOST}:{free_ports(['proxy'])['proxy']}"), GUARD_S)("hospital-a:7400")
        return caught.value.reason

    assert run(scenario()) == "the proxy cannot be reached: Connection refused"


def test_a_host_without_an_address() -> None:
    async def scenario() -> str:
        with pytest.raises(Obstacle) as caught:
            await straight("no-such-host.invalid:1")
        return caught.value.reason

    assert "not known" in run(scenario()) or run(scenario())
