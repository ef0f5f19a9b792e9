"""gRPC's client: calls peers, each pinned to the certificate installed for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

import grpc
import grpc.aio

from jobs.errors import IdentityError, JobFailed, PartyError, Problem, TransportError
from party.net import control
from party.net.conversions import (
    from_envelope,
    from_request,
    to_described,
    to_envelope,
    to_event,
    to_standing,
    to_talked,
)
from party.net.mailbox import Mailbox
from party.net.probe import probe, unreached
from party.net.protocol import Talked
from party.net.streams import EOF, READ_AHEAD, RETRY_S, lost, options_for
from party.net.ways import Ways
from party.owner.config import NodeConfig, usable_peer
from party.owner.identity import Credentials, Peer
from protos import jointcut_pb2 as pb
from protos import jointcut_pb2_grpc as rpc

Sent = TypeVar("Sent")
Got = TypeVar("Got")

_CLOSE_S = 2.0
_ASKED_AGAIN = 3
_UNREACHED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}


class ClientStream(Generic[Sent, Got]):
    """The client's end of a bidirectional stream. One task reads, so that nobody's patience cancels the call."""

    def __init__(
        self, call: Any, peer: str, send: Callable[[Sent], Any], receive: Callable[[Any], Got]
    ) -> None:
        self._call = call
        self._peer = peer
        self._send = send
        self._receive = receive
        self._incoming: Mailbox[Got] = Mailbox(READ_AHEAD)
        self.closed = asyncio.Event()
        """Set when we need it no more."""
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
            if self._call.done():
                await _raise_for_status(self._call, self._peer)  # the peer may have said why
            raise lost(self._peer) from error

    async def close(self) -> None:
        """Half-close, drop what was not read, and give the server a moment to end the call."""
        try:
            await self._end()
        finally:
            self.closed.set()

    async def _end(self) -> None:
        self._incoming.close()
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.done_writing()
        await asyncio.wait({self._reader}, timeout=_CLOSE_S)
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._call.cancel()


MeshStream: TypeAlias = ClientStream[control.Envelope, control.Envelope]
ControlStream: TypeAlias = ClientStream[control.Request, control.Event]


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
    return lost(peer)


class Calls:
    """Opens streams to peers, each pinned to the certificate installed for it."""

    def __init__(self, config: NodeConfig, credentials: Credentials, peers: Mapping[str, Peer]) -> None:
        self._config = config
        self._credentials = credentials
        self._peers = peers
        self._channels: dict[tuple[str, str], grpc.aio.Channel] = {}
        self._answered: dict[grpc.aio.Channel, Talked] = {}
        self._ways = Ways(config)
        self._meshes: list[MeshStream] = []

    async def talked(self, peer: str, address: str) -> Talked:
        """Find out that a peer can be called, and what it speaks. Raises TransportError or IdentityError."""
        return self._answered[await self._reach(peer, address)]

    async def open_mesh(self, peer: str, address: str) -> MeshStream:
        """Open the envelope stream to another party. Raises TransportError or IdentityError."""
        channel = await self._reach(peer, address)
        stream = ClientStream(rpc.MeshStub(channel).Exchange(), peer, from_envelope, to_envelope)
        self._meshes = [*(each for each in self._meshes if not each.closed.is_set()), stream]
        return stream

    async def open_control(self, peer: str, address: str) -> ControlStream:
        """Open a job's stream to a party. Raises TransportError or IdentityError."""
        return await self._open_control(peer, address, lambda stub: stub.Conduct())

    async def open_queue(self, peer: str, address: str) -> ControlStream:
        """As :meth:`open_control`, for a job that waits for its turn."""
        return await self._open_control(peer, address, lambda stub: stub.Queue())

    async def _open_control(self, peer: str, address: str, call: Callable[[Any], Any]) -> ControlStream:
        channel = await self._reach(peer, address)
        stub = rpc.ControlStub(channel)
        return ClientStream(call(stub), peer, from_request, lambda event: to_event(event, peer))

    async def retire(self) -> None:
        """Close when no run needs its streams any more: others take our place for what comes."""
        for stream in self._meshes:
            await stream.closed.wait()
        await self.close()

    async def propose(self, peer: str, address: str, bundle: Iterable[control.Submit]) -> control.Standing:
        """Hand a bundle to a party for its owner to decide on. Raises TransportError, IdentityError, JobFailed."""
        call = rpc.ControlStub(await self._reach(peer, address)).Propose(
            timeout=self._config.timeouts.round_s
        )
        try:
            with suppress(
                grpc.aio.AioRpcError, asyncio.InvalidStateError
            ):  # it answered early: that says why
                for part in bundle:
                    await call.write(from_request(part))
                await call.done_writing()
            return to_standing(await call, peer)
        except grpc.aio.AioRpcError as error:
            raise _broken(error, peer) from error

    async def standing(self, peer: str, address: str, job: bytes) -> control.Standing:
        """How a party stands to a job, by its hash. Raises TransportError, IdentityError, JobFailed."""
        stub = rpc.ControlStub(await self._reach(peer, address))
        try:
            answer = await stub.Status(pb.StatusRequest(job=job), timeout=self._config.timeouts.round_s)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                return control.Standing("automatic", "its version knows no approval")
            raise _broken(error, peer) from error
        return to_standing(answer, peer)

    async def describe(self, peer: str, address: str) -> control.Described:
        """Ask a peer who it is, once over a new connection and ``_ASKED_AGAIN`` times over that: the quickest answer.

        Raises TransportError or IdentityError at the first try that says why nobody answers.
        """
        try:
            channel = await self._channel(peer, address)
            answers = [await self._described(channel) for _ in range(1 + _ASKED_AGAIN)]
        except grpc.aio.AioRpcError as error:
            if error.code() not in _UNREACHED:
                raise _broken(error, peer) from error
            raise _error_of(await self._in_the_way(peer, address)) from error
        return min(answers, key=lambda answer: answer.round_trip_s)

    async def _described(self, channel: grpc.aio.Channel) -> control.Described:
        asked_s, began = time.time(), time.monotonic()
        answer = await self._describe(channel, self._config.timeouts.connect_s)
        return to_described(answer, asked_s, asked_s + time.monotonic() - began)

    async def close(self) -> None:
        await asyncio.gather(*(channel.close(None) for channel in self._channels.values()))
        self._channels.clear()
        self._answered.clear()
        await self._ways.close()

    async def _reach(self, peer: str, address: str) -> grpc.aio.Channel:
        """Connect and ask who is there, again and again until ``connect_s`` is over.

        Whoever has answered over a connection that stands is not asked again.
        """
        channel, loop = await self._channel(peer, address), asyncio.get_running_loop()
        if channel in self._answered and channel.get_state() == grpc.ChannelConnectivity.READY:
            return channel
        deadline = loop.time() + self._config.timeouts.connect_s
        while True:
            try:
                answer = await self._describe(channel, deadline - loop.time())
                self._answered[channel] = to_talked(answer)
                return channel
            except grpc.aio.AioRpcError as error:
                if error.code() not in _UNREACHED:
                    raise _broken(error, peer) from error
                problem = await self._in_the_way(peer, address)
                if problem.error_id != "peer-unreachable" or loop.time() + RETRY_S > deadline:
                    raise _error_of(problem) from error
            await asyncio.sleep(RETRY_S)

    async def _in_the_way(self, peer: str, address: str) -> Problem:
        """Why a peer was not reached: what we met on the way, or what calling it once more shows."""
        met = self._ways.why(peer, address)
        if met is not None:
            return unreached(self._config, peer, address, met)
        target = await self._ways.target(peer, address)
        return await asyncio.to_thread(probe, self._config, self._known(peer), address, target)

    def _known(self, peer: str) -> Peer:
        return self._peers.get(peer) or usable_peer(self._config, peer)

    async def _describe(self, channel: grpc.aio.Channel, timeout_s: float) -> Any:
        stub = rpc.ControlStub(channel)
        return await stub.Describe(pb.DescribeRequest(), timeout=timeout_s, wait_for_ready=False)

    async def _channel(self, peer: str, address: str) -> grpc.aio.Channel:
        target = await self._ways.target(peer, address)
        if (peer, address) not in self._channels:
            secure = grpc.ssl_channel_credentials(
                self._known(peer).certificate, self._credentials.key, self._credentials.certificate
            )
            options = [*options_for(self._config), ("grpc.ssl_target_name_override", peer)]
            self._channels[peer, address] = grpc.aio.secure_channel(target, secure, options)
        return self._channels[peer, address]


def _error_of(problem: Problem) -> PartyError:
    kind = TransportError if problem.error_id == "peer-unreachable" else IdentityError
    error = kind(problem.error_id, problem.message)
    error.problem = problem
    return error
