"""Daemons that say other things to the coordinator than ours would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from party.daemon import Daemon
from party.net.control import Event

Change = Callable[[Event], list[Event]]


def saying(change: Change) -> Callable[..., Daemon]:
    """A daemon that says other things to the coordinator than ours would."""

    class Other(Daemon):
        async def conduct(self, caller: str, requests: Any, emit: Any, *, waits: bool = False) -> None:
            async def changed(event: Event) -> None:
                for other in change(event):
                    await emit(other)

            await super().conduct(caller, requests, changed, waits=waits)

    return Other


def when(kind: type[Any], change: Callable[[Any], list[Event]]) -> Change:
    return lambda event: change(event) if isinstance(event, kind) else [event]
