"""Daemons that meddle with what they send to their peers, over real streams: the man in the middle of the tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from party.daemon import Daemon
from party.net.control import Envelope
from party.net.link import Duplex
from party.net.mesh import Dial
from party.owner.config import PartyConfig
from party.owner.in_force import Refresh
from tests.support.dialled import wrapped

CUT = "cut"
Meddle = Callable[[Envelope], "AsyncIterator[Envelope | str]"]
"""Replaces an envelope: by any number of others, or CUT to drop the stream."""


@dataclass
class MeddlingDuplex:
    """A stream whose outgoing envelopes are meddled with."""

    inner: Duplex
    meddle: Meddle
    cut: bool = False

    async def read(self) -> Envelope | None:
        return await self.inner.read()

    async def write(self, envelope: Envelope) -> None:
        async for other in self.meddle(envelope):
            if isinstance(other, str):
                self.cut = True
                await self.inner.close()
            if not self.cut and isinstance(other, Envelope):
                await self.inner.write(other)

    async def close(self) -> None:
        await self.inner.close()


@dataclass
class Meddler:
    """Makes daemons that meddle while ``active``; remembers them, and what they saw on its way."""

    meddle: Meddle
    active: bool = True
    daemons: dict[str, Daemon] = field(default_factory=dict)
    seen: list[Envelope] = field(default_factory=list)

    def __call__(
        self, config: PartyConfig, dialing: Callable[[PartyConfig], Dial], refresh: Refresh
    ) -> Daemon:
        outer = self

        def meddled(_: str, duplex: Duplex) -> MeddlingDuplex:
            return MeddlingDuplex(duplex, outer._on_way)

        class Meddling(Daemon):
            async def accept(self, sender: str, hello: Envelope, duplex: Duplex) -> None:
                await super().accept(sender, hello, MeddlingDuplex(duplex, outer._on_way))

        self.daemons[config.name] = Meddling(config, wrapped(dialing, meddled), refresh)
        return self.daemons[config.name]

    async def _on_way(self, envelope: Envelope) -> AsyncIterator[Envelope | str]:
        self.seen.append(envelope)
        if not self.active:
            yield envelope
            return
        async for other in self.meddle(envelope):
            yield other


async def honestly(envelope: Envelope) -> AsyncIterator[Envelope | str]:
    yield envelope


def once(step: str, change: Callable[[Envelope], list[Envelope | str]], to: str | None = None) -> Meddle:
    """Meddle with the first envelope of a step (to one recipient) only."""
    done: list[Envelope] = []

    async def meddle(envelope: Envelope) -> AsyncIterator[Envelope | str]:
        if envelope.step != step or done or (to is not None and envelope.recipient != to):
            yield envelope
            return
        done.append(envelope)
        for other in change(envelope):
            yield other

    return meddle


def swapped(step: str) -> Meddle:
    """Send the first envelope of a step to one recipient after the one that follows it."""
    held: list[Envelope] = []
    swapped_to: set[str] = set()

    async def meddle(envelope: Envelope) -> AsyncIterator[Envelope | str]:
        if envelope.step == step and not swapped_to:
            swapped_to.add(envelope.recipient)
            held.append(envelope)
            return
        yield envelope
        if held and envelope.recipient == held[0].recipient:
            yield held.pop()

    return meddle


def delayed(step: str, seconds: float) -> Meddle:
    """Send every envelope of a step late."""

    async def meddle(envelope: Envelope) -> AsyncIterator[Envelope | str]:
        if envelope.step == step:
            await asyncio.sleep(seconds)
        yield envelope

    return meddle
