"""What a proxy (tinyproxy) and a relay carry, and how long they take, beside a direct connection; without gRPC.

Caller, party, relay and proxy are processes of their own on one machine, so they share its cores: what is measured is
mostly the CPU that a way takes.

    python -m benchmarks.bench_ways
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from coordinator.simulate import free_ports
from jointcut.launcher import command
from party.net.presence import Presence
from party.net.splicing import BUFFER_BYTES, Stream
from party.net.ways import dial
from party.owner.config import RELAYED, CoordinatorConfig, load_config
from party.owner.identity import make_credentials

MIB = 1 << 20
SENT_MIB = 256
N_ROUND_TRIPS = 500
RUNS = 3
NAMES = ("relay", "party", "caller")


def _lay_out(root: Path, ports: dict[str, int]) -> None:
    """An identity and a configuration each; all know each other."""
    for name in NAMES:
        own = make_credentials(name)
        (root / name).mkdir()
        (root / name / "certificate.pem").write_bytes(own.certificate)
        (root / name / "key.pem").write_bytes(own.key)
        fields = {
            "version": "1",
            "name": name,
            "tls": {"certificate": "certificate.pem", "key": "key.pem"},
            "peers": {o: {"certificate": f"../{o}/certificate.pem"} for o in NAMES if o != name},
            "relay": {"address": f"127.0.0.1:{ports['relay']}", "certificate": "../relay/certificate.pem"},
        }
        (root / name / "config.yaml").write_text(yaml.safe_dump(fields))


async def _serve(config: Path, port: int) -> None:
    """A party that says back one byte for so many that it is announced."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = Stream(reader, writer)
        try:
            while True:
                left = int.from_bytes(await reader.readexactly(8), "big")
                while left:
                    part = await reader.read(min(left, BUFFER_BYTES))
                    if not part:
                        raise EOFError
                    left -= len(part)
                await stream.send(b".")
        except (OSError, EOFError):
            stream.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", port, limit=BUFFER_BYTES)
    Presence(load_config(CoordinatorConfig, config), f"127.0.0.1:{port}").start()
    print("listening", flush=True)
    await server.serve_forever()


async def _measure(config: CoordinatorConfig, address: str) -> tuple[float, float]:
    """MiB/s of one stream, and the median of round trips, in microseconds."""
    stream = await dial(config, "party", address)
    part, took = bytes(MIB), []
    for _ in range(N_ROUND_TRIPS):
        began = time.perf_counter()
        await stream.send((1).to_bytes(8, "big") + b"x")
        await stream.reader.readexactly(1)
        took.append(time.perf_counter() - began)
    began = time.perf_counter()
    await stream.send((SENT_MIB * MIB).to_bytes(8, "big"))
    for _ in range(SENT_MIB):
        await stream.send(part)
    await stream.reader.readexactly(1)
    rate = SENT_MIB / (time.perf_counter() - began)
    await stream.close()
    return rate, statistics.median(took) * 1e6


@contextmanager
def _running(words: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    ports = free_ports(["relay", "party", "proxy"])
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        root = Path(name)
        _lay_out(root, ports)
        relay = [
            "relay",
            "--config",
            str(root / "relay" / "config.yaml"),
            "--listen",
            f"127.0.0.1:{ports['relay']}",
        ]
        stack.enter_context(_running([*command("coordinator"), *relay], ports["relay"]))
        party = [
            sys.executable,
            "-m",
            "benchmarks.bench_ways",
            str(root / "party" / "config.yaml"),
            str(ports["party"]),
        ]
        stack.enter_context(_running(party, ports["party"]))
        direct = load_config(CoordinatorConfig, root / "caller" / "config.yaml")
        at = f"127.0.0.1:{ports['party']}"
        ways = {"direct": (direct, at), "relay": (direct, RELAYED)}
        if program := shutil.which("tinyproxy"):
            (root / "proxy.conf").write_text(f"Port {ports['proxy']}\nListen 127.0.0.1\nAllow 127.0.0.1\n")
            stack.enter_context(_running([program, "-d", "-c", str(root / "proxy.conf")], ports["proxy"]))
            proxied = direct.model_copy(update={"proxy": f"http://127.0.0.1:{ports['proxy']}"})
            ways |= {"proxy": (proxied, at), "proxy and relay": (proxied, RELAYED)}
        time.sleep(1)
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(RUNS):
            for way, (config, address) in ways.items():
                found[way].append(asyncio.run(_measure(config, address)))
        for way, runs in found.items():
            rates, trips = zip(*runs, strict=True)
            print(f"{way:16} {statistics.median(rates):8.0f} MiB/s {statistics.median(trips):8.0f} us")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
    else:
        main()
