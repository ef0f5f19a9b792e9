"""Calls of a daemon with a wrapper around each stream, for tests that count or change calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from party.net.link import Duplex
from party.net.mesh import Dial
from party.owner.config import PartyConfig


class Dialled:
    """Calls as another object makes them. wrap: takes the called peer and the stream; returns the stream to use."""

    def __init__(self, inner: Dial, wrap: Callable[[str, Duplex], Any]) -> None:
        self._inner, self._wrap = inner, wrap

    def begin(self, peer: str, address: str) -> None:
        self._inner.begin(peer, address)

    async def __call__(self, peer: str, address: str) -> Any:
        return self._wrap(peer, await self._inner(peer, address))

    async def close(self) -> None:
        await self._inner.close()


def wrapped(
    dialing: Callable[[PartyConfig], Dial], wrap: Callable[[str, Duplex], Any]
) -> Callable[[PartyConfig], Dial]:
    """Return a maker of calls with a wrapper around each stream."""
    return lambda config: Dialled(dialing(config), wrap)
