"""gRPC: the only file that knows it. Everything is converted at once to and from our own values.

Both sides of every connection present a certificate. The TLS layer accepts the certificates that are
installed as peers; which of them it is decides, on every stream, the SHA-256 of the certificate presented.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

import grpc
import grpc.aio

from party import __version__, messages
from party.config import NodeConfig, PartyConfig, credentials_of, peers_of
from party.daemon import Daemon, Dial
from party.errors import ConfigError, IdentityError, JobFailed, PartyError, Problem, TransportError
from party.identity import Credentials, Peer, fingerprint
from party.link import HELLO
from party.mailbox import Mailbox
from protos import jointcut_pb2 as pb
from protos import jointcut_pb2_grpc as rpc

Sent = TypeVar("Sent")
Got = TypeVar("Got")

_STATUS: Mapping[str, grpc.StatusCode] = {
    "identity-unknown": grpc.StatusCode.UNAUTHENTICATED,
    "identity-mismatch": grpc.StatusCode.UNAUTHENTICATED,
    "policy-refused": grpc.StatusCode.PERMISSION_DENIED,
    "job-hash-mismatch": grpc.StatusCode.FAILED_PRECONDITION,
    "busy": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "peer-protocol": grpc.StatusCode.INVALID_ARGUMENT,
    "bug": grpc.StatusCode.INTERNAL,
}
"""Errors a stream is refused with; all others end it as FAILED_PRECONDITION."""

_PROBE_S = 2.0
_RETRY_S = 0.2
_MAX_BACKOFF_S = 0.5
_CLOSE_S = 2.0
_EVENTS_AHEAD = 1024
_READ_AHEAD = 4


def _options(config: NodeConfig) -> list[tuple[str, int]]:
    """Signs of life in both directions, so that a peer that vanished is noticed although nothing is sent.

    The ping timeout counts too: a ping of gRPC's own that is not answered holds back the keepalive pings.
    """
    keepalive_ms = int(config.timeouts.keepalive_s * 1000)
    return [
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", 2 * keepalive_ms),
        ("grpc.http2.ping_timeout_ms", 2 * keepalive_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", keepalive_ms // 2),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", keepalive_ms // 2),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.initial_reconnect_backoff_ms", int(_RETRY_S * 1000)),
        ("grpc.max_reconnect_backoff_ms", int(_MAX_BACKOFF_S * 1000)),
        ("grpc.so_reuseport", 0),
        ("grpc.enable_retries", 0),
    ]


# ---- conversions


def _to_envelope(message: pb.Envelope) -> messages.Envelope:
    return messages.Envelope(
        message.job,
        message.run,
        message.sender,
        message.recipient,
        message.sequence,
        message.step,
        message.payload,
        message.last,
    )


def _from_envelope(envelope: messages.Envelope) -> pb.Envelope:
    return pb.Envelope(
        job=envelope.job,
        run=envelope.run,
        sender=envelope.sender,
        recipient=envelope.recipient,
        sequence=envelope.sequence,
        step=envelope.step,
        payload=envelope.payload,
        last=envelope.last,
    )


def _to_piece(piece: pb.Piece) -> messages.Piece:
    return messages.Piece(piece.name, piece.content, piece.last)


def _from_piece(piece: messages.Piece) -> pb.Piece:
    return pb.Piece(name=piece.name, content=piece.content, last=piece.last)


def _to_request(message: pb.Request) -> messages.Request:
    match message.WhichOneof("kind"):
        case "submit":
            return messages.Submit(message.submit.run, _to_piece(message.submit.bundle))
        case "start":
            return messages.Start()
        case "fetch":
            return messages.Fetch()
        case "release":
            return messages.Release(_to_piece(message.release))
        case "commit":
            return messages.Commit()
        case "cancel":
            return messages.Cancel()
        case _:
            raise PartyError("peer-protocol", "an empty request; compare versions")


def _from_request(request: messages.Request) -> pb.Request:
    match request:
        case messages.Submit(run, bundle):
            return pb.Request(submit=pb.Submit(run=run, bundle=_from_piece(bundle)))
        case messages.Start():
            return pb.Request(start=pb.Start())
        case messages.Fetch():
            return pb.Request(fetch=pb.Fetch())
        case messages.Release(piece):
            return pb.Request(release=_from_piece(piece))
        case messages.Commit():
            return pb.Request(commit=pb.Commit())
        case messages.Cancel():
            return pb.Request(cancel=pb.Cancel())


def _to_event(message: pb.Event, party: str) -> messages.Event:
    match message.WhichOneof("kind"):
        case "admitted":
            return messages.Admitted(message.admitted.job)
        case "progress":
            progress = message.progress
            return messages.Progress(progress.phase, progress.iteration, progress.column, progress.applied)
        case "finished":
            return messages.Finished(message.finished.result, message.finished.summary)
        case "result":
            return messages.ResultPart(_to_piece(message.result))
        case "checked":
            return messages.Checked()
        case "delivered":
            return messages.Delivered()
        case "failed":
            return messages.Failed(Problem.told(message.failed.problem, party))
        case _:
            raise PartyError("peer-protocol", f"{party} sent an empty event; compare versions", party=party)


def _from_event(event: messages.Event) -> pb.Event:
    match event:
        case messages.Admitted(job):
            return pb.Event(admitted=pb.Admitted(job=job))
        case messages.Progress(phase, iteration, column, applied):
            progress = pb.Progress(phase=phase, iteration=iteration, column=column, applied=applied)
            return pb.Event(progress=progress)
        case messages.Finished(result, summary):
            return pb.Event(finished=pb.Finished(result=result, summary=summary))
        case messages.ResultPart(piece):
            return pb.Event(result=_from_piece(piece))
        case messages.Checked():
            return pb.Event(checked=pb.Checked())
        case messages.Delivered():
            return pb.Event(delivered=pb.Delivered())
        case messages.Failed(problem):
            return pb.Event(failed=pb.Failed(problem=json.dumps(problem.shared())))


# ---- server


class PartyServer:
    """Serves one daemon.

    ``daemon`` makes it: tests pass daemons that misbehave.
    """

    def __init__(self, config: PartyConfig, daemon: Callable[[PartyConfig, Dial], Daemon] = Daemon) -> None:
        self._credentials = credentials_of(config)
        self._peers = peers_of(config)
        self._config = config
        self._calls = Calls(config, self._credentials, self._peers)
        self._daemon = daemon(config, self._calls.open_mesh)
        self._server = grpc.aio.server(options=_options(config))
        identify = _Identify(self._peers)
        rpc.add_ControlServicer_to_server(_Control(self._daemon, identify), self._server)
        rpc.add_MeshServicer_to_server(_Mesh(self._daemon, identify), self._server)

    async def start(self) -> str:
        """Listen; return the address, with the port that was chosen if the configuration says 0.

        Raises ConfigError if nobody could connect: no peers are known, or the address cannot be had.
        """
        if not self._peers:
            raise ConfigError(
                "config-invalid",
                "no peers are known: nobody could connect",
                remedy="party peers add NAME CERTIFICATE",
            )
        secure = grpc.ssl_server_credentials(
            [(self._credentials.key, self._credentials.certificate)],
            root_certificates=b"\n".join(peer.certificate for peer in self._peers.values()),
            require_client_auth=True,
        )
        try:
            port = self._server.add_secure_port(self._config.listen, secure)
        except RuntimeError as error:
            raise ConfigError(
                "config-invalid",
                f"cannot listen on {self._config.listen}: the address is in use, or not ours",
                remedy="choose another `listen`, or stop what uses it",
            ) from error
        await self._server.start()
        return f"{self._config.listen.rsplit(':', 1)[0]}:{port}"

    async def stop(self) -> None:
        """Refuse new calls, end those that run, and close our own."""
        await self._server.stop(grace=0.5)
        await self._calls.close()


class _Identify:
    """Finds out which peer is calling, by the certificate it presented."""

    def __init__(self, peers: Mapping[str, Peer]) -> None:
        self._names = {peer.fingerprint: peer.name for peer in peers.values()}

    def __call__(self, context: grpc.aio.ServicerContext[Any, Any]) -> str:
        presented = tuple(context.auth_context().get("x509_pem_cert", ()))
        if len(presented) != 1:
            raise IdentityError("identity-unknown", "no certificate was presented")
        name = self._names.get(fingerprint(presented[0]))
        if name is None:
            raise IdentityError("identity-unknown", "the certificate presented is no installed peer's")
        return name


async def _refuse(context: grpc.aio.ServicerContext[Any, Any], problem: Problem) -> None:
    status = _STATUS.get(problem.error_id, grpc.StatusCode.FAILED_PRECONDITION)
    await context.abort(status, json.dumps(problem.shared()))


class _Control(rpc.ControlServicer):
    """Coordinator to party."""

    def __init__(self, daemon: Daemon, identify: _Identify) -> None:
        self._daemon = daemon
        self._identify = identify

    async def Describe(self, request: pb.DescribeRequest, context: Any) -> pb.Description:
        try:
            self._identify(context)
        except IdentityError as error:
            await _refuse(context, error.problem)
        return pb.Description(name=self._daemon.name, version=__version__)

    async def Conduct(self, requests: AsyncIterator[pb.Request], context: Any) -> None:
        try:
            caller = self._identify(context)
        except IdentityError as error:
            await _refuse(context, error.problem)
            return
        incoming: Mailbox[messages.Request] = Mailbox(_READ_AHEAD)
        events: Mailbox[messages.Event] = Mailbox(_EVENTS_AHEAD)
        reader = asyncio.create_task(_read_requests(requests, incoming))
        writer = asyncio.create_task(_write_events(events, context))
        try:
            await self._daemon.conduct(caller, incoming, events.put)
            events.close()
            await writer
        finally:
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)


async def _read_requests(requests: AsyncIterator[pb.Request], incoming: Mailbox[messages.Request]) -> None:
    try:
        async for request in requests:
            await incoming.put(_to_request(request))
    except PartyError as error:
        incoming.close(error)
    finally:
        incoming.close()


async def _write_events(events: Mailbox[messages.Event], context: Any) -> None:
    while (event := await events.get()) is not None:
        await context.write(_from_event(event))


class _Mesh(rpc.MeshServicer):
    """Party to party."""

    def __init__(self, daemon: Daemon, identify: _Identify) -> None:
        self._daemon = daemon
        self._identify = identify

    async def Exchange(self, envelopes: AsyncIterator[pb.Envelope], context: Any) -> None:
        duplex = _ServerDuplex(context)
        try:
            caller = self._identify(context)
            hello = await _hello(context, caller)
            await self._daemon.accept(caller, hello, duplex)
        except PartyError as error:
            await _refuse(context, error.problem)
            return
        await duplex.serve()


async def _hello(context: Any, caller: str) -> messages.Envelope:
    """Read the first envelope of a stream; its sender must be who presented the certificate."""
    message = await context.read()
    if message is grpc.aio.EOF:
        raise PartyError("peer-protocol", "a stream without a hello", party=caller)
    hello = _to_envelope(message)
    if hello.sender != caller:
        raise IdentityError(
            "identity-mismatch",
            f"an envelope of another sender came with the certificate of {caller}",
            party=caller,
        )
    if hello.step != HELLO or hello.sequence != 0:
        raise PartyError("peer-protocol", "a stream that does not begin with a hello", party=caller)
    return hello


class _ServerDuplex:
    """The server's end of a mesh stream: the RPC's own task keeps it alive, the link reads and writes."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._incoming: Mailbox[messages.Envelope] = Mailbox(_READ_AHEAD)
        self._done = asyncio.Event()

    async def serve(self) -> None:
        """Keep the RPC alive until the link is closed or the peer breaks it."""
        reader = asyncio.create_task(self._read_all())
        try:
            await self._done.wait()
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read_all(self) -> None:
        try:
            while (message := await self._context.read()) is not grpc.aio.EOF:
                await self._incoming.put(_to_envelope(message))
        finally:
            self._incoming.close()

    async def read(self) -> messages.Envelope | None:
        return await self._incoming.get()

    async def write(self, envelope: messages.Envelope) -> None:
        try:
            await self._context.write(_from_envelope(envelope))
        except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError) as error:
            raise _lost(envelope.recipient) from error

    async def close(self) -> None:
        self._done.set()


# ---- client


class _ClientStream(Generic[Sent, Got]):
    """The client's end of a bidirectional stream. One task reads, so that nobody's patience cancels the call."""

    def __init__(
        self, call: Any, peer: str, send: Callable[[Sent], Any], receive: Callable[[Any], Got]
    ) -> None:
        self._call = call
        self._peer = peer
        self._send = send
        self._receive = receive
        self._incoming: Mailbox[Got] = Mailbox(_READ_AHEAD)
        self._reader = asyncio.create_task(self._read_all())

    async def _read_all(self) -> None:
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                await self._incoming.put(self._receive(message))
            await _raise_for_status(self._call, self._peer)
        except grpc.aio.AioRpcError as error:
            self._incoming.close(_broken(error, self._peer))
        except PartyError as error:
            self._incoming.close(error)
        finally:
            self._incoming.close()

    async def read(self) -> Got | None:
        return await self._incoming.get()

    async def write(self, message: Sent) -> None:
        try:
            await self._call.write(self._send(message))
        except grpc.aio.AioRpcError as error:
            raise _broken(error, self._peer) from error
        except asyncio.InvalidStateError as error:
            raise _lost(self._peer) from error

    async def close(self) -> None:
        """Half-close, drop what was not read, and give the server a moment to end the call."""
        self._incoming.close()
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.done_writing()
        await asyncio.wait({self._reader}, timeout=_CLOSE_S)
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._call.cancel()


MeshStream: TypeAlias = _ClientStream[messages.Envelope, messages.Envelope]
ControlStream: TypeAlias = _ClientStream[messages.Request, messages.Event]


async def _raise_for_status(call: Any, peer: str) -> None:
    """Turn a status that ends a call into our error, if it is not OK."""
    code = await call.code()
    if code != grpc.StatusCode.OK:
        raise _refused(code, await call.details(), peer)


def _broken(error: grpc.aio.AioRpcError, peer: str) -> PartyError:
    return _refused(error.code(), error.details(), peer)


def _refused(code: grpc.StatusCode, details: str | None, peer: str) -> PartyError:
    """What a call's status says: the peer's own problem, or that the peer is gone."""
    if details and details.startswith("{"):
        return JobFailed(Problem.told(details, peer))
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return TransportError(
            "peer-protocol", f"{peer} does not speak this protocol; compare versions", party=peer
        )
    return _lost(peer)


def _lost(peer: str) -> TransportError:
    return TransportError("peer-lost", f"{peer} went away", party=peer)


class Calls:
    """Opens streams to peers, each pinned to the certificate installed for it."""

    def __init__(self, config: NodeConfig, credentials: Credentials, peers: Mapping[str, Peer]) -> None:
        self._config = config
        self._credentials = credentials
        self._peers = peers
        self._channels: dict[tuple[str, str], grpc.aio.Channel] = {}

    async def open_mesh(self, peer: str, address: str) -> MeshStream:
        """Open the envelope stream to another party. Raises TransportError or IdentityError."""
        channel = await self._reach(peer, address)
        return _ClientStream(rpc.MeshStub(channel).Exchange(), peer, _from_envelope, _to_envelope)

    async def open_control(self, peer: str, address: str) -> ControlStream:
        """Open a job's stream to a party. Raises TransportError or IdentityError."""
        channel = await self._reach(peer, address)
        call = rpc.ControlStub(channel).Conduct()
        return _ClientStream(call, peer, _from_request, lambda event: _to_event(event, peer))

    async def close(self) -> None:
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))
        self._channels.clear()

    async def _reach(self, peer: str, address: str) -> grpc.aio.Channel:
        """Connect and ask who is there, again and again until ``connect_s`` is over."""
        channel, loop = self._channel(peer, address), asyncio.get_running_loop()
        deadline = loop.time() + self._config.timeouts.connect_s
        while True:
            try:
                await self._describe(channel, deadline - loop.time())
                return channel
            except grpc.aio.AioRpcError as error:
                if error.code() not in _UNREACHED:
                    raise _broken(error, peer) from error
                problem = await asyncio.to_thread(self._probe, peer, address)
                if problem.error_id != "peer-unreachable" or loop.time() + _RETRY_S > deadline:
                    raise _error_of(problem) from error
            await asyncio.sleep(_RETRY_S)

    async def _describe(self, channel: grpc.aio.Channel, timeout_s: float) -> None:
        stub = rpc.ControlStub(channel)
        await stub.Describe(pb.DescribeRequest(), timeout=timeout_s, wait_for_ready=False)

    def _channel(self, peer: str, address: str) -> grpc.aio.Channel:
        if peer not in self._peers:
            raise IdentityError(
                "identity-unknown",
                f"no certificate of {peer} is installed",
                party=self._config.name,
                remedy=f"peers add {peer} CERTIFICATE",
            )
        if (peer, address) not in self._channels:
            secure = grpc.ssl_channel_credentials(
                self._peers[peer].certificate, self._credentials.key, self._credentials.certificate
            )
            options = [*_options(self._config), ("grpc.ssl_target_name_override", peer)]
            self._channels[peer, address] = grpc.aio.secure_channel(address, secure, options)
        return self._channels[peer, address]

    def _probe(self, peer: str, address: str) -> Problem:
        """Tell apart, with the standard library's TLS, why a peer was not reached."""
        host, port = address.rsplit(":", 1)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.set_alpn_protocols(["h2"])
        context.load_verify_locations(cadata=self._peers[peer].certificate.decode())
        context.load_cert_chain(self._config.tls.certificate, self._config.tls.key)
        where = f"{peer} at {address}"
        try:
            with (
                socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_S) as raw,
                context.wrap_socket(raw, server_hostname=peer) as stream,
            ):
                if stream.recv(1):  # a server that refuses our certificate hangs up only now
                    return Problem("peer-unreachable", f"{where} does not answer", party=peer)
        except ssl.SSLCertVerificationError:
            message = f"{where} presented another certificate than the one installed for it"
            return Problem("identity-mismatch", message, party=peer)
        except (ssl.SSLError, ConnectionResetError):
            pass
        except OSError as error:
            reason = error.strerror or "no answer"
            return Problem("peer-unreachable", f"{where} cannot be reached: {reason}", party=peer)
        message = f"{where} refused the TLS connection; it may not have our certificate installed"
        return Problem("tls-failed", message, party=peer)


_UNREACHED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}


def _error_of(problem: Problem) -> PartyError:
    kind = TransportError if problem.error_id == "peer-unreachable" else IdentityError
    error = kind(problem.error_id, problem.message)
    error.problem = problem
    return error
