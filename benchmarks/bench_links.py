"""How full a party keeps its line: one stream of large messages over gRPC with mutual TLS, a part of bench_crypto.

Two processes and the relay between them share the machine's cores. So a line of a tenth of the rate and ten times the
delay stands beside the fast one: it has as many bytes under way, which is what windows must hold, and takes a tenth
of the CPU.

    python -m benchmarks.bench_links
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.grpc_driver import run_pair_over_grpc
from benchmarks.support import Row, publish
from benchmarks.wide_area import relayed
from coordinator.simulate import Between, directly
from crypto.rounds import Rounds, receive, send

MESSAGE_BYTES = 4 << 20
FULL = 0.9
"""Of a line's rate: what is left is one round trip, and the window's growth in the first ones."""


def link_rows() -> list[Row]:
    """Payload per second of a stream from its first byte to the answer to its last."""
    return [
        _row("loopback", directly, 64, None),
        _row("1 Gbit/s, 50 ms", partial(relayed, round_trip_ms=50, mbit_s=1000), 128, FULL * 125),
        _row("100 Mbit/s, 500 ms", partial(relayed, round_trip_ms=500, mbit_s=100), 32, FULL * 12.5),
    ]


def _row(line: str, between: Between, messages: int, target: float | None, runs: int = 3) -> Row:
    seconds, cpu = [], {}
    for _ in range(runs):
        sides: dict[str, Any] = {
            "receiver": lambda drive: drive(_take(messages)),
            "sender": lambda drive: drive(_timed(messages)),
        }
        measured = run_pair_over_grpc(sides, between)
        seconds.append(measured["sender"].output)
        cpu = {name: each.cpu_s for name, each in measured.items()}
    megabytes = messages * MESSAGE_BYTES / 1e6
    return Row(
        f"one stream of {megabytes:.0f} MB, {line}",
        megabytes / statistics.median(seconds),
        "MB/s",
        target,
        "more",
        "the rate of the line",
        cpu,
        "two processes and the relay take CPU: " + ", ".join(f"{name} {s:.2f} s" for name, s in cpu.items()),
    )


def _timed(messages: int) -> Rounds[float]:
    """The sender: seconds from when both are there to the answer."""
    yield from receive("ready", "receiver")
    start = time.perf_counter()
    for _ in range(messages):
        yield from send("message", {"receiver": bytes(MESSAGE_BYTES)})
    yield from receive("done", "receiver")
    return time.perf_counter() - start


def _take(messages: int) -> Rounds[None]:
    yield from send("ready", {"sender": b""})
    for _ in range(messages):
        yield from receive("message", "sender")
    yield from send("done", {"sender": b""})


if __name__ == "__main__":
    publish("links", link_rows(), Path("out/bench_links.json"))
