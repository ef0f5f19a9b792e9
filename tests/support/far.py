"""Parties far apart in virtual time: every message takes half a second, computing none, so seconds are round trips.

Daemons and coordinator are the real ones; instead of gRPC there are lines between them whose connections stand. The
clock goes on only when nobody computes and nothing is under way at this moment, so it says the same in every run.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc

from coordinator.conduct import Conductor
from coordinator.simulate import COORDINATOR
from jobs.options import NO_OPTIONS
from jobs.stopwatch import Stopwatch
from party.daemon import Daemon
from party.net import control
from party.net.client import ClientStream
from party.net.control import Standing
from party.net.mailbox import Mailbox
from party.net.mesh import Dial
from party.net.protocol import Talked
from party.net.streams import EOF, READ_AHEAD
from tests.support.network import GUARD_S, Network

R = TypeVar("R")
ONE_WAY_S = 0.5


class _Selector(selectors.DefaultSelector):
    """Waits for threads; where only time would pass, it passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.working = 0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or (timeout > 0 and self.working):
            return super().select(GUARD_S)
        self.now += max(timeout, 0.0)
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def run_in_executor(self, executor: Any, func: Callable[..., R], *args: Any) -> asyncio.Future[R]:
        self._clock.working += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        self._clock.working -= 1


class _Line:
    """One direction of a stream: what is sent arrives late, in order."""

    def __init__(self) -> None:
        self._under_way: deque[Any] = deque()
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()

    def send(self, item: Any) -> None:
        self._under_way.append(item)
        asyncio.get_running_loop().call_later(ONE_WAY_S, self._arrive)

    def _arrive(self) -> None:
        self._arrived.put_nowait(self._under_way.popleft())

    async def get(self) -> Any:
        return await self._arrived.get()


class _Call:
    """The client's end of a stream, as gRPC has it."""

    def __init__(self) -> None:
        self.there, self.back = _Line(), _Line()

    async def read(self) -> Any:
        return await self.back.get()

    async def write(self, message: Any) -> None:
        self.there.send(message)

    async def done_writing(self) -> None:
        self.there.send(EOF)

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    def cancel(self) -> None:
        """It has ended."""


class _Duplex:
    """The server's end of a stream of envelopes."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    async def read(self) -> control.Envelope | None:
        envelope = await self._call.there.get()
        return None if envelope is EOF else envelope

    async def write(self, envelope: control.Envelope) -> None:
        self._call.back.send(envelope)

    async def close(self) -> None:
        self._call.back.send(EOF)


def _stream(call: _Call, peer: str) -> ClientStream[Any, Any]:
    return ClientStream(call, peer, lambda message: message, lambda message: message)


class _Parties:
    """Daemons, and how they and the coordinator reach each other. It is what calls are made by, too."""

    def __init__(self, net: Network) -> None:
        self.daemons = {name: Daemon(net.config(name), self._dial_of(name)) for name in net.roster}
        self._served: list[asyncio.Task[None]] = []

    def _dial_of(self, name: str) -> Dial:
        async def dial(peer: str, address: str) -> ClientStream[Any, Any]:
            call = _Call()
            self._served.append(asyncio.create_task(self._accept(name, peer, call)))
            return _stream(call, peer)

        return dial

    async def _accept(self, sender: str, peer: str, call: _Call) -> None:
        duplex = _Duplex(call)
        hello = await duplex.read()
        assert hello is not None
        await self.daemons[peer].accept(sender, hello, duplex)

    async def talked(self, peer: str, address: str) -> Talked:
        """Told when a connection begins, and so not counted."""
        return self.daemons[peer].talked

    async def standing(self, peer: str, address: str, job: bytes) -> Standing:
        """Asked before submission, and so not counted."""
        return await self.daemons[peer].standing(COORDINATOR, job)

    async def open_control(self, peer: str, address: str) -> ClientStream[Any, Any]:
        call = _Call()
        self._served.append(asyncio.create_task(self._conduct(peer, call)))
        return _stream(call, peer)

    async def _conduct(self, peer: str, call: _Call) -> None:
        requests: Mailbox[control.Request] = Mailbox(READ_AHEAD)

        async def heard() -> None:
            while (request := await call.there.get()) is not EOF:
                await requests.put(request)
            requests.close()

        async def emit(event: control.Event) -> None:
            call.back.send(event)

        hearing = asyncio.create_task(heard())
        await self.daemons[peer].conduct("coordinator", requests, emit)
        hearing.cancel()
        call.back.send(EOF)

    async def close(self) -> None:
        """Nothing is left open."""


async def _conducted(net: Network, out: Path) -> None:
    conductor = Conductor(net.task, net.coordinator, lambda party, turn: None)
    conductor._calls = _Parties(net)  # type: ignore[assignment]
    await conductor.connect()
    async with conductor:
        await conductor.submit()
        await conductor.compute()
        collected = await conductor.collect()
        out.mkdir()
        release = net.task.model.write(net.task, out, collected, NO_OPTIONS, Stopwatch(lambda name: None))
        assert await conductor.deliver(out, release) == []


def round_trips(net: Network, out: Path) -> float:
    """Of a whole job, from submission until the coordinator has left. All connections stand before."""

    async def timed() -> float:
        await _conducted(net, out)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(timed())
