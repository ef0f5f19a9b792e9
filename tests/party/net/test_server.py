"""gRPC with mTLS: who is let in, what a stream begins with, and what garbage does."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from coordinator.run import conduct
from jobs.errors import Exit, PartyError, Problem
from party.net.control import Envelope
from party.net.link import HELLO
from party.net.server import _Identify, _ServerDuplex
from party.owner.config import peers_of
from party.owner.identity import make_credentials
from tests.support.calls import calling, raw, refused
from tests.support.duplex import KEY, run
from tests.support.network import GUARD_S, Network, processes, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


class _Presenting:
    """The part of a gRPC context that says who is there."""

    def __init__(self, *presented: bytes) -> None:
        self._presented = presented

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        return {"x509_pem_cert": self._presented} if self._presented else {}

    def peer(self) -> str:
        return "ipv4:192.0.2.1:7400"


def test_who_calls_is_told_by_the_certificate_alone(net: Network) -> None:
    """Behind TLS, which lets nobody else in: the second lock."""
    peers = peers_of(net.config(A))
    refused: list[PartyError] = []
    identify: Any = _Identify(lambda: peers, refused.append, lambda _: None)
    assert identify(_Presenting(peers[B].certificate)) == B
    for presented in ([], [make_credentials(B).certificate], [peers[B].certificate, peers[C].certificate]):
        with pytest.raises(PartyError) as caught:
            identify(_Presenting(*presented))
        assert caught.value.problem.error_id == "identity-unknown"
    assert len(refused) == 3


def test_a_client_without_a_certificate_gets_nowhere(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]):
            root = (net.root / A / "tls" / "certificate.pem").read_bytes()
            options = [("grpc.ssl_target_name_override", A)]
            secure = grpc.ssl_channel_credentials(root)
            async with grpc.aio.secure_channel(net.addresses[A], secure, options) as channel:
                describe = channel.unary_unary("/jointcut.v1.Control/Describe")
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await describe(b"", timeout=5)
                assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
            async with grpc.aio.insecure_channel(net.addresses[A]) as channel:
                describe = channel.unary_unary("/jointcut.v1.Control/Describe")
                with pytest.raises(grpc.aio.AioRpcError):
                    await describe(b"", timeout=5)

    run(scenario())


@pytest.mark.more
def test_handshakes_at_once_do_not_end_the_daemon(net: Network) -> None:
    """gRPC frees the certificates that a handshake replaces: only what changed may replace any."""
    host, port = net.addresses[A].rsplit(":", 1)
    nobody = ssl.create_default_context()
    nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE

    def shake_hands(_: int) -> None:
        with suppress(OSError), socket.create_connection((host, int(port)), GUARD_S) as stranger:
            nobody.wrap_socket(stranger).close()

    with processes(net, [A]) as running, ThreadPoolExecutor(16) as pool:
        list(pool.map(shake_hands, range(500)))
        assert running.running[A].process.poll() is None
        list(pool.map(shake_hands, range(500)))
        net.change(A, lambda fields: fields["peers"].pop(B))
        list(pool.map(shake_hands, range(500)))
        assert running.running[A].process.poll() is None


def test_a_party_without_peers_does_not_listen(net: Network) -> None:
    net.change(A, lambda fields: fields.update(peers={}))

    async def scenario() -> Problem:
        return await refused(_serve(net))

    problem = run(scenario())
    assert (problem.error_id, problem.exit_code) == ("config-invalid", Exit.USAGE)
    assert "nobody could connect" in problem.message


async def _serve(net: Network) -> None:
    async with serving(net, only=[A]):
        pass


def test_an_address_in_use(net: Network) -> None:
    host, port = net.addresses[A].split(":")
    with closing(socket.create_server((host, int(port)))):
        problem = run(refused(_serve(net)))
    assert (problem.error_id, problem.exit_code) == ("config-invalid", Exit.USAGE)
    assert f"cannot listen on {net.addresses[A]}" in problem.message


def hello(net: Network, **changes: Any) -> Envelope:
    return replace(Envelope(net.bundle.digest, KEY.run, A, B, 0, HELLO, b"", True), **changes)


@pytest.mark.parametrize(
    ("changes", "error_id"),
    [
        ({}, "job-hash-mismatch"),  # well-formed, but B runs no job
        ({"sender": C}, "identity-mismatch"),
        ({"sender": ""}, "identity-mismatch"),
        ({"step": "secure_sum/keys"}, "peer-protocol"),
        ({"sequence": 1}, "peer-protocol"),
        ({"job": b""}, "job-hash-mismatch"),
    ],
)
def test_a_stream_must_begin_with_a_hello_of_a_run(net: Network, changes: Any, error_id: str) -> None:
    async def scenario() -> Problem:
        async with serving(net, only=[B]), calling(net.config(A)) as calls:
            stream = await calls.open_mesh(B, net.addresses[B])
            await stream.write(hello(net, **changes))
            problem = await refused(stream.read())
            await stream.close()
            return problem

    problem = run(scenario())
    assert problem.error_id == error_id
    assert problem.party in {A, B}


def test_a_coordinator_is_no_party(net: Network) -> None:
    """A coordinator that may start jobs is still not one of the parties between whom shares travel."""

    async def scenario() -> Problem:
        async with serving(net, only=[B]), calling(net.coordinator) as calls:
            stream = await calls.open_mesh(B, net.addresses[B])
            await stream.write(hello(net))
            problem = await refused(stream.read())
            await stream.close()
            return problem

    assert run(scenario()).error_id == "identity-mismatch"


GARBAGE = [b"\xff" * 40, b"\x08", b"\x0a\xff\xff\xff\xff\x0f", bytes(100), b"GET / HTTP/1.1"]


@pytest.mark.some(2)
@pytest.mark.parametrize("method", ["Mesh/Exchange", "Control/Conduct"])
@pytest.mark.parametrize("garbage", [*GARBAGE, bytes(5 << 20)], ids=range(len(GARBAGE) + 1))
def test_garbage_ends_its_stream_and_nothing_else(
    net: Network, tmp_path: Path, method: str, garbage: bytes
) -> None:
    async def scenario() -> None:
        async with serving(net):
            async with raw(net, A, B) as channel:
                call = channel.stream_stream(f"/jointcut.v1.{method}")()
                with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await call.write(garbage)
                    await call.done_writing()
                with suppress(grpc.aio.AioRpcError):
                    async with asyncio.timeout(10):
                        while await call.read() is not grpc.aio.EOF:
                            pass
                assert method == "Control/Conduct" or await call.code() != grpc.StatusCode.OK
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())


def test_a_stream_without_a_word(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            async with raw(net, A, B) as channel:
                call = channel.stream_stream("/jointcut.v1.Mesh/Exchange")()
                await call.done_writing()
                async with asyncio.timeout(10):
                    code, details = await call.code(), await call.details()
            assert code == grpc.StatusCode.INVALID_ARGUMENT
            assert json.loads(details)["error"] == "peer-protocol"
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())


def test_a_method_that_does_not_exist(net: Network) -> None:
    async def scenario() -> grpc.StatusCode:
        async with serving(net, only=[B]), raw(net, A, B) as channel:
            call = channel.unary_unary("/jointcut.v1.Control/Steal")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"", timeout=5)
            return caught.value.code()

    assert run(scenario()) == grpc.StatusCode.UNIMPLEMENTED


def test_describe_tells_a_known_peer_name_and_version(net: Network) -> None:
    async def scenario() -> bytes:
        async with serving(net, only=[B]), raw(net, A, B) as channel:
            return bytes(await channel.unary_unary("/jointcut.v1.Control/Describe")(b"", timeout=5))

    assert B.encode() in run(scenario())


@pytest.mark.parametrize("kind", [grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError])
def test_a_stream_that_takes_nothing_any_more_is_a_lost_peer(kind: type[Exception]) -> None:
    """The error of gRPC where a connection breaks depends on the moment."""

    class Broken:
        async def write(self, message: object) -> None:
            raise kind("says the test")

    with pytest.raises(PartyError) as caught:
        run(_ServerDuplex(Broken()).write(Envelope(KEY.job, KEY.run, A, B, 0, HELLO, b"", True)))
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("peer-lost", B)
