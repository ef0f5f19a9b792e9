"""Streams with the peers of a run: opened or awaited, linked, and ended. The module knows no gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from jobs.errors import PartyError, Problem, TransportError
from party.net.link import Duplex, Link, RunKey
from party.net.waiting import stopped, together, unless_broken

T = TypeVar("T")
log = logging.getLogger("party")

_ABORT_S = 1.0
_MARGIN_S = 2.0


class Dial(Protocol):
    """Opens a stream to a peer's mesh service."""

    async def __call__(self, peer: str, address: str) -> Duplex: ...


class Mesh:
    """Streams of a run: a stream with every peer."""

    def __init__(self, me: str, key: RunKey, dial: Dial, max_bytes: int) -> None:
        """``max_bytes``: the largest accepted message of a peer."""
        self.key = key
        self.links: dict[str, Link] = {}
        self._me = me
        self._dial = dial
        self._max_bytes = max_bytes
        self._incoming: dict[str, asyncio.Future[Duplex]] = {}
        self._streams: list[Duplex] = []
        self._pumps: list[asyncio.Task[None]] = []

    @property
    def heads(self) -> dict[str, str]:
        """Heads of the peers' audits as far as told, hexadecimal, by peer."""
        return {peer: link.head.hex() for peer, link in self.links.items() if link.head is not None}

    def expect(self, peers: Iterable[str]) -> None:
        """Allow each of the given peers a single stream from now on."""
        loop = asyncio.get_running_loop()
        self._incoming = {peer: loop.create_future() for peer in peers}

    def accept(self, sender: str, duplex: Duplex) -> None:
        """Take a stream opened by a peer. Raises PartyError if not due."""
        waiting = self._incoming.get(sender)
        if waiting is None or waiting.done():
            raise PartyError("peer-protocol", f"{sender} opened a stream out of turn", party=sender)
        self._streams.append(duplex)
        waiting.set_result(duplex)

    async def connect(self, addresses: Mapping[str, str], patience_s: float) -> None:
        """Open a stream to each given peer, await the expected peers, and pump all streams.

        Raises TransportError if a peer is not reached, or does not connect within ``patience_s``.
        """
        await together(
            *(self._call(peer, address) for peer, address in addresses.items()),
            *(self._await_call(peer, patience_s) for peer in self._incoming),
        )
        self._pumps = [asyncio.create_task(link.run()) for link in self.links.values()]

    async def _call(self, peer: str, address: str) -> None:
        duplex = await self._dial(peer, address)
        self._streams.append(duplex)
        self._link(peer, duplex, greeted=False)

    async def _await_call(self, peer: str, patience_s: float) -> None:
        try:
            async with asyncio.timeout(patience_s + _MARGIN_S):
                duplex = await self._incoming[peer]
        except TimeoutError:
            message = f"{peer} did not connect to {self._me}"
            raise TransportError("peer-unreachable", message, party=peer) from None
        self._link(peer, duplex, greeted=True)

    def _link(self, peer: str, duplex: Duplex, *, greeted: bool) -> None:
        self.links[peer] = Link(self._me, peer, self.key, duplex, greeted=greeted, max_bytes=self._max_bytes)

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
        if self._pumps:
            await asyncio.wait(self._pumps, timeout=_ABORT_S)

    async def close(self) -> None:
        """End every stream of the run, including opened but unused streams."""
        for future in self._incoming.values():
            future.cancel()
        await stopped(*self._pumps)
        await asyncio.gather(*(stream.close() for stream in self._streams), return_exceptions=True)


async def _abort(link: Link, problem: Problem, head: bytes | None) -> None:
    try:
        await link.abort(problem, head)
    except PartyError as error:
        log.debug("link to %s is gone: %s", link.peer, error.problem.error_id)
