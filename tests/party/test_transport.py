"""gRPC with mTLS: who is let in, why somebody is not reached, and what garbage does."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

import party.daemon
from coordinator.run import conduct
from crypto.local import run_local
from party import messages, transport
from party.config import CoordinatorConfig, NodeConfig, credentials_of, load_config, peers_of
from party.errors import Exit, PartyError, Problem
from party.identity import make_credentials
from party.link import HELLO
from party.messages import Envelope
from party.protocols import protocol_of
from party.result import encode_result
from party.transport import Calls
from protos import jointcut_pb2 as pb
from tests.party.test_runner import RecordingLink, in_the_order_of, seeded
from tests.support.duplex import KEY, run
from tests.support.identities import certificate_for, write_credentials
from tests.support.network import Network, sample_network, serving
from tests.support.rng import SeededRng
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def impatient(config: Any, seconds: float = 0.5) -> Any:
    return config.model_copy(update={"timeouts": config.timeouts.model_copy(update={"connect_s": seconds})})


@asynccontextmanager
async def calling(config: NodeConfig) -> AsyncIterator[Calls]:
    calls = Calls(config, credentials_of(config), peers_of(config))
    try:
        yield calls
    finally:
        await calls.close()


async def refused(work: Coroutine[Any, Any, Any]) -> Problem:
    with pytest.raises(PartyError) as caught:
        await work
    return caught.value.problem


def coordinator_as(net: Network, name: str, **credentials: Any) -> CoordinatorConfig:
    """The coordinator's configuration with another identity."""
    write_credentials(net.root / "other", certificate_for([name], **credentials))
    tls = {"certificate": "../other/certificate.pem", "key": "../other/key.pem"}
    net.change("coordinator", lambda fields: fields.update(tls=tls, name=name))
    return load_config(CoordinatorConfig, net.config_path("coordinator"))


# ---- reaching


def test_known_peers_reach_each_other(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net), calling(net.coordinator) as calls:
            for party in PARTIES:
                stream = await calls.open_control(party, net.addresses[party])
                await stream.close()

    run(scenario())


def test_nobody_there(net: Network) -> None:
    async def scenario() -> None:
        async with calling(impatient(net.coordinator)) as calls:
            problem = await refused(calls.open_control(A, net.addresses[A]))
        assert (problem.error_id, problem.party, problem.exit_code) == (
            "peer-unreachable",
            A,
            Exit.UNREACHABLE,
        )
        assert net.addresses[A] in problem.message
        assert "Connection refused" in problem.message

    run(scenario())


def test_a_host_that_does_not_exist(net: Network) -> None:
    async def scenario() -> None:
        async with calling(impatient(net.coordinator)) as calls:
            problem = await refused(calls.open_control(A, "no-such-host.invalid:1"))
        assert (problem.error_id, problem.party) == ("peer-unreachable", A)

    run(scenario())


def test_somebody_who_takes_the_call_and_says_nothing(net: Network) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:

        async def scenario() -> Problem:
            async with calling(impatient(net.coordinator)) as calls:
                return await refused(calls.open_control(A, f"127.0.0.1:{silent.getsockname()[1]}"))

        problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-unreachable", A)


def test_somebody_who_speaks_something_else(net: Network) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def chatter() -> None:
            while True:
                try:
                    with closing(server.accept()[0]) as stream:
                        stream.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                except OSError:
                    return

        thread = threading.Thread(target=chatter)
        thread.start()

        async def scenario() -> Problem:
            async with calling(impatient(net.coordinator)) as calls:
                return await refused(calls.open_control(A, f"127.0.0.1:{server.getsockname()[1]}"))

        problem = run(scenario())
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    assert problem.party == A
    assert problem.error_id in {"tls-failed", "peer-unreachable"}


def test_a_party_that_comes_up_while_it_is_called_is_reached(net: Network) -> None:
    async def scenario() -> None:
        async with calling(net.coordinator) as calls:
            opening = asyncio.create_task(calls.open_control(A, net.addresses[A]))
            await asyncio.sleep(0.7)
            assert not opening.done()
            async with serving(net, only=[A]):
                await (await opening).close()

    run(scenario())


def test_a_party_that_was_down_for_long_is_reached_at_once_when_it_is_up(net: Network) -> None:
    """gRPC backs off further with every failure; a daemon keeps its channels, so that must stay small."""

    async def scenario() -> None:
        async with calling(impatient(net.coordinator, 2.0)) as calls:
            for _ in range(3):
                await refused(calls.open_control(A, net.addresses[A]))
            async with serving(net, only=[A]):
                await (await calls.open_control(A, net.addresses[A])).close()

    run(scenario())


def test_no_certificate_no_call(net: Network) -> None:
    net.change("coordinator", lambda fields: fields["peers"].pop(A))

    async def scenario() -> Problem:
        async with serving(net), calling(net.coordinator) as calls:
            return await refused(calls.open_control(A, net.addresses[A]))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("identity-unknown", "coordinator")
    assert f"peers add {A}" in problem.remedy


# ---- identities


def test_a_server_with_another_certificate(net: Network) -> None:
    """Somebody else listens at the party's address: another key, though it bears the right name."""
    write_credentials(net.root / "other", make_credentials(A))
    tls = {"certificate": "../other/certificate.pem", "key": "../other/key.pem"}
    net.change(A, lambda fields: fields.update(tls=tls))

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(calls.open_control(A, net.addresses[A]))

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.exit_code) == ("identity-mismatch", A, Exit.IDENTITY)
    assert "presented another certificate" in problem.message


def test_a_party_reached_at_the_address_of_another(net: Network) -> None:
    async def scenario() -> Problem:
        async with serving(net, only=[B]), calling(net.coordinator) as calls:
            return await refused(calls.open_control(A, net.addresses[B]))

    assert run(scenario()).error_id == "identity-mismatch"


AUTHORITY = certificate_for(["authority"])


def issued(net: Network, name: str, to: str | None = None) -> dict[str, str]:
    """A new certificate of the authority for ``name``, as the `tls` of a configuration; or installed at ``to``."""
    folder = net.root / f"issued-{name}-{to}"
    paths = write_credentials(folder, certificate_for([name], issuer=AUTHORITY))
    return dict(zip(("certificate", "key"), map(str, paths), strict=True))


def test_certificates_of_an_authority(net: Network) -> None:
    """Each party may have a certificate of its site's authority, which stands behind it in the file."""
    ours, theirs = issued(net, "coordinator"), issued(net, A)
    net.change(A, lambda fields: fields.update(tls=theirs))
    net.change(A, lambda fields: fields["peers"]["coordinator"].update(certificate=ours["certificate"]))
    net.change("coordinator", lambda fields: fields.update(tls=ours))
    net.change("coordinator", lambda fields: fields["peers"][A].update(certificate=theirs["certificate"]))

    async def scenario() -> None:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            await (await calls.open_control(A, net.addresses[A])).close()

    run(scenario())


def test_a_server_with_another_certificate_of_the_same_authority(net: Network) -> None:
    """The authority gave the name to somebody else, too; it is in the installed file, and no identity."""
    installed = issued(net, A, "coordinator")["certificate"]
    net.change(A, lambda fields: fields.update(tls=issued(net, A)))
    net.change("coordinator", lambda fields: fields["peers"][A].update(certificate=installed))

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(calls.open_control(A, net.addresses[A]))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("identity-mismatch", A)


def test_a_client_with_another_certificate_of_the_same_authority(net: Network) -> None:
    installed = issued(net, "coordinator", A)["certificate"]
    net.change(A, lambda fields: fields["peers"]["coordinator"].update(certificate=installed))
    net.change("coordinator", lambda fields: fields.update(tls=issued(net, "coordinator")))

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(calls.open_control(A, net.addresses[A]))

    assert run(scenario()).error_id == "tls-failed"


class _Presenting:
    """The part of a gRPC context that says who is there."""

    def __init__(self, *presented: bytes) -> None:
        self._presented = presented

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        return {"x509_pem_cert": self._presented} if self._presented else {}


def test_who_calls_is_told_by_the_certificate_alone(net: Network) -> None:
    """Behind TLS, which lets nobody else in: the second lock."""
    peers = peers_of(net.config(A))
    identify: Any = transport._Identify(peers)
    assert identify(_Presenting(peers[B].certificate)) == B
    for presented in ([], [make_credentials(B).certificate], [peers[B].certificate, peers[C].certificate]):
        with pytest.raises(PartyError) as caught:
            identify(_Presenting(*presented))
        assert caught.value.problem.error_id == "identity-unknown"


@pytest.mark.parametrize("name", ["coordinator", "stranger"])
def test_a_client_with_a_certificate_nobody_installed(net: Network, name: str) -> None:
    config = coordinator_as(net, name)

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(config) as calls:
            return await refused(calls.open_control(A, net.addresses[A]))

    for _ in range(3):  # the alert of the server must not lose a race against its hang-up
        problem = run(scenario())
        assert (problem.error_id, problem.party, problem.exit_code) == ("tls-failed", A, Exit.IDENTITY)
        assert "it may not have our certificate installed" in problem.message


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


# ---- the mesh


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_same_seeds_over_grpc_one_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: str) -> None:
    """The run of tests/party/test_runner.py once more: whole daemons, over TLS, with seeded coins."""
    net = sample_network(tmp_path / "net", goal=goal)
    expected, transcript = run_local(seeded(goal, None))
    links: dict[str, dict[str, RecordingLink]] = {party: {} for party in PARTIES}
    results: dict[str, bytes] = {}

    def recording(me: str, peer: str, *arguments: Any, **more: Any) -> RecordingLink:
        links[me][peer] = RecordingLink(me, peer, *arguments, **more)
        return links[me][peer]

    def encoded(result: Any) -> bytes:
        results[str(len(results))] = encode_result(result)
        return encode_result(result)

    def with_coins(bundle: Any, me: str, loaded: Any, _rng: Any, observer: Any) -> Any:
        return protocol_of(bundle, me, loaded, SeededRng(me), observer)

    monkeypatch.setattr(party.daemon, "Link", recording)
    monkeypatch.setattr(party.daemon, "encode_result", encoded)
    monkeypatch.setattr(party.daemon, "protocol_of", with_coins)

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.bundle, net.coordinator, tmp_path / "out")

    run(scenario())
    assert in_the_order_of(transcript, links).digest() == transcript.digest()
    assert set(results.values()) == {encode_result(expected[A])}
    assert len(results) == len(PARTIES)


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
    """Whoever may start jobs is still not one of the parties between whom shares travel."""

    async def scenario() -> Problem:
        async with serving(net, only=[B]), calling(net.coordinator) as calls:
            stream = await calls.open_mesh(B, net.addresses[B])
            await stream.write(hello(net))
            problem = await refused(stream.read())
            await stream.close()
            return problem

    assert run(scenario()).error_id == "identity-mismatch"


@asynccontextmanager
async def raw(net: Network, caller: str, callee: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel with a peer's identity and no manners."""
    own = credentials_of(net.config(caller) if caller in PARTIES else net.coordinator)
    root = (net.root / callee / "tls" / "certificate.pem").read_bytes()
    secure = grpc.ssl_channel_credentials(root, own.key, own.certificate)
    async with grpc.aio.secure_channel(
        net.addresses[callee], secure, [("grpc.ssl_target_name_override", callee)]
    ) as channel:
        yield channel


GARBAGE = [b"\xff" * 40, b"\x08", b"\x0a\xff\xff\xff\xff\x0f", bytes(100), b"GET / HTTP/1.1"]


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
            await conduct(net.bundle, net.coordinator, tmp_path / "out")

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
            await conduct(net.bundle, net.coordinator, tmp_path / "out")

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


# ---- conversions


@pytest.mark.parametrize(
    "request_",
    [
        messages.Submit(b"r" * 16, messages.Piece("bundle", b"x", False)),
        messages.Start(),
        messages.Fetch(),
        messages.Release(messages.Piece("report.json", b"y", True)),
        messages.Commit(),
        messages.Cancel(),
    ],
)
def test_requests_survive_their_way(request_: messages.Request) -> None:
    assert transport._to_request(transport._from_request(request_)) == request_


@pytest.mark.parametrize(
    "event",
    [
        messages.Admitted(b"j" * 32),
        messages.Progress("score", 3, "age", True),
        messages.Finished(b"d" * 32, "{}"),
        messages.ResultPart(messages.Piece("result", b"x", True)),
        messages.Checked(),
        messages.Delivered(),
        messages.Failed(Problem("busy", "later", "b", "submit", remedy="wait")),
    ],
)
def test_events_survive_their_way(event: messages.Event) -> None:
    assert transport._to_event(transport._from_event(event), "b") == event


def test_envelopes_survive_their_way() -> None:
    envelope = Envelope(b"j", b"r", "a", "b", 2**40, "x/y", b"payload", False)
    assert transport._to_envelope(transport._from_envelope(envelope)) == envelope


def test_what_is_private_does_not_travel() -> None:
    failed = messages.Failed(Problem("data-empty", "no rows", "b", private="Zebra"))
    assert b"Zebra" not in transport._from_event(failed).SerializeToString()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"error": 3}', "[" * 10**5])
def test_a_failure_without_a_reason_is_the_partys(text: str) -> None:
    event = transport._to_event(pb.Event(failed=pb.Failed(problem=text)), "b")
    assert isinstance(event, messages.Failed)
    assert (event.problem.error_id, event.problem.party) == ("peer-protocol", "b")


def test_empty_messages_are_refused() -> None:
    for convert in (transport._to_request, lambda m: transport._to_event(m, "b")):
        with pytest.raises(PartyError) as caught:
            convert(pb.Request() if convert is transport._to_request else pb.Event())  # type: ignore[arg-type]
        assert caught.value.problem.error_id == "peer-protocol"
