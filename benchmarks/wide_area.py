"""A wide-area link on one machine: a relay that delays and limits its traffic.

Each relayed connection has half of the round trip as delay and the whole rate in each direction, independent of the
opposite direction. The relay runs in a separate process and sees TLS records only.

    python -m benchmarks.wide_area ROUND_TRIP_MS MBIT_S TARGET_PORT...     prints one port per target
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_READ_BYTES = 1 << 14
_BUFFERED = 64
"""Reads under way in a direction, in addition to the reads held by rate and delay."""


class Link:
    """A direction of a connection."""

    def __init__(self, delay_s: float, bytes_per_s: float) -> None:
        self._delay_s = delay_s
        self._bytes_per_s = bytes_per_s
        self._free_at = 0.0
        held = 2 * delay_s * bytes_per_s / _READ_BYTES  # twice: not every read is full
        self._under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_BUFFERED + int(held))

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Deliver everything, late and no faster than the rate; then close the far end."""
        sender = asyncio.create_task(self._deliver(writer))
        loop = asyncio.get_running_loop()
        data = b"?"
        try:
            while data:
                data = await reader.read(_READ_BYTES)
                self._free_at = max(self._free_at, loop.time()) + len(data) / self._bytes_per_s
                await self._under_way.put((self._free_at + self._delay_s, data))
            await sender
        except ConnectionError:
            writer.close()
        finally:
            sender.cancel()

    async def _deliver(self, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, data = await self._under_way.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()


async def _serve(round_trip_s: float, bytes_per_s: float, targets: Sequence[int]) -> None:
    async def relay(target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        except ConnectionError:
            writer.close()
            return
        there, back = (Link(round_trip_s / 2, bytes_per_s) for _ in range(2))
        await asyncio.gather(there.carry(reader, far_writer), back.carry(far_reader, writer))

    for target in targets:

        async def accept(r: asyncio.StreamReader, w: asyncio.StreamWriter, target: int = target) -> None:
            await relay(target, r, w)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


@contextmanager
def relayed(targets: Sequence[int], round_trip_ms: float, mbit_s: float) -> Iterator[dict[int, int]]:
    """Run relays while the block runs; yield the relay's port for every target port."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.wide_area",
        str(round_trip_ms),
        str(mbit_s),
        *map(str, targets),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield {target: int(process.stdout.readline()) for target in targets}
        finally:
            process.terminate()


if __name__ == "__main__":
    asyncio.run(
        _serve(float(sys.argv[1]) / 1000, float(sys.argv[2]) * 1e6 / 8, [int(p) for p in sys.argv[3:]])
    )
