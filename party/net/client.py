"""gRPC's client: calls to peers, each pinned to the installed certificate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import grpc
import grpc.aio

from jobs.errors import IdentityError, JobFailed, PartyError, Problem, TransportError, printable
from jobs.version import PROTOCOLS, __version__, talks_with
from party.net import control
from party.net.conversions import (
    from_envelope,
    from_proposal,
    from_request,
    to_answer,
    to_envelope,
    to_event,
)
from party.net.mailbox import Mailbox
from party.net.probe import probe
from party.net.streams import EOF, READ_AHEAD, RETRY_S, VERSION, lost, options_for
from party.net.waiting import stopped
from party.net.ways import Way, Ways
from party.owner.config import NodeConfig, usable_peer
from party.owner.identity import Credentials, Peer
from protos import jointcut_pb2 as pb
from protos import jointcut_pb2_grpc as rpc

Sent = TypeVar("Sent")
Got = TypeVar("Got")

_CLOSE_S = 2.0
_BEGUN_S = 1.0
"""Time for a connection begun ahead to make its first call: without a call the peer takes us for a stranger."""
_UNREACHED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}


class ClientStream(Generic[Sent, Got]):
    """Client's end of a bidirectional stream. A single task reads, so that nobody's patience cancels the call."""

    def __init__(
        self, call: Any, peer: str, send: Callable[[Sent], Any], receive: Callable[[Any], Got]
    ) -> None:
        self._call = call
        self._peer = peer
        self._send = send
        self._receive = receive
        self._incoming: Mailbox[Got] = Mailbox(READ_AHEAD)
        self._reader = asyncio.create_task(self._read_all())

    async def _read_all(self) -> None:
        try:
            while (message := await self._call.read()) is not EOF:
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
            if self._call.done():  # the peer may have said why
                await _raise_for_status(self._call, self._peer)
            raise lost(self._peer) from error

    async def close(self) -> None:
        """Half-close, drop unread messages, and give the server a moment to end the call."""
        self._incoming.close()
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.done_writing()
        await asyncio.wait({self._reader}, timeout=_CLOSE_S)
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._call.cancel()


MeshStream: TypeAlias = ClientStream[control.Envelope, control.Envelope]
ControlStream: TypeAlias = ClientStream[control.Request, control.Event]
WaitStream: TypeAlias = ClientStream[None, int]
"""Stream of a coordinator that waits: says that it is still there, and hears the number of jobs before its own."""


_Reached: TypeAlias = tuple[grpc.aio.Channel, pb.Description]
"""Connection to a peer, with the peer's description."""


def _control(channel: grpc.aio.Channel, peer: str) -> ControlStream:
    call = rpc.ControlStub(channel).Conduct(metadata=((VERSION, __version__),))
    return ClientStream(call, peer, from_request, lambda event: to_event(event, peer))


async def _raise_for_status(call: Any, peer: str) -> None:
    """Turn a status that ends a call into our error, unless OK."""
    code = await call.code()
    if code != grpc.StatusCode.OK:
        raise _refused(code, await call.details(), peer)


def _broken(error: grpc.aio.AioRpcError, peer: str) -> PartyError:
    return _refused(error.code(), error.details(), peer)


def _refused(code: grpc.StatusCode, details: str | None, peer: str) -> PartyError:
    """Return the error in a call's status: the peer's own problem, or the loss of the peer."""
    if details and details.startswith("{"):
        return JobFailed(Problem.told(details, peer))
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return TransportError(
            "peer-protocol", f"{peer} does not speak the protocol; compare the versions", party=peer
        )
    return lost(peer)


@dataclass(frozen=True)
class Described:
    """Peer in its own words.

    version:  of the program.
    round_s:  seconds of a question and its answer.
    apart_s:  seconds that the peer's clock is ahead of ours, to half of ``round_s``; None if not told.
    """

    version: str
    round_s: float
    apart_s: float | None


class Calls:
    """Opener of streams to peers, each pinned to the installed certificate."""

    def __init__(self, config: NodeConfig, credentials: Credentials, peers: Mapping[str, Peer]) -> None:
        self._config = config
        self._credentials = credentials
        self._peers = peers
        self._ways = Ways(config)
        self._channels: dict[tuple[str, str], tuple[grpc.aio.Channel, Way]] = {}
        self._begun: dict[tuple[str, str], asyncio.Task[_Reached]] = {}

    async def describe(self, peer: str, address: str) -> Described:
        """Reach a peer; return what the peer says about itself. Raises TransportError or IdentityError."""
        channel, _ = await self._described(peer, address, self._deadline())
        before, begin = time.time(), time.monotonic()
        try:
            said = await self._describe(channel, self._config.timeouts.connect_s)
        except grpc.aio.AioRpcError as error:
            raise _broken(error, peer) from error
        round_s = time.monotonic() - begin
        apart_s = said.time_ms / 1000 - (before + round_s / 2) if said.time_ms else None
        return Described(printable(said.version), round_s, apart_s)

    def begin(self, peer: str, address: str) -> None:
        """Begin to connect to a peer, for calls to come. The calls raise what is wrong then."""
        self._begun[peer, address] = asyncio.create_task(self._reach(peer, address, self._deadline()))

    async def open_mesh(self, peer: str, address: str) -> MeshStream:
        """Open the envelope stream to a peer with the same protocols.

        Raises TransportError, IdentityError or PartyError.
        """
        channel, said = await self._connected(peer, address)
        if said.protocols != PROTOCOLS:
            message = (
                f"{peer} (Jointcut {printable(said.version, 20)}) has other protocols of joint runs than "
                f"{self._config.name} ({__version__})"
            )
            raise PartyError("version", message, party=peer)
        return ClientStream(rpc.MeshStub(channel).Exchange(), peer, from_envelope, to_envelope)

    async def open_control(self, peer: str, address: str) -> ControlStream:
        """Open a job's stream over a new connection, while the party is asked for its version.

        The party has shown its certificate by then. Await :meth:`reached` before anything of the stream is used.

        Raises TransportError or IdentityError.
        """
        self.begin(peer, address)
        channel, _ = self._channel(peer, address)
        begun, ready = self._begun[peer, address], asyncio.create_task(channel.channel_ready())
        try:
            await asyncio.wait({begun, ready}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await stopped(ready)
        if begun.done():
            begun.result()
        return _control(channel, peer)

    async def reached(self, peer: str, address: str) -> str:
        """Wait until a connection begun ahead is made, and return the name of the peer's protocols.

        Raises TransportError, IdentityError or PartyError.
        """
        _, said = await asyncio.shield(self._begun[peer, address])
        return str(said.protocols)

    async def open_wait(self, peer: str, address: str) -> WaitStream:
        """Open the stream of a coordinator that waits at a party. Raises TransportError or IdentityError."""
        channel, _ = await self._reach(peer, address, self._deadline())
        call = rpc.ControlStub(channel).Wait()
        return ClientStream(call, peer, lambda _: pb.StillHere(), lambda position: int(position.ahead))

    async def propose(self, peer: str, address: str, bundle: bytes, *, ask: bool = False) -> control.Answer:
        """Hand a job to a party for its owner's decision; return the decision. ask: the party keeps nothing.

        Raises TransportError, IdentityError, or the party's own error.
        """
        channel, _ = await self._reach(peer, address, self._deadline())
        parts = [from_proposal(control.Proposal(piece, ask)) for piece in control.pieces("bundle", bundle)]
        call = rpc.ControlStub(channel).Propose(iter(parts), timeout=self._config.timeouts.round_s)
        try:
            return to_answer(await call, peer)
        except grpc.aio.AioRpcError as error:
            raise _broken(error, peer) from error

    async def close(self) -> None:
        if self._begun:
            await asyncio.wait(self._begun.values(), timeout=_BEGUN_S)
        await stopped(*self._begun.values())
        await asyncio.gather(*(channel.close(None) for channel, _ in self._channels.values()))
        self._channels.clear()
        await self._ways.close()

    async def _connected(self, peer: str, address: str) -> _Reached:
        """Return the connection begun ahead, if it stands. Otherwise connect, with ``connect_s`` from now.

        Raises as :meth:`_reach`.
        """
        deadline = self._deadline()
        if (begun := self._begun.get((peer, address))) is not None:
            await asyncio.wait({begun})
            if begun.exception() is None and begun.result()[0].get_state() is grpc.ChannelConnectivity.READY:
                return begun.result()
        return await self._reach(peer, address, deadline)

    async def _reach(self, peer: str, address: str, deadline: float) -> _Reached:
        """Connect to a peer of a version that talks with ours. Raises TransportError, IdentityError or PartyError."""
        channel, said = await self._described(peer, address, deadline)
        if not talks_with(said.version):
            message = (
                f"{peer} runs Jointcut {printable(said.version, 20)}, and {self._config.name} {__version__}"
            )
            raise PartyError("version", message, party=peer)
        return channel, said

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._config.timeouts.connect_s

    async def _described(self, peer: str, address: str, deadline: float) -> _Reached:
        """Connect and ask for the peer's identity, again and again until a deadline."""
        (channel, way), loop = self._channel(peer, address), asyncio.get_running_loop()
        while True:
            try:
                return channel, await self._describe(channel, deadline - loop.time())
            except grpc.aio.AioRpcError as error:
                if error.code() not in _UNREACHED:
                    raise _broken(error, peer) from error
                problem = await asyncio.to_thread(probe, self._config, self._known(peer), address, way)
                if problem.error_id != "peer-unreachable" or loop.time() + RETRY_S > deadline:
                    raise _error_of(problem) from error
            await asyncio.sleep(RETRY_S)

    def _known(self, peer: str) -> Peer:
        return self._peers.get(peer) or usable_peer(self._config, peer)

    async def _describe(self, channel: grpc.aio.Channel, timeout_s: float) -> pb.Description:
        stub = rpc.ControlStub(channel)
        said: pb.Description = await stub.Describe(
            pb.DescribeRequest(), timeout=timeout_s, wait_for_ready=False
        )
        return said

    def _channel(self, peer: str, address: str) -> tuple[grpc.aio.Channel, Way]:
        if (peer, address) not in self._channels:
            way = self._ways.to(peer, address)
            secure = grpc.ssl_channel_credentials(
                self._known(peer).certificate, self._credentials.key, self._credentials.certificate
            )
            options = [*options_for(self._config), ("grpc.ssl_target_name_override", peer)]
            self._channels[peer, address] = grpc.aio.secure_channel(way.target, secure, options), way
        return self._channels[peer, address]


def _error_of(problem: Problem) -> PartyError:
    kind = TransportError if problem.error_id == "peer-unreachable" else IdentityError
    error = kind(problem.error_id, problem.message)
    error.problem = problem
    return error
