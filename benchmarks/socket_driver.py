"""Two processes, a socket between them: the plainest driver of :mod:`crypto.rounds` that shows real overlap.

Messages are framed by lengths. Each process sends from a separate thread with a bounded queue. So computing,
sending and receiving overlap, and memory stays bounded.
"""

from __future__ import annotations

import multiprocessing
import queue
import resource
import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crypto.rounds import Rounds

QUEUED_MESSAGES = 24
WAIT_S = 600
_FRAME = struct.Struct("<II")
_BUFFER_BYTES = 1 << 22

Start = Callable[..., Rounds[Any]]
"""Maker of a party's generator from its arguments, inside the process of the party."""


@dataclass(frozen=True)
class Measured:
    """Measures of a process: output, wall and CPU seconds, bytes sent, peak memory."""

    output: Any
    wall_s: float
    cpu_s: float
    bytes_sent: int
    peak_bytes: int


class Link:
    """An end of a connection to the only peer."""

    def __init__(self, peer: str, sock: socket.socket) -> None:
        self.peer = peer
        self.bytes_sent = 0
        self._sock = sock
        self._queue: queue.Queue[tuple[bytes, bytes] | None] = queue.Queue(QUEUED_MESSAGES)
        self._sender = threading.Thread(target=self._send_all, daemon=True)
        self._sender.start()

    def drive(self, generator: Rounds[Any]) -> Any:
        """Run a party's protocol to its end."""
        try:
            current = next(generator)
            while True:
                for payload in current.outgoing.values():
                    self.bytes_sent += len(payload)
                    self._queue.put((current.step.encode(), payload))
                inbox = {peer: self._receive(current.step) for peer in current.wait_for}
                current = generator.send(inbox)
        except StopIteration as stop:
            return stop.value

    def close(self) -> None:
        self._queue.put(None)
        self._sender.join()
        self._sock.close()

    def _send_all(self) -> None:
        while (item := self._queue.get()) is not None:
            step, payload = item
            self._sock.sendall(_FRAME.pack(len(step), len(payload)) + step)
            self._sock.sendall(payload)

    def _receive(self, step: str) -> bytes:
        step_bytes, payload_bytes = _FRAME.unpack(self._exactly(_FRAME.size))
        found = self._exactly(step_bytes).decode()
        assert found == step, f"a message of step {found} where {step} is awaited"
        return self._exactly(payload_bytes)

    def _exactly(self, count: int) -> bytes:
        received = self._sock.recv(count, socket.MSG_WAITALL) if count else b""
        assert len(received) == count, "the peer is gone"
        return received


def run_pair(sides: Mapping[str, Callable[[Callable[[Rounds[Any]], Any]], Any]]) -> dict[str, Measured]:
    """Run two parties in two forked processes.

    sides:  for each party a function that is given ``drive`` and calls ``drive`` at least once on its
            generators.
            The return value of the function is its output.
    """
    (first, second), ends = sides, socket.socketpair()
    for end in ends:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    return forked(_child, [(first, second, ends[0], sides[first]), (second, first, ends[1], sides[second])])


def forked(child: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> dict[str, Measured]:
    """Run a function in a process for each of its arguments; the function puts (name, measures) into a queue.

    Raises RuntimeError with the traceback if a process puts a traceback there instead.
    """
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[tuple[str, Measured | str]] = context.Queue()
    processes = [context.Process(target=child, args=(*each, results), daemon=True) for each in arguments]
    for process in processes:
        process.start()
    measured = {}
    for _ in processes:
        name, result = results.get(timeout=WAIT_S)
        if isinstance(result, str):
            raise RuntimeError(f"{name} failed:\n{result}")
        measured[name] = result
    for process in processes:
        process.join()
    return measured


def _child(name: str, peer: str, end: socket.socket, side: Any, results: Any) -> None:
    link = Link(peer, end)
    start, cpu = time.perf_counter(), time.process_time()
    try:
        output = side(link.drive)
    except BaseException:  # any exception goes to the parent, which waits for a result of each process
        results.put((name, traceback.format_exc()))
        raise
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    link.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    results.put((name, Measured(output, wall_s, cpu_s, link.bytes_sent, peak)))
