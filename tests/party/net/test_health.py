"""`grpc.health.v1` and `Describe`: what a peer hears, and that nobody else does."""

from __future__ import annotations

import time
from pathlib import Path

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from party.net.conversions import to_described
from party.net.health import SERVICES
from party.net.protocol import OURS
from protos import jointcut_pb2 as pb
from tests.support.calls import calling, raw, refused
from tests.support.duplex import run
from tests.support.network import Network, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES
STATUS = health_pb2.HealthCheckResponse


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def checking(channel: grpc.aio.Channel, service: str = "") -> object:
    return health_pb2_grpc.HealthStub(channel).Check(
        health_pb2.HealthCheckRequest(service=service), timeout=10
    )


def test_peers_hear_whether_a_job_would_be_taken(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]) as servers, raw(net, B, A) as channel:
            for service in SERVICES:
                assert (await checking(channel, service)).status == STATUS.SERVING
            servers[A].readiness.leaving = True
            assert (await checking(channel)).status == STATUS.NOT_SERVING

    run(scenario())


def test_other_services_and_watching_are_not_there(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]), raw(net, B, A) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await checking(channel, "jointcut.v1.Other")
            assert caught.value.code() == grpc.StatusCode.NOT_FOUND
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=10)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await watch.read()
            assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED

    run(scenario())


def test_who_is_a_peer_no_more_hears_nothing_over_a_connection_that_stands(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]), raw(net, B, A) as channel:
            await checking(channel)
            net.change(A, lambda fields: fields["peers"].pop(B))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await checking(channel)
            assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED

    run(scenario())


def test_strangers_do_not_come_past_tls(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]), grpc.aio.insecure_channel(net.addresses[A]) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await checking(channel)
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE

    run(scenario())


# ---- Describe, as `party check` asks it


def test_a_peer_tells_name_version_and_time(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]), calling(net.config(B)) as calls:
            said = await calls.describe(A, net.addresses[A])
            assert (said.name, said.talked) == (A, OURS)
            assert said.clock_s is not None
            assert abs(said.clock_s) <= said.round_trip_s / 2 + 0.002
            assert 0 < said.round_trip_s < 10

    run(scenario())


def test_nobody_there_is_said_at_once(net: Network) -> None:
    async def scenario() -> None:
        began = time.monotonic()
        async with calling(net.config(B)) as calls:
            problem = await refused(calls.describe(A, net.addresses[A]))
        assert (problem.error_id, problem.party) == ("peer-unreachable", A)
        assert time.monotonic() - began < net.config(B).timeouts.connect_s

    run(scenario())


def test_another_certificate_is_said_to_be_one(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[C]), calling(net.config(B)) as calls:
            problem = await refused(calls.describe(A, net.addresses[C]))
        assert problem.error_id == "identity-mismatch"

    run(scenario())


def test_what_a_peer_says_is_cut_and_cleaned() -> None:
    said = to_described(
        pb.Description(name="a\nb", version="\x1b[31m" + "9" * 100, time_ms=-(2**63)), 10.0, 12.0
    )
    assert said.name == "a b"
    assert (len(said.talked.version), "\x1b" in said.talked.version) == (40, False)
    assert said.clock_s == -(2**63) / 1000 - 11
    assert said.round_trip_s == 2


def test_an_older_version_tells_no_time_and_speaks_protocol_0() -> None:
    said = to_described(pb.Description(name="a", version="0.1.0"), 10.0, 12.0)
    assert said.clock_s is None
    assert (said.talked.oldest, said.talked.newest) == (0, 0)
