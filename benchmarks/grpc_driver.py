"""Two processes, gRPC with mutual TLS between them: :mod:`benchmarks.socket_driver` over the product's transport.

The signature is the same, so the same rows can be measured over both. The links, the runner and the server are
those of ``party serve``. Only the daemon is replaced by an object that hands every stream to the benchmark.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.socket_driver import WAIT_S, Measured, forked
from crypto.rounds import Rounds
from party.net.control import Envelope
from party.net.link import Duplex, Link, RunKey
from party.net.runner import Meter, drive
from party.owner.config import PartyConfig, load_config
from party.owner.peer_files import CERTIFICATE, KEY, make_identity

KEY_OF_RUN = RunKey(bytes(32), bytes(16))


def run_pair_over_grpc(
    sides: Mapping[str, Callable[[Callable[[Rounds[Any]], Any]], Any]],
) -> dict[str, Measured]:
    """Run two parties in two processes; the second dials the first. See ``socket_driver.run_pair``."""
    first, second = sides
    with tempfile.TemporaryDirectory() as folder:
        _write_configs(Path(folder), first, second)
        ends = ((first, second, False), (second, first, True))
        return forked(_child, [(Path(folder), name, peer, dials, sides[name]) for name, peer, dials in ends])


def _write_configs(folder: Path, first: str, second: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for name in (first, second):
        make_identity(folder / name, name)
    for name, peer in ((first, second), (second, first)):
        config = {
            "version": 1,
            "name": name,
            "listen": address if name == first else "127.0.0.1:0",
            "data": {"csv": {"path": "none.csv"}},
            "tls": {"certificate": CERTIFICATE, "key": KEY},
            "peers": {peer: {"certificate": str(folder / peer / CERTIFICATE), "address": address}},
        }
        (folder / name / "config.yaml").write_text(yaml.safe_dump(config))


class _Handover:
    """Replacement of the daemon: hands the expected stream to the waiting benchmark."""

    def __init__(self, config: PartyConfig) -> None:
        self.name = config.name
        self.stream: asyncio.Future[Duplex] = asyncio.get_running_loop().create_future()

    async def accept(self, sender: str, hello: Envelope, duplex: Duplex) -> None:
        self.stream.set_result(duplex)


def _child(folder: Path, name: str, peer: str, dials: bool, side: Any, results: Any) -> None:
    try:
        config = load_config(PartyConfig, folder / name / "config.yaml")
        results.put((name, asyncio.run(_run(config, peer, dials, side))))
    except BaseException:  # any exception goes to the parent, which waits for a result of each process
        results.put((name, traceback.format_exc()))
        raise


async def _run(config: PartyConfig, peer: str, dials: bool, side: Any) -> Measured:
    from party.net.server import PartyServer  # only here: gRPC does not survive a fork

    handover = _Handover(config)
    dial: Any = None

    def daemon(config: PartyConfig, dialing: Any, _refresh: Any) -> Any:
        nonlocal dial
        dial = dialing(config)
        return handover

    server = PartyServer(config, daemon)
    await server.start()
    address = config.peers[peer].address
    duplex = await dial(peer, address) if dials else await handover.stream
    link = Link(config.name, peer, KEY_OF_RUN, duplex, greeted=not dials)
    pump = asyncio.create_task(link.run())
    loop = asyncio.get_running_loop()

    def driven(generator: Rounds[Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(
            drive(generator, {peer: link}, Meter(), WAIT_S), loop
        ).result()

    start, cpu = time.perf_counter(), time.process_time()
    output = await asyncio.to_thread(side, driven)
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    async with asyncio.timeout(WAIT_S):
        await link.end()
        await pump
    await dial.close()
    await server.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(output, wall_s, cpu_s, link.traffic.bytes_sent, peak)
