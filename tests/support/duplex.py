"""Envelope streams in memory: pairs with a hook for what happens on the way, and scripted ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jobs.errors import TransportError
from party.net.control import PIECE_BYTES, Envelope
from party.net.link import HELLO, Link, RunKey
from party.net.waiting import stopped, unless_broken

T = TypeVar("T")

KEY = RunKey(b"j" * 32, b"r" * 16)
GUARD_S = 30.0

OnWay = Callable[[Envelope], Iterable[Envelope]]
"""Replaces an envelope on its way: by none, one or several."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; the limit only keeps a test that hangs from hanging for ever."""

    async def guarded() -> T:
        async with asyncio.timeout(GUARD_S):
            return await work

    return asyncio.run(guarded())


class MemoryDuplex:
    """One end of a stream in memory."""

    def __init__(
        self,
        incoming: asyncio.Queue[Envelope | None],
        outgoing: asyncio.Queue[Envelope | None],
        on_way: OnWay = lambda envelope: [envelope],
    ) -> None:
        self._incoming, self._outgoing, self._on_way = incoming, outgoing, on_way
        self.closed = False

    async def read(self) -> Envelope | None:
        return await self._incoming.get()

    async def write(self, envelope: Envelope) -> None:
        if self.closed:
            raise TransportError("peer-lost", "closed", party=envelope.recipient)
        for changed in self._on_way(envelope):
            await self._outgoing.put(changed)

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._outgoing.put_nowait(None)


def pair(on_way: OnWay = lambda envelope: [envelope]) -> tuple[MemoryDuplex, MemoryDuplex]:
    """Two ends of one stream; ``on_way`` sees what the first end sends."""
    there: asyncio.Queue[Envelope | None] = asyncio.Queue()
    back: asyncio.Queue[Envelope | None] = asyncio.Queue()
    return MemoryDuplex(back, there, on_way), MemoryDuplex(there, back)


@dataclass
class ScriptedDuplex:
    """An end whose peer says what is written here; then it is silent, or gone."""

    says: Sequence[Envelope]
    gone: bool = True
    heard: list[Envelope] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self._next = iter(self.says)

    async def read(self) -> Envelope | None:
        envelope = next(self._next, None)
        if envelope is None and not self.gone:
            await asyncio.Event().wait()
        return envelope

    async def write(self, envelope: Envelope) -> None:
        self.heard.append(envelope)

    async def close(self) -> None:
        self.closed = True


def said(sequence: int, step: str, payload: bytes = b"", *, last: bool = True) -> Envelope:
    """One envelope from b to a."""
    return Envelope(KEY.job, KEY.run, "b", "a", sequence, step, payload, last)


def says(*messages: tuple[str, bytes]) -> list[Envelope]:
    """The envelopes of a peer that plays by the rules: hello, then these, numbered."""
    return [said(0, HELLO), *(said(i, step, payload) for i, (step, payload) in enumerate(messages, 1))]


def linked(
    me: str = "a", peer: str = "b", *, on_way: OnWay | None = None, piece_bytes: int = PIECE_BYTES
) -> tuple[Link, Link]:
    """Both ends of a link in memory."""
    ours, theirs = pair(on_way or (lambda envelope: [envelope]))
    one = Link(me, peer, KEY, ours, greeted=False, piece_bytes=piece_bytes)
    return one, Link(peer, me, KEY, theirs, greeted=False, piece_bytes=piece_bytes)


async def finished(link: Link) -> None:
    """End our side of a link, and await that the peer ends its own."""
    await link.end()
    assert await link.take() is None


async def pumping(*links: Link, work: Coroutine[Any, Any, T]) -> T:
    """Do some work while the links are pumped; an error of a link ends it, as in the daemon."""
    pumps = [asyncio.create_task(link.run()) for link in links]
    try:
        return await unless_broken(work, pumps)
    finally:
        await stopped(*pumps)
