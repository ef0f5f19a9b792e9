"""Two processes, gRPC with mutual TLS between them: :mod:`benchmarks.socket_driver` over the product's transport.

Same signature, so the same rows can be measured over both. The links, the runner and the server are those of
``party serve``; only the daemon is replaced by one that hands every stream to the benchmark.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import socket
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import yaml

from benchmarks.socket_driver import WAIT_S, Measured, forked
from coordinator.simulate import Between, directly
from crypto.rounds import Rounds
from party.net.control import Envelope
from party.net.link import Duplex, Link, RunKey
from party.net.protocol import OURS
from party.net.runner import Meter, drive
from party.owner.config import PartyConfig, load_config
from party.owner.peer_files import CERTIFICATE, KEY, make_identity

KEY_OF_RUN = RunKey(bytes(32), bytes(16))


def run_pair_over_grpc(
    sides: Mapping[str, Callable[[Callable[[Rounds[Any]], Any]], Any]], between: Between = directly
) -> dict[str, Measured]:
    """Run two parties in two processes; the second dials the first. See ``socket_driver.run_pair``."""
    first, second = sides
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, between([port]) as ports:
        _write_configs(Path(folder), (first, port), (second, ports[port]))
        listening = multiprocessing.get_context("fork").Event()
        ends = ((first, second, False), (second, first, True))
        return forked(
            _child, [(Path(folder), name, peer, dials, listening, sides[name]) for name, peer, dials in ends]
        )


def _write_configs(folder: Path, listening: tuple[str, int], dialling: tuple[str, int]) -> None:
    """For each its name, and at which port it has the one that listens."""
    (first, port), (second, seen) = listening, dialling
    for name in (first, second):
        make_identity(folder / name, name)
    for name, peer in ((first, second), (second, first)):
        config = {
            "version": 1,
            "name": name,
            "listen": f"127.0.0.1:{port if name == first else 0}",
            "data": {"csv": {"path": "none.csv"}},
            "tls": {"certificate": CERTIFICATE, "key": KEY},
            "peers": {
                peer: {"certificate": str(folder / peer / CERTIFICATE), "address": f"127.0.0.1:{seen}"}
            },
        }
        (folder / name / "config.yaml").write_text(yaml.safe_dump(config))


class _Handover:
    """Instead of a daemon: the one stream that is due is what the benchmark waits for."""

    def __init__(self, config: PartyConfig) -> None:
        self.name = config.name
        self.talked = OURS
        self.stream: asyncio.Future[Duplex] = asyncio.get_running_loop().create_future()

    async def accept(self, sender: str, hello: Envelope, duplex: Duplex) -> None:
        self.stream.set_result(duplex)

    async def ended(self) -> None:
        """Nothing goes on here."""


def _child(
    folder: Path, name: str, peer: str, dials: bool, listening: Event, side: Any, results: Any
) -> None:
    try:
        config = load_config(PartyConfig, folder / name / "config.yaml")
        results.put((name, asyncio.run(_run(config, peer, dials, listening, side))))
    except BaseException:  # to the parent, whatever it is: it waits for one result of each process
        results.put((name, traceback.format_exc()))
        raise


async def _run(config: PartyConfig, peer: str, dials: bool, listening: Event, side: Any) -> Measured:
    from party.net.server import PartyServer  # only here: gRPC does not survive a fork

    handover = _Handover(config)
    dial: Any = None

    def daemon(_config: PartyConfig, mesh: Any, _refresh: Any) -> Any:
        nonlocal dial
        dial = mesh
        return handover

    server = PartyServer(config, daemon)
    await server.start()
    if dials:
        await asyncio.to_thread(listening.wait, WAIT_S)  # a relay refuses nobody, but hangs up
        duplex = await dial(peer, config.peers[peer].address)
    else:
        listening.set()
        duplex = await handover.stream
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
    await server.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(output, wall_s, cpu_s, link.traffic.bytes_sent, peak)
