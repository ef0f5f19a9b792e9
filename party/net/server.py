"""gRPC's server: lets coordinators and peers in, and hands their streams to the daemon as our own values.

Both sides of every connection present a certificate. The TLS layer accepts the certificates installed as peers. On
every stream, the SHA-256 of the presented certificate determines the peer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio

from jobs.errors import ConfigError, IdentityError, PartyError, Problem, TransportError, printable
from jobs.version import PROTOCOLS, __version__, talks_with
from party.net import control
from party.net.client import Calls, MeshStream
from party.net.conversions import (
    from_answer,
    from_envelope,
    from_event,
    to_envelope,
    to_proposal,
    to_request,
)
from party.net.link import HELLO, Duplex
from party.net.mailbox import Mailbox
from party.net.mesh import Dial
from party.net.relayed import Attendance
from party.net.strangers import CALL_S, Strangers
from party.net.streams import EOF, READ_AHEAD, VERSION, lost, options_for, serving_options
from party.net.waiting import stopped
from party.owner.config import PartyConfig, credentials_of, trusted_peers
from party.owner.counts import Counts, Jobs, Watched
from party.owner.current import CurrentJob
from party.owner.identity import Peer, fingerprint
from party.owner.in_force import InForce, Refresh, Settings
from protos import jointcut_pb2 as pb
from protos import jointcut_pb2_grpc as rpc

_STATUS: Mapping[str, grpc.StatusCode] = {
    "identity-unknown": grpc.StatusCode.UNAUTHENTICATED,
    "identity-mismatch": grpc.StatusCode.UNAUTHENTICATED,
    "policy-refused": grpc.StatusCode.PERMISSION_DENIED,
    "proposals-full": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "job-hash-mismatch": grpc.StatusCode.FAILED_PRECONDITION,
    "busy": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "peer-protocol": grpc.StatusCode.INVALID_ARGUMENT,
    "bug": grpc.StatusCode.INTERNAL,
}
"""Status for errors that refuse a stream; all other errors end a stream as FAILED_PRECONDITION."""

_EVENTS_AHEAD = 1024
_GRACE_S, _STOP_S = 0.5, 2.0
_LINGER_S = 0.5
_FAREWELL_S = 10.0
"""Longest wait for a coordinator that takes no more events."""

_HANDSHAKE_BEGINS_S = 0.2
"""Time for a thread let through by gRPC to begin a handshake, on a machine under load, too."""


class Served(Protocol):
    """Daemon of a party, as seen by coordinators and peers."""

    @property
    def name(self) -> str:
        """Our name, as peers and jobs know us."""
        ...

    counts: Counts

    @property
    def jobs(self) -> Jobs:
        """Only place for a job."""
        ...

    def current(self) -> CurrentJob | None:
        """Return the job that runs now."""
        ...

    def stopping(self) -> None:
        """Hear that streams end from now on because the daemon stops."""
        ...

    async def ended(self) -> None:
        """End continuing work; return when completed runs have written their accounts, or after a bounded time."""
        ...

    async def conduct(self, caller: str, requests: Mailbox[control.Request], emit: control.Emit) -> None:
        """Serve a coordinator's stream from submission to delivery."""
        ...

    def refuse(self, error: IdentityError) -> None:
        """Note that somebody without an installed certificate was turned away."""
        ...

    async def turned_away(self, n_connections: int, addresses: Sequence[str]) -> None:
        """Note connections without a call, with some of their addresses."""
        ...

    async def propose(self, caller: str, parts: AsyncIterator[control.Proposal]) -> control.Answer:
        """Take a proposal; return the owner's decision. Raises PartyError."""
        ...

    async def wait(
        self, caller: str, signs: AsyncIterator[object], tell: Callable[[int], Coroutine[Any, Any, None]]
    ) -> None:
        """Keep a coordinator's turn until its job has the only place. Raises PartyError."""
        ...

    async def drain(self) -> None:
        """Take no further job; return when the running job has ended."""
        ...

    async def reload(self) -> Mapping[str, Any]:
        """Take over changes of the configuration; return the changes. Raises PartyError for invalid files."""
        ...

    async def accept(self, sender: str, hello: control.Envelope, duplex: Duplex) -> None:
        """Take a peer's stream for the current run. Raises PartyError without a current run."""
        ...


class PartyServer:
    """Server of a daemon.

    ``daemon`` makes the daemon, given functions for calling the peers of a run and for taking over the
    configuration. ``path`` is the file of the configuration; without a file the configuration never changes.
    """

    def __init__(
        self,
        config: PartyConfig,
        daemon: Callable[[PartyConfig, Callable[[PartyConfig], Dial], Refresh], Served],
        path: Path | None = None,
    ) -> None:
        self._config = config
        self._in_force = InForce(config, path)
        self._told = self._in_force.settings
        self._daemon = daemon(config, _Outgoing, self._refresh)
        self._server = grpc.aio.server(options=options_for(config) + serving_options(config))
        self._attendances = [Attendance(self.config_in_force)] if config.relay else []
        self._strangers = Strangers(self._daemon.turned_away, config.timeouts.hello_s + CALL_S)
        identify = self._identify = _Identify(
            lambda: self._in_force.latest().peers, self._daemon.refuse, self._strangers.called
        )
        self._about_to_stop: Callable[[], Coroutine[Any, Any, None]] = _nothing
        rpc.add_ControlServicer_to_server(_Control(self._daemon, identify), self._server)
        rpc.add_MeshServicer_to_server(_Mesh(self._daemon, identify, config.timeouts.hello_s), self._server)

    async def start(self) -> str:
        """Listen; return the address, with the chosen port if the configuration says 0.

        Raises ConfigError if nobody could connect: no peers are known, or the address is not available.
        """
        settings = self._in_force.settings
        if not settings.peers:
            raise ConfigError(
                "config-invalid",
                "no peers are known: nobody could connect",
                remedy="install a peer: party peers add NAME CERTIFICATE",
            )
        renewal: Any = _Renewal(
            self._in_force, settings, self._strangers.begun
        )  # "no change" is not in the stubs
        secure = grpc.dynamic_ssl_server_credentials(
            _accepting(settings), renewal, require_client_authentication=True
        )
        self._in_force.status.hold(settings)
        try:
            port = self._server.add_secure_port(self._config.listen, secure)
        except RuntimeError as error:
            self._in_force.status.remove()
            raise ConfigError(
                "config-invalid",
                f"cannot listen on {self._config.listen}: the address is in use, or not ours",
                remedy="choose a different `listen`, or stop the process that uses the port",
            ) from error
        self._strangers.start(port)
        await self._server.start()
        for attendance in self._attendances:
            attendance.start(_here(self._config.listen, port))
        return f"{self._config.listen.rsplit(':', 1)[0]}:{port}"

    async def stop(self) -> None:
        """Refuse new calls, and end running calls."""
        self._daemon.stopping()
        stopping = asyncio.ensure_future(self._server.stop(grace=_GRACE_S))
        await asyncio.wait({stopping}, timeout=_STOP_S)  # gRPC waits for abandoned handshakes
        await asyncio.gather(*(attendance.close() for attendance in self._attendances))
        await self._strangers.close()
        await self._daemon.ended()
        self._in_force.status.remove()

    @property
    def idle(self) -> bool:
        """No job runs."""
        return not self._daemon.jobs.taken

    async def drain(self) -> None:
        """Take no further job; return when the running job has ended."""
        await self._about_to_stop()
        await self._daemon.drain()

    async def reload(self) -> Mapping[str, Any]:
        """Take over changes of the configuration; return the changes. Raises PartyError for invalid files."""
        return await self._daemon.reload()

    def watched(self) -> Watched:
        """Return the daemon as its monitor sees the daemon."""
        return Watched(self._daemon.counts, self._daemon.jobs, self._in_force)

    async def answer_health(self) -> None:
        """Answer `grpc.health.v1` to peers, from the start on. Needs `jointcut[monitor]`."""
        from party.net.health import Health

        health = Health(self._identify)
        await health.add_to(self._server)
        self._about_to_stop = health.enter_graceful_shutdown

    def config_in_force(self) -> PartyConfig:
        """Return the configuration in force now. Reads files."""
        return self._in_force.latest().config

    def current(self) -> CurrentJob | None:
        """Return the job that runs now."""
        return self._daemon.current()

    async def _refresh(self) -> PartyConfig:
        """Take over changes before a job."""
        settings = await asyncio.to_thread(self._in_force.refresh)
        if settings is not self._told:
            self._in_force.status.write(settings)
            self._told = settings
        return settings.config


class _Outgoing:
    """Calls of a run to its peers. Later changes of the configuration and its files change nothing here."""

    def __init__(self, config: PartyConfig) -> None:
        """Reads files. Raises ConfigError or IdentityError."""
        self._me = config.name
        self._calls = Calls(config, credentials_of(config), trusted_peers(config))

    def begin(self, peer: str, address: str) -> None:
        """Begin to connect. Raises nothing: the call raises what is wrong then."""
        self._calls.begin(peer, address)

    async def __call__(self, peer: str, address: str) -> MeshStream:
        """Open a stream.

        Raises PartyError for a peer of another version; TransportError with the same message for any other obstacle:
        our owner reads the cause.
        """
        try:
            return await self._calls.open_mesh(peer, address)
        except PartyError as error:
            found = error.problem
            if found.error_id == "version":  # the peer tells it to all its peers
                raise
            detail = " ".join(part for part in (f"{found.error_id}:", found.message, found.private) if part)
            message = f"{self._me} cannot reach {peer}"
            raise TransportError("peer-unreachable", message, party=peer, private=detail) from error

    async def close(self) -> None:
        await self._calls.close()


_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  read, not listened on


def _here(listen: str, port: int) -> str:
    """Return the address of our server for a connection from this machine."""
    host = listen.rsplit(":", 1)[0]
    return f"{_EVERYWHERE.get(host, host)}:{port}"


async def _nothing() -> None:
    """Do nothing."""


class _Renewal:
    """Callback of gRPC at every handshake, in gRPC's own threads, one at a time: returns the changes, or None.

    gRPC frees a replaced configuration while another thread may be about to begin a handshake with the old
    configuration, which ends the process. So only a real change replaces anything, after all handshakes let through
    before have begun. Further handshakes wait for the answer.
    """

    def __init__(self, in_force: InForce, settings: Settings, begun: Callable[[], object]) -> None:
        """``begun``: told of each handshake."""
        self._in_force = in_force
        self._begun = begun
        self._given = _certificates(settings)

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        self._begun()
        settings = self._in_force.latest()
        certificates = _certificates(settings)
        if certificates == self._given:
            return None
        self._given = certificates
        time.sleep(_HANDSHAKE_BEGINS_S)
        return _accepting(settings)


def _accepting(settings: Settings) -> grpc.ServerCertificateConfiguration:
    """Return the peers allowed by TLS, and the identity for answering the peers."""
    own = settings.credentials
    return grpc.ssl_server_certificate_configuration(
        [(own.key, own.certificate)], root_certificates=_certificates(settings)[1]
    )


def _certificates(settings: Settings) -> tuple[bytes, bytes]:
    """Return our own certificate and, in a single text, our peers'."""
    peers = b"\n".join(peer.certificate for peer in settings.peers.values())
    return settings.credentials.certificate, peers


class _Identify:
    """Interceptor that identifies the calling peer by the presented certificate."""

    def __init__(
        self,
        peers: Callable[[], Mapping[str, Peer]],
        refused: Callable[[IdentityError], object],
        called: Callable[[str], object],
    ) -> None:
        """``called``: told of the connection of each call."""
        self._peers = peers
        self._refused = refused
        self._called = called

    def __call__(self, context: grpc.aio.ServicerContext[Any, Any]) -> str:
        self._called(context.peer())
        try:
            return self._name(context)
        except IdentityError as error:
            self._refused(error)
            raise

    def _name(self, context: grpc.aio.ServicerContext[Any, Any]) -> str:
        presented = tuple(context.auth_context().get("x509_pem_cert", ()))
        if len(presented) != 1:
            raise IdentityError("identity-unknown", "no certificate was presented")
        names = {peer.fingerprint: peer.name for peer in self._peers().values()}
        name = names.get(fingerprint(presented[0]))
        if name is None:
            raise IdentityError("identity-unknown", "the certificate presented is no installed peer's")
        return name


async def _refuse(context: grpc.aio.ServicerContext[Any, Any], problem: Problem) -> None:
    status = _STATUS.get(problem.error_id, grpc.StatusCode.FAILED_PRECONDITION)
    await context.abort(status, problem.for_others())


def _require_version(context: Any, caller: str, me: str) -> None:
    """Raise PartyError unless a coordinator's version talks with ours. Version 0.1 does not tell its version."""
    said = dict(context.invocation_metadata()).get(VERSION, __version__)
    if not talks_with(said):
        message = f"{caller} runs Jointcut {printable(said, 20)}, and {me} {__version__}"
        raise PartyError("version", message, party=caller)


class _Control(rpc.ControlServicer):  # type: ignore[misc]  # generated stubs have no types
    """Coordinator to party."""

    def __init__(self, daemon: Served, identify: _Identify) -> None:
        self._daemon = daemon
        self._identify = identify

    async def Describe(self, request: pb.DescribeRequest, context: Any) -> pb.Description:
        try:
            self._identify(context)
        except IdentityError as error:
            await _refuse(context, error.problem)
        return pb.Description(
            name=self._daemon.name,
            version=__version__,
            time_ms=time.time_ns() // 1_000_000,
            protocols=PROTOCOLS,
        )

    async def Conduct(self, requests: AsyncIterator[pb.Request], context: Any) -> None:
        try:
            caller = self._identify(context)
            _require_version(context, caller, self._daemon.name)
        except PartyError as error:
            await _refuse(context, error.problem)
            return
        incoming = _Requests(requests)
        events: Mailbox[control.Event] = Mailbox(_EVENTS_AHEAD)
        writer = asyncio.create_task(_write_events(events, context))
        try:
            await self._daemon.conduct(caller, incoming, events.put)
            events.close()
            await asyncio.wait({writer}, timeout=_FAREWELL_S)
            await incoming.drop_unread()
        finally:
            await incoming.stop()
            events.close()  # a continuing job has no listener
            await stopped(writer)

    async def Wait(self, signs: AsyncIterator[pb.StillHere], context: Any) -> None:
        async def tell(ahead: int) -> None:
            await context.write(pb.Position(ahead=ahead))

        try:
            await self._daemon.wait(self._identify(context), signs, tell)
        except PartyError as error:
            await _refuse(context, error.problem)

    async def Propose(self, parts: AsyncIterator[pb.Proposal], context: Any) -> pb.Answer:
        try:
            caller = self._identify(context)
            return from_answer(await self._daemon.propose(caller, _proposed(parts)))
        except PartyError as error:
            await _refuse(context, error.problem)
            raise


async def _proposed(parts: AsyncIterator[pb.Proposal]) -> AsyncIterator[control.Proposal]:
    async for part in parts:
        yield to_proposal(part)


class _Requests(Mailbox[control.Request]):
    """Requests of a coordinator. Nothing is read of the stream before the first request is asked for."""

    def __init__(self, stream: AsyncIterator[pb.Request]) -> None:
        super().__init__(READ_AHEAD)
        self._stream = stream
        self._reader: asyncio.Task[None] | None = None

    async def get(self) -> control.Request | None:
        if self._reader is None:
            self._reader = asyncio.create_task(_read_requests(self._stream, self))
        return await super().get()

    async def drop_unread(self) -> None:
        """Throw away unrequested messages for a moment.

        Otherwise gRPC would lose our last words to a caller who is still sending when its stream ends.
        """
        if self._reader is not None:
            return
        self._reader = asyncio.create_task(_read_away(self._stream))
        await asyncio.wait({self._reader}, timeout=_LINGER_S)

    async def stop(self) -> None:
        """Read no more."""
        if self._reader is not None:
            await stopped(self._reader)


async def _read_away(stream: AsyncIterator[pb.Request]) -> None:
    async for _ in stream:
        pass


async def _read_requests(requests: AsyncIterator[pb.Request], incoming: Mailbox[control.Request]) -> None:
    try:
        async for request in requests:
            await incoming.put(to_request(request))
    except PartyError as error:
        incoming.close(error)
    finally:
        incoming.close()


async def _write_events(events: Mailbox[control.Event], context: Any) -> None:
    while (event := await events.get()) is not None:
        await context.write(from_event(event))


class _Mesh(rpc.MeshServicer):  # type: ignore[misc]  # likewise
    """Party to party."""

    def __init__(self, daemon: Served, identify: _Identify, hello_s: float) -> None:
        self._daemon = daemon
        self._identify = identify
        self._hello_s = hello_s
        self._greeting: set[str] = set()

    async def Exchange(self, envelopes: AsyncIterator[pb.Envelope], context: Any) -> None:
        duplex = _ServerDuplex(context)
        try:
            caller = self._identify(context)
            hello = await self._greeted(context, caller)
            await self._daemon.accept(caller, hello, duplex)
        except PartyError as error:
            await _refuse(context, error.problem)
            return
        await duplex.serve()

    async def _greeted(self, context: Any, caller: str) -> control.Envelope:
        """Return the hello of a stream. Raises PartyError if late, or if an earlier hello is still due."""
        if caller in self._greeting:
            raise PartyError("peer-protocol", "a stream of the peer has not said hello yet", party=caller)
        self._greeting.add(caller)
        try:
            async with asyncio.timeout(self._hello_s):
                return await _hello(context, caller)
        except TimeoutError:
            raise TransportError(
                "peer-timeout", f"no hello within {self._hello_s:g} s", party=caller
            ) from None
        finally:
            self._greeting.discard(caller)


async def _hello(context: Any, caller: str) -> control.Envelope:
    """Read the first envelope of a stream. The sender must be the owner of the presented certificate."""
    message = await context.read()
    if message is EOF:
        raise PartyError("peer-protocol", "a stream without a hello", party=caller)
    hello = to_envelope(message)
    if hello.sender != caller:
        raise IdentityError(
            "identity-mismatch",
            f"an envelope of a different sender came with the certificate of {caller}",
            party=caller,
        )
    if hello.step != HELLO or hello.sequence != 0:
        raise PartyError("peer-protocol", "a stream does not begin with a hello", party=caller)
    return hello


class _ServerDuplex:
    """Server's end of a mesh stream: the RPC's own task keeps the stream alive, the link reads and writes."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._incoming: Mailbox[control.Envelope] = Mailbox(READ_AHEAD)
        self._done = asyncio.Event()

    async def serve(self) -> None:
        """Keep the RPC alive until the link is closed or broken by the peer."""
        reader = asyncio.create_task(self._read_all())
        try:
            await self._done.wait()
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read_all(self) -> None:
        try:
            while (message := await self._context.read()) is not EOF:
                await self._incoming.put(to_envelope(message))
        finally:
            self._incoming.close()

    async def read(self) -> control.Envelope | None:
        return await self._incoming.get()

    async def write(self, envelope: control.Envelope) -> None:
        try:
            await self._context.write(from_envelope(envelope))
        except (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError) as error:
            raise lost(envelope.recipient) from error

    async def close(self) -> None:
        self._done.set()
