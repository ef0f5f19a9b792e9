"""Relays for tests: an identity that everybody has installed, in this process or as a program; and hostile ones."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import yaml

from coordinator.relay import Bounds, Relay
from coordinator.simulate import CONFIG, COORDINATOR
from party.net.splicing import BUFFER_BYTES, Stream
from party.net.waiting import stopped
from party.owner.config import NodeConfig
from party.owner.identity import make_credentials
from tests.support.identities import write_credentials
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, Network, command

RELAY = "relay"
QUICK = Bounds(sign_s=0.2, answer_s=0.5, patience_s=1.0)


def relayed(net: Network, *parties: str) -> str:
    """Have these parties, all if none is named, reached through a relay alone; return where it is to listen."""
    address = f"{HOST}:{free_ports([RELAY])[RELAY]}"
    folder = net.root / RELAY
    write_credentials(folder / "tls", make_credentials(RELAY))
    everybody = (*net.roster, COORDINATOR)
    fields = {
        "version": "1",
        "name": RELAY,
        "tls": {"certificate": "tls/certificate.pem", "key": "tls/key.pem"},
        "peers": {name: {"certificate": f"../{name}/tls/certificate.pem"} for name in everybody},
    }
    (folder / CONFIG).write_text(yaml.safe_dump(fields))

    def change(fields: dict[str, Any]) -> None:
        fields["relay"] = {"address": address, "certificate": str(folder / "tls" / "certificate.pem")}
        for name in parties or net.roster:
            fields["peers"].get(name, {}).pop("address", None)

    for name in everybody:
        net.change(name, change)
    return address


@asynccontextmanager
async def relaying(
    net: Network, address: str, bounds: Bounds = QUICK, make: Callable[..., Relay] = Relay
) -> AsyncIterator[Relay]:
    """A relay in this process."""
    relay = make(net.root / RELAY / CONFIG, address, bounds)
    serving = asyncio.create_task(relay.serve())
    try:
        yield relay
    finally:
        await stopped(serving)


@contextmanager
def relay_process(net: Network, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """`coordinator relay`, which listens."""
    config = net.root / RELAY / CONFIG
    words = command("relay", "--config", config, "--listen", address, "--format", "json")
    with (net.root / RELAY / "log").open("ab") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "listening"
        yield process
    finally:
        process.terminate()
        process.wait(GUARD_S)
        assert process.stdout is not None
        process.stdout.close()


def tls(certificate: Path, key: Path | None, trusted: Path) -> ssl.SSLContext:
    """TLS of a client with this certificate, or with none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(trusted)
    if key is not None:
        context.load_cert_chain(certificate, key)
    return context


async def knock(net: Network, config: NodeConfig | None, address: str) -> Stream:
    """A connection to a relay, by who has this configuration; without one, by who has no certificate."""
    host, port = address.split(":")
    trusted = net.root / RELAY / "tls" / "certificate.pem"
    own = (trusted, None) if config is None else (config.tls.certificate, config.tls.key)
    context = tls(*own, trusted)
    return Stream(
        *await asyncio.open_connection(
            host, int(port), ssl=context, server_hostname=RELAY, limit=BUFFER_BYTES
        )
    )


async def asked(stream: Stream, request: bytes) -> bytes:
    """What a relay answers."""
    await stream.send(request)
    return await stream.head()
