"""Streams with the peers of a run: opened or awaited, linked, and ended. The module knows no gRPC.

A peer has a link. A protocol does not know if the link is direct, or carried by a third party
(:mod:`party.net.wiring`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from crypto.rng import Rng
from jobs.errors import PartyError, Problem, TransportError
from party.net.carried import GREETING, MAX_FRAME_BYTES, PAYLOAD_BYTES, Carriage, Carried, Carrier, Signs
from party.net.link import Duplex, Link, PeerLink, RunKey
from party.net.waiting import stopped, together, unless_broken
from party.net.wiring import Wiring

T = TypeVar("T")
log = logging.getLogger("party")

_ABORT_S = 1.0
_MARGIN_S = 2.0


class Dial(Protocol):
    """Opens streams to the mesh services of peers, for a run."""

    def begin(self, peer: str, address: str) -> None:
        """Begin to connect to a peer, for calls to come. The calls raise what is wrong then."""
        ...

    async def __call__(self, peer: str, address: str) -> Duplex: ...

    async def close(self) -> None:
        """End the connections of all streams."""
        ...


_Due = tuple[str, bool]
"""An expected stream: the peer, and True for a carriage."""
_LinkUp = Callable[[str, Duplex, bool], None]
"""Takes a new stream: its peer, the stream, and True if the peer's hello was read."""


class _Pumped(Protocol):
    async def run(self) -> None: ...


def _running(pumped: Iterable[_Pumped]) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(each.run()) for each in pumped]


class Mesh:
    """Streams of a run, and a link with every peer."""

    def __init__(self, me: str, key: RunKey, dial: Dial, max_bytes: int) -> None:
        """``max_bytes``: the largest accepted message of a peer."""
        self.key = key
        self.links: dict[str, PeerLink] = {}
        self._me = me
        self._dial = dial
        self._max_bytes = max_bytes
        self._incoming: dict[_Due, asyncio.Future[Duplex]] = {}
        self._streams: list[Duplex] = []
        self._pumps: list[asyncio.Task[None]] = []
        self._carriages: list[asyncio.Task[None]] = []
        self._carried: list[Carried] = []

    @property
    def heads(self) -> dict[str, str]:
        """Heads of the peers' audits as far as told, hexadecimal, by peer."""
        return {peer: link.head.hex() for peer, link in self.links.items() if link.head is not None}

    def expect(self, peers: Iterable[str], carriages: Iterable[str] = ()) -> None:
        """Allow each of the given peers a single stream from now on, and a single carriage."""
        loop = asyncio.get_running_loop()
        due = [*((peer, False) for peer in peers), *((peer, True) for peer in carriages)]
        self._incoming = {each: loop.create_future() for each in due}

    def accept(self, sender: str, duplex: Duplex, *, carriage: bool = False) -> None:
        """Take a stream opened by a peer. Raises PartyError if not due."""
        waiting = self._incoming.get((sender, carriage))
        if waiting is None or waiting.done():
            raise PartyError("peer-protocol", f"{sender} opened a stream out of turn", party=sender)
        self._streams.append(duplex)
        waiting.set_result(duplex)

    def begin(self, addresses: Mapping[str, str]) -> None:
        """Begin to connect to the peers that :meth:`connect` calls later. No peer is told anything of the run."""
        for peer, address in addresses.items():
            self._dial.begin(peer, address)

    async def connect(self, addresses: Mapping[str, str], patience_s: float) -> None:
        """Open a stream to each given peer, and await the expected peers. Greet each peer once its stream is here.

        Raises TransportError if a peer is not reached, or does not connect within ``patience_s``.
        """
        await self._open(addresses, patience_s, self._link, carriage=False)

    async def carry(
        self, wiring: Wiring, addresses: Mapping[str, str], signs: Signs, rng: Rng, patience_s: float
    ) -> None:
        """Open the carriages, and link the peers without a stream of their own. Call after :meth:`connect`.

        addresses:  of the peers that we call.

        Raises TransportError if a peer is not reached, or does not answer within ``patience_s``; RemoteProtocolError
        for an answer that the peer has not signed.
        """
        if not wiring.carriages:
            return
        streams: dict[str, Link] = {}

        def link(peer: str, duplex: Duplex, greeted: bool) -> None:
            streams[peer] = Link(
                self._me,
                peer,
                self.key,
                duplex,
                greeted=greeted,
                max_bytes=MAX_FRAME_BYTES,
                greeting=GREETING,
            )

        called = {peer: addresses[peer] for peer in wiring.carriages if wiring.after(peer)}
        await self.unless_broken(self._open(called, patience_s, link, carriage=True))
        if not wiring.carried:
            self._carriages += _running(Carrier(wiring.served, streams).carriages.values())
            self._pumps += self._carriages
            return
        await self._link_carried(wiring, streams, signs, rng, patience_s)

    async def _link_carried(
        self, wiring: Wiring, streams: Mapping[str, Link], signs: Signs, rng: Rng, patience_s: float
    ) -> None:
        ends: dict[str, Carried] = {}

        def take(peer: str, frame: bytes | None) -> None:
            ends[peer].lost() if frame is None else ends[peer].deliver(frame)

        carriages = {
            carrier: Carriage(stream, {p: None for p, by in wiring.carried.items() if by == carrier}, take)
            for carrier, stream in streams.items()
        }
        for peer, carrier in wiring.carried.items():
            post, left = partial(carriages[carrier].post, peer), partial(carriages[carrier].left, peer)
            ends[peer] = Carried(self._me, peer, carrier, self.key, post, left)
        self._carried = list(ends.values())
        self._carriages += _running(carriages.values())
        self._pumps += self._carriages
        agreed = (self._agree(peer, end, signs, rng, patience_s) for peer, end in ends.items())
        await self.unless_broken(together(*agreed))
        for peer, end in ends.items():
            self._link(peer, end, False, suspects=end.suspects, piece_bytes=PAYLOAD_BYTES)

    async def _agree(self, peer: str, end: Carried, signs: Signs, rng: Rng, patience_s: float) -> None:
        try:
            async with asyncio.timeout(patience_s + _MARGIN_S):
                await end.agree(signs, rng)
        except TimeoutError:
            message = f"{peer} did not answer {self._me}"
            raise TransportError("peer-unreachable", message, party=end.suspects) from None

    async def _open(
        self, addresses: Mapping[str, str], patience_s: float, link: _LinkUp, *, carriage: bool
    ) -> None:
        """Open the streams of a kind, and await the expected streams of the kind."""
        await together(
            *(self._call(peer, address, link, carriage=carriage) for peer, address in addresses.items()),
            *(self._await_call(due, patience_s, link) for due in self._incoming if due[1] == carriage),
        )

    async def _call(self, peer: str, address: str, link: _LinkUp, *, carriage: bool) -> None:
        if carriage:  # a server takes no second stream before the first has greeted
            await self.links[peer].answered.wait()
        duplex = await self._dial(peer, address)
        self._streams.append(duplex)
        link(peer, duplex, False)

    async def _await_call(self, due: _Due, patience_s: float, link: _LinkUp) -> None:
        peer, _ = due
        try:
            async with asyncio.timeout(patience_s + _MARGIN_S):
                duplex = await self._incoming[due]
        except TimeoutError:
            message = f"{peer} did not connect to {self._me}"
            raise TransportError("peer-unreachable", message, party=peer) from None
        link(peer, duplex, True)

    def _link(self, peer: str, duplex: Duplex, greeted: bool, **more: Any) -> None:
        """Link a peer, and pump the link from now on: no hello waits for the stream of another peer."""
        link = self.links[peer] = PeerLink(
            self._me, peer, self.key, duplex, greeted=greeted, max_bytes=self._max_bytes, **more
        )
        self._pumps += _running([link])

    async def unless_broken(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work, unless a link breaks meanwhile. The cause is then raised at once."""
        return await unless_broken(work, self._pumps)

    async def abort(self, problem: Problem, head: bytes | None = None) -> None:
        """Tell every reachable peer why the run ends here. ``head``: of our audit, 32 bytes, if known."""
        aborts = [asyncio.create_task(_abort(link, problem, head)) for link in self.links.values()]
        if aborts:
            await asyncio.wait(aborts, timeout=_ABORT_S)
        await stopped(*aborts)

    async def last_words(self) -> None:
        """Wait a moment until the peers have ended, or told why the run ends there."""
        if pumps := [pump for pump in self._pumps if pump not in self._carriages]:
            await asyncio.wait(pumps, timeout=_ABORT_S)

    async def close(self) -> None:
        """End every stream of the run, also unused streams, and the connections. Carried messages have a moment to
        arrive.
        """
        for end in self._carried:
            await end.close()
        if self._carriages:
            await asyncio.wait(self._carriages, timeout=_ABORT_S)
        for future in self._incoming.values():
            future.cancel()
        await stopped(*self._pumps)
        await asyncio.gather(*(stream.close() for stream in self._streams), return_exceptions=True)
        await self._dial.close()


async def _abort(link: Link, problem: Problem, head: bytes | None) -> None:
    try:
        await link.abort(problem, head)
    except PartyError as error:
        log.debug("link to %s is gone: %s", link.peer, error.problem.error_id)
