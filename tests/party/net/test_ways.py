"""The way to a peer: a proxy is used where the configuration names one, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import Problem
from party.net.ways import Ways
from party.owner.config import CoordinatorConfig
from tests.support.calls import calling, impatient, refused
from tests.support.duplex import run
from tests.support.network import (
    Network,
    call,
    processes,
    released,
    report_of,
    sample_network,
    serving,
    write_job,
)
from tests.support.proxies import answering, leading_to, tinyproxy
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES
NOBODY = "http://127.0.0.1:9"
"""Where no proxy is."""


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def through(net: Network, proxy: str) -> CoordinatorConfig:
    """The coordinator's configuration, with a proxy."""
    net.change("coordinator", lambda fields: fields.update(proxy=proxy))
    return impatient(net.coordinator)  # type: ignore[no-any-return]


def port_of(address: str) -> str:
    return address.rpartition(":")[2]


@pytest.mark.parametrize("variable", ["https_proxy", "http_proxy", "grpc_proxy"])
def test_a_proxy_of_the_environment_is_not_used(
    net: Network, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, NOBODY)

    async def scenario() -> None:
        async with serving(net, only=[A]), calling(impatient(net.coordinator)) as calls:
            await (await calls.open_control(A, net.addresses[A])).close()

    run(scenario())


@pytest.mark.parametrize("variable", ["no_proxy", "no_grpc_proxy"])
def test_the_environment_does_not_lead_around_the_proxy(
    net: Network, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "127.0.0.1,localhost")

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(through(net, NOBODY)) as calls:
            return await refused(calls.open_control(A, net.addresses[A]))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-unreachable", A)
    assert "the proxy: Connection refused" in problem.message
    assert "`proxy`" in problem.remedy


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "the proxy answered 403 when asked to connect"),
        (b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\n\r\n", "the proxy answered 407"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "the proxy answered something else than HTTP"),
        (b"HTTP/1.1 \x1b[2J\r\n\r\n", "the proxy answered something else than HTTP"),
        (b"HTTP/1.1 200 Fine", "the proxy hung up"),
        (b"HTTP/1.1 200 Fine\r\n" + b"X: y\r\n" * 10_000, "the proxy hung up"),
        (b"", "the proxy hung up"),
    ],
)
def test_a_proxy_that_does_not_connect_us_is_named_with_what_it_said(
    net: Network, answer: bytes, words: str
) -> None:
    async def scenario() -> tuple[Problem, list[bytes]]:
        async with answering(answer) as (proxy, asked), calling(through(net, proxy)) as calls:
            return await refused(calls.open_control(A, net.addresses[A])), asked

    problem, asked = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-unreachable", A)
    assert words in problem.message
    host = net.addresses[A].encode()
    assert set(asked) == {b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)}


def test_a_proxy_that_connects_us_with_somebody_else_is_found_out(net: Network) -> None:
    """TLS is with the peer, not with the proxy."""

    async def scenario() -> Problem:
        async with (
            serving(net, only=[B]),
            leading_to(net.addresses[B]) as proxy,
            calling(through(net, proxy)) as calls,
        ):
            return await refused(calls.open_control(A, net.addresses[A]))

    assert run(scenario()).error_id == "identity-mismatch"


def test_nothing_is_left_behind(net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def scenario() -> None:
        ways = Ways(through(net, NOBODY))
        target = await ways.target(A, net.addresses[A])
        assert target == await ways.target(A, net.addresses[A])
        folder = Path(target.removeprefix("unix:")).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.parent == tmp_path
        await ways.close()
        assert not folder.exists()

    run(scenario())


def test_calls_go_through_a_real_proxy(net: Network, tmp_path: Path) -> None:
    with tinyproxy(tmp_path / "proxy", port_of(net.addresses[A])) as (proxy, log):

        async def scenario() -> Problem:
            async with serving(net, only=[A, B]), calling(through(net, proxy)) as calls:
                await (await calls.open_control(A, net.addresses[A])).close()
                return await refused(calls.open_control(B, net.addresses[B]))

        problem = run(scenario())
    assert f"CONNECT {net.addresses[A]}" in log.read_text()
    assert "the proxy answered 403" in problem.message  # a port that it was not told to allow


def test_daemons_and_coordinator_run_a_job_through_a_real_proxy(net: Network, tmp_path: Path) -> None:
    """The same table as without; every connection is in the log of the proxy."""
    job = write_job(tmp_path / "job", joint_job())
    ports = [port_of(address) for address in net.addresses.values()]
    config = net.config_path("coordinator")
    with tinyproxy(tmp_path / "proxy", *ports) as (proxy, log):
        with processes(net):
            assert call("run", job, "--config", config, "--out", tmp_path / "straight").code == 0
        assert "Request" not in log.read_text()
        for name in (*PARTIES, "coordinator"):
            net.change(name, lambda fields: fields.update(proxy=proxy))
        with processes(net):
            ran = call("run", job, "--config", config, "--out", tmp_path / "through")
            assert ran.code == 0, ran.err
        connected = log.read_text()
    assert released(tmp_path / "through", net.bundle) == released(tmp_path / "straight", net.bundle)
    assert report_of(tmp_path / "through")["job_sha256"] == report_of(tmp_path / "straight")["job_sha256"]
    asked = {name: connected.count(f"CONNECT {net.addresses[name]}") for name in PARTIES}
    least = dict(
        zip(PARTIES, (1, 2, 3), strict=True)
    )  # each is called by those before it, and the coordinator
    assert all(asked[name] >= n for name, n in least.items())
