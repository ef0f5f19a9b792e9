"""Calls through a real HTTP proxy: jobs, credentials, a relay, and an environment that changes nothing."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from pathlib import Path

import pytest

from jobs.errors import PartyError, Problem
from party.net.pipes import dropped, joined, streams_of
from party.net.sockets import straight
from tests.support.by_hand import reached, works
from tests.support.calls import calling, impatient, refused
from tests.support.duplex import run
from tests.support.loopback import HOST, free_ports
from tests.support.network import Network, call, processes, released, sample_network, serving, write_job
from tests.support.relays import listening, relay_address, relaying, until, until_waiting, with_relay
from tests.support.samples import PARTIES, joint_job
from tests.support.tinyproxy import PASSWORD, SECRET, USER, Server, tinyproxy

A, B, C = PARTIES
NAMES = (*PARTIES, "coordinator")


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def behind(net: Network, url: str, *names: str) -> Network:
    for name in names or NAMES:
        net.change(name, lambda fields: fields.update(proxy=url))
    return net


def connects(proxy: Server) -> list[str]:
    """Return the addresses that the proxy was asked to connect to, each once."""
    words = re.findall(r": CONNECT (\S+) HTTP", proxy.log())
    return sorted(dict.fromkeys(words))


def test_a_job_through_a_proxy(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    with tinyproxy(tmp_path / "proxy") as proxy:
        behind(net, proxy.url())
        run(scenario())
        assert connects(proxy) == sorted(net.addresses.values())


@pytest.mark.more
def test_a_job_of_real_processes_through_a_proxy_with_credentials(net: Network, tmp_path: Path) -> None:
    with tinyproxy(tmp_path / "proxy", f"BasicAuth {USER} geheim") as proxy:
        behind(net, proxy.url(f"{USER}:geheim@"))
        job = write_job(tmp_path / "job", joint_job())
        with processes(net) as running:
            ran = call("run", job, "--config", net.config_path("coordinator"), "--out", tmp_path / "out")
            logs = [running.log(name) for name in PARTIES]
        assert ran.code == 0, ran.err
        assert "geheim" not in "".join([ran.out, ran.err, *logs])
    assert sum(released(tmp_path / "out", net.bundle).values()) == 60


@pytest.mark.more
def test_a_relay_behind_a_proxy(net: Network, tmp_path: Path) -> None:
    """Hospitals without inbound ports have often no way out but a proxy."""
    with_relay(net)

    async def scenario() -> None:
        async with relaying(net), serving(net, only=[A]), calling(net.coordinator) as calls:
            await (await reached(calls, A, "relay")).close()

    with tinyproxy(tmp_path / "proxy") as proxy:
        behind(net, proxy.url())
        run(scenario())
        assert connects(proxy) == [relay_address(net)]


async def _opened(net: Network) -> Problem | None:
    async with serving(net, only=[A]), calling(impatient(net.coordinator, 0.8)) as calls:
        try:
            stream = await reached(calls, A, net.addresses[A])
        except PartyError as error:
            return error.problem
        await stream.close()
        return None


@pytest.mark.parametrize(
    ("credentials", "status"),
    [(f"{USER}:{SECRET}@", None), ("", 407), (f"{USER}:other@", 401)],
    ids=["right", "none", "wrong"],
)
def test_credentials_of_a_proxy_are_given_and_never_told(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture, credentials: str, status: int | None
) -> None:
    caplog.set_level(logging.DEBUG)
    with tinyproxy(tmp_path / "proxy", f"BasicAuth {USER} {PASSWORD}") as proxy:
        behind(net, proxy.url(credentials), "coordinator")
        problem = run(_opened(net))
    if status is None:
        assert problem is None
    else:
        assert problem is not None
        assert problem.error_id == "peer-unreachable"
        assert f"the proxy refused the connection (HTTP {status})" in problem.message
        assert "write the credentials" in problem.remedy
    said = caplog.text + repr(problem) + repr(net.coordinator) + str(net.coordinator.proxy)
    for secret in (PASSWORD, SECRET, "other", "Basic", net.coordinator.proxy.basic or "other"):  # type: ignore[union-attr]
        assert secret not in said


def test_a_proxy_that_refuses_the_port_is_told(net: Network, tmp_path: Path) -> None:
    with tinyproxy(tmp_path / "proxy", "ConnectPort 443") as proxy:
        behind(net, proxy.url(), "coordinator")
        problem = run(_opened(net))
    assert problem is not None
    assert (problem.error_id, problem.party) == ("peer-unreachable", A)
    assert "the proxy refused the connection (HTTP 403)" in problem.message
    assert "allow CONNECT" in problem.remedy


def test_a_certificate_counts_behind_a_proxy_too(net: Network, tmp_path: Path) -> None:
    async def scenario() -> Problem:
        async with serving(net, only=[B]), calling(net.coordinator) as calls:
            return await refused(reached(calls, A, net.addresses[B]))

    with tinyproxy(tmp_path / "proxy") as proxy:
        behind(net, proxy.url(), "coordinator")
        assert run(scenario()).error_id == "identity-mismatch"


@pytest.mark.some(1)
@pytest.mark.parametrize("variable", ["grpc_proxy", "https_proxy", "http_proxy"])
def test_a_proxy_of_the_environment_is_not_used(
    net: Network, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    async def scenario() -> int:
        n_calls = 0

        async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal n_calls
            n_calls += 1
            writer.close()

        async with await asyncio.start_server(count, "127.0.0.1", 0) as proxy:
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
            assert await _opened(net) is None
            return n_calls

    assert run(scenario()) == 0


@pytest.mark.some(1)
@pytest.mark.parametrize("variable", ["no_grpc_proxy", "no_proxy", "NO_PROXY"])
def test_an_exception_of_the_environment_is_not_made(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "127.0.0.1,localhost,*")
    with tinyproxy(tmp_path / "proxy") as proxy:
        behind(net, proxy.url(), "coordinator")
        assert run(_opened(net)) is None
        assert connects(proxy) == [net.addresses[A]]


@pytest.mark.more
def test_a_changed_proxy_is_in_force_with_the_next_job(net: Network, tmp_path: Path) -> None:
    async def scenario(proxy: Server) -> None:
        async with serving(net):
            await works(net, tmp_path / "one")
            behind(net, proxy.url(), *PARTIES)
            await works(net, tmp_path / "other")

    with tinyproxy(tmp_path / "proxy") as proxy:
        run(scenario(proxy))
        assert set(connects(proxy)) < set(net.addresses.values())
        assert connects(proxy)


_SILENT = {
    b"": "the relay cannot be reached: the proxy gave no answer in time",
    b"HTTP/1.1 200 OK\r\n": "the relay cannot be reached: the proxy gave no answer in time",
    b"HTTP/1.1 200 OK\r\n\r\n": "the relay gave no answer in time",
}
"""Last words of proxies that then keep the connection, and what a party says of them."""


@pytest.mark.parametrize("words", _SILENT, ids=["silent", "in its answer", "half-open"])
def test_a_party_does_not_wait_for_a_silent_proxy(
    net: Network, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, words: bytes
) -> None:
    """It tries again, with growing pauses, until the proxy carries to the relay."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("party.net.relayed._PAUSE_S", 0.05)
    monkeypatch.setattr("party.net.relayed._MOST_PAUSE_S", 0.4)
    with_relay(net)
    address = f"{HOST}:{free_ports(['proxy'])['proxy']}"
    net.change(A, lambda fields: fields.update(proxy=f"http://{address}", timeouts={"connect_s": 0.2}))
    n_opened, silent = 0, True

    async def serve(connection: socket.socket) -> None:
        nonlocal n_opened
        n_opened += 1
        near = await streams_of(connection)
        await near[0].readuntil(b"\r\n\r\n")
        near[1].write(words if silent else b"HTTP/1.1 200 OK\r\n\r\n")
        if silent:
            await near[0].read()
            dropped(near)
        else:
            await joined(near, await streams_of(await straight(relay_address(net))))

    async def scenario() -> None:
        nonlocal silent
        async with listening(address, serve), relaying(net) as relay, serving(net, only=[A]):
            begun = asyncio.get_running_loop().time()
            await until(lambda: n_opened >= 16)
            took = asyncio.get_running_loop().time() - begun
            assert took > 3 * 0.2 + 0.05 + 0.1 + 0.2  # of four connections at a time
            assert relay.n_waiting(A) == 0
            silent = False
            await until_waiting(relay, A)
            await until(lambda: f"{A} waits for callers at the relay" in caplog.messages)

    run(scenario())
    told = [each for each in caplog.messages if each.startswith(f"{A} does not wait")]
    assert told == [f"{A} does not wait for callers at the relay, and tries again: {_SILENT[words]}"]
