"""Parties without inbound ports: a relay between them, honest or hostile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from coordinator.relay import Bounds, Call, Relay
from coordinator.simulate import CONFIG, COORDINATOR
from party.net.pipes import Listener, Streams, line, said, secured
from party.net.sockets import straight
from party.net.tls import context_to
from party.owner.config import CoordinatorConfig, NodeConfig, load_config, relay_of
from party.owner.peer_files import CERTIFICATE, make_identity
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, Network, yaml_of

RELAY = "relay"


def with_relay(net: Network) -> Network:
    """Give a network a relay: everybody reaches everybody through the relay alone."""
    address = f"{HOST}:{free_ports([RELAY])[RELAY]}"
    make_identity(net.root / RELAY, RELAY)
    names = (*net.roster, COORDINATOR)
    peers = {name: {"certificate": f"../{name}/{CERTIFICATE}"} for name in names}
    tls = {"certificate": CERTIFICATE, "key": "tls/key.pem"}
    fields = {"version": 1, "name": RELAY, "tls": tls, "peers": peers}
    (net.root / RELAY / CONFIG).write_text(yaml_of(fields))

    def change(fields: dict[str, Any]) -> None:
        fields["relay"] = {"address": address, "certificate": f"../{RELAY}/{CERTIFICATE}"}
        for name in set(fields["peers"]) & set(net.roster):
            fields["peers"][name]["address"] = RELAY

    for name in names:
        net.change(name, change)
    return net


def relay_config(net: Network) -> CoordinatorConfig:
    return load_config(CoordinatorConfig, net.root / RELAY / CONFIG)


def relay_address(net: Network) -> str:
    entry = net.coordinator.relay
    assert entry is not None
    return entry.address


@asynccontextmanager
async def relaying(
    net: Network, make: Callable[..., Relay] = Relay, bounds: Bounds | None = None
) -> AsyncIterator[Relay]:
    """Run a relay in this process."""
    relay = make(relay_config(net), bounds)
    await relay.start(relay_address(net))
    try:
        yield relay
    finally:
        await relay.stop()


async def at_relay(config: NodeConfig) -> Streams:
    """Connect to the relay with the identity of a configuration, and say nothing yet."""
    relay = relay_of(config)
    assert relay.address is not None
    return await secured(await straight(relay.address), context_to(config, relay), relay.name, GUARD_S)


async def waiting_by_hand(config: NodeConfig) -> Streams:
    """Wait for a caller as a party does, up to the first sign of life."""
    streams = await at_relay(config)
    await said(streams[1], b"wait 1")
    assert await line(streams[0]) == b"ping"
    await said(streams[1], b"pong")
    return streams


async def called_by_hand(config: NodeConfig, name: str) -> tuple[Streams, bytes]:
    """Call a party; return the streams and the relay's answer."""
    streams = await at_relay(config)
    await said(streams[1], b"call 1 " + name.encode())
    return streams, await line(streams[0])


async def taken(relay: Relay, name: str, caller: str) -> Streams | bytes:
    """Call a party as the relay can, for a caller; return the streams to the party, or the party's reason."""
    call = Call(caller, asyncio.get_running_loop().create_future())
    await relay._members[name].add(call)
    return await call.answer


async def joined_as(relay: Relay, name: str, caller: str) -> Streams:
    """Call a party that takes the call."""
    found = await taken(relay, name, caller)
    assert not isinstance(found, bytes), found
    return found


async def until(condition: Callable[[], object]) -> None:
    """Return once a condition holds."""
    async with asyncio.timeout(GUARD_S):
        while not condition():
            await asyncio.sleep(0.01)


async def until_waiting(relay: Relay, *names: str) -> None:
    """Return once these parties wait for callers."""
    await until(lambda: all(relay.n_waiting(name) for name in names))


@asynccontextmanager
async def listening(
    address: str, serve: Callable[[socket.socket], Coroutine[Any, Any, None]]
) -> AsyncIterator[None]:
    """Serve each connection to an address by a function."""
    host, port = address.rsplit(":", 1)
    listener = Listener(socket.create_server((host, int(port))), serve, 100)
    try:
        yield
    finally:
        await listener.close()
