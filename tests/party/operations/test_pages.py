"""Pages over HTTP/1: who is answered what, and what slow, rude and foreign callers get."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jobs.errors import ConfigError
from party.operations import pages as module
from party.operations.pages import MOST_AT_ONCE, MOST_HEAD_BYTES, Answer, Pages
from tests.support.duplex import run


async def _page() -> Answer:
    return Answer(b"said\n")


def with_pages(scenario: Callable[[str, int], Awaitable[Any]], listen: str = "127.0.0.1:0") -> Any:
    async def whole() -> Any:
        pages = Pages(listen, {"/page": _page})
        host, _, port = (await pages.start()).rpartition(":")
        try:
            return await scenario(host.strip("[]"), int(port))
        finally:
            await pages.stop()

    return run(whole())


def asked(request: bytes, listen: str = "127.0.0.1:0") -> bytes:
    async def scenario(host: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    answer = with_pages(scenario, listen)
    assert isinstance(answer, bytes)
    return answer


def status(request: str, listen: str = "127.0.0.1:0") -> int:
    return int(asked(request.replace("\n", "\r\n").encode(), listen).split()[1])


def test_a_page_is_said_whole() -> None:
    head, body = asked(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n").split(b"\r\n\r\n")
    assert body == b"said\n"
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 5\r\n" in head
    assert b"Connection: close" in head
    assert b"Server:" not in head


def test_a_head_is_answered_without_a_body() -> None:
    head, body = asked(b"HEAD /page HTTP/1.1\r\nHost: localhost\r\n\r\n").split(b"\r\n\r\n")
    assert (b"Content-Length: 5\r\n" in head, body) == (True, b"")


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("GET /page?x=1 HTTP/1.1", 200),
        ("GET /page HTTP/1.0", 200),
        ("GET /other HTTP/1.1", 404),
        ("GET //page HTTP/1.1", 200),
        ("GET /../page HTTP/1.1", 404),
        ("POST /page HTTP/1.1", 405),
        ("DELETE /page HTTP/1.1", 405),
        ("GET /page HTTP/2.0", 505),
        ("GET /page HTTP/x", 400),
        ("GET", 400),
        ("", 400),
        ("\x00\x01", 400),
    ],
)
def test_what_is_asked_otherwise(request_line: str, expected: int) -> None:
    assert status(f"{request_line}\nHost: localhost\n\n") == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 200),
        ("localhost:7481", 200),
        ("127.0.0.1:7481", 200),
        ("[::1]:7481", 200),
        ("[::1]", 200),
        ("attacker.example", 421),
        ("attacker.example:7481", 421),
        ("localhost.attacker.example", 421),
        ("192.168.0.1", 421),
    ],
)
def test_on_loopback_a_page_of_somebody_elses_gets_nothing(host: str, expected: int) -> None:
    """A browser on this machine that was told that `attacker.example` is 127.0.0.1 names it as the host."""
    assert status(f"GET /page HTTP/1.1\nHost: {host}\n\n") == expected


def test_elsewhere_any_name_will_do() -> None:
    assert status("GET /page HTTP/1.1\nHost: party.example\n\n", "0.0.0.0:0") == 200


def test_a_head_without_end_is_refused() -> None:
    long = b"GET /page HTTP/1.1\r\nX: " + b"x" * MOST_HEAD_BYTES + b"\r\n\r\n"
    assert asked(long).startswith(b"HTTP/1.1 431 ")


def test_who_is_slow_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)

    async def scenario(host: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /page HTTP/1.1\r\n")
        try:
            return await asyncio.wait_for(reader.read(), 5)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    assert with_pages(scenario) == b""


def test_many_who_say_nothing_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next connection ends the oldest, however long it may still be silent."""
    monkeypatch.setattr(module, "PATIENCE_S", 600.0)

    async def scenario(host: str, port: int) -> bytes:
        silent = [await asyncio.open_connection(host, port) for _ in range(3 * MOST_AT_ONCE)]
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /page HTTP/1.1\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 5)
        ended = 0
        for each, its in silent:
            try:
                ended += await asyncio.wait_for(each.read(), 0.05) == b""
            except ConnectionResetError:
                ended += 1
            except TimeoutError:
                pass
            its.close()
        writer.close()
        assert ended > MOST_AT_ONCE
        return answer

    assert b"said" in with_pages(scenario)


def test_an_address_that_is_not_ours() -> None:
    async def scenario(host: str, port: int) -> None:
        with pytest.raises(ConfigError) as caught:
            await Pages(f"{host}:{port}", {}).start()
        assert "operations.listen" in caught.value.problem.remedy

    with_pages(scenario)
