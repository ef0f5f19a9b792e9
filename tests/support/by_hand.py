"""A coordinator's stream spoken by hand, and what a party answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.run import conduct
from jobs.errors import PartyError, Problem
from party.net import control
from party.net.client import Calls, ControlStream
from party.net.control import Event, Request, Submit, pieces
from party.owner.config import credentials_of, peers_of
from tests.support.duplex import run
from tests.support.network import Network, released, serving

RUN = b"r" * control.RUN_BYTES


async def works(net: Network, out: Path) -> None:
    """A job runs to its end."""
    await conduct(net.task, net.coordinator, out)
    assert sum(released(out, net.bundle).values()) == 60


def problem_of_run(net: Network, out: Path) -> Problem:
    """Conduct a run that fails; return the problem."""

    async def scenario() -> Problem:
        async with serving(net):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, out)
            return caught.value.problem

    return run(scenario())


async def open_control(net: Network, party: str, calls: list[Calls]) -> ControlStream:
    """A coordinator's stream, spoken by hand."""
    config = net.coordinator
    calls.append(Calls(config, credentials_of(config), peers_of(config)))
    return await reached(calls[-1], party, net.addresses[party])


async def reached(calls: Calls, party: str, address: str) -> ControlStream:
    """Open a coordinator's stream, and wait until the party is reached."""
    stream = await calls.open_control(party, address)
    try:
        await calls.reached(party, address)
    except BaseException:
        await stream.close()
        raise
    return stream


async def until_the_end(stream: ControlStream) -> list[Event]:
    events: list[Event] = []
    while (event := await stream.read()) is not None:
        events.append(event)
    return events


async def tell(net: Network, party: str, *requests: Request) -> Problem:
    """Say these requests, then wait for the failure they must lead to."""
    calls: list[Calls] = []
    stream = await open_control(net, party, calls)
    for request in requests:
        await stream.write(request)
    events = await until_the_end(stream)
    await stream.close()
    await calls[0].close()
    (failed,) = [event for event in events if isinstance(event, control.Failed)]
    return failed.problem


def submit(net: Network) -> list[Request]:
    return [Submit(RUN, piece) for piece in pieces("bundle", net.bundle.encoded)]
