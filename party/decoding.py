"""Bundles that others sent are opened in a process of their own, with a bound on memory and on time.

Nobody can stop a thread; a process that takes too long or too much is ended by the kernel, and the daemon goes on. So
a *reader* is started before gRPC is, and forks a process for each bundle: that costs milliseconds, since all that has
to be imported is there already, and no process is forked from one with the threads of gRPC. It says whether the
bundle is in order. What the daemon itself reads then is a bundle that was found so: JSON and job, and the taxonomies
when policy and ledger have allowed the job.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from jobs.bundle import MAX_BUNDLE_BYTES
from jobs.errors import ConfigError, Problem, json_object, problem_of
from jobs.loading import decode_task, read_task
from jobs.task import Task
from jointcut import launcher

SECONDS = 15
MEMORY_BYTES = 1 << 30
"""Beyond what the reader has when it begins; on Linux, where the kernel keeps to it."""
AT_ONCE = 2
_START_S = 60
_PIECE = 1 << 16
_PAGES = Path("/proc/self/statm")


def open_foreign(encoded: bytes) -> Task:
    """Open a bundle that somebody else sent. Raises ConfigError for all that is wrong with it.

    Takes at most ``SECONDS``, apart from bundles that wait for their turn and a reader that has just been started.
    """
    answer = json_object(READER.ask(encoded))
    if answer is None:
        limits = f"{SECONDS} s and {MEMORY_BYTES >> 20} MiB"
        raise ConfigError("job-invalid", f"the bundle cannot be read within {limits}")
    if answer:
        error = ConfigError(answer["error"], answer["message"])
        error.problem = Problem.received(answer)
        raise error
    return read_task(encoded)


class Reader:
    """The process that forks a process for each bundle; started again if somebody ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start it, so that the first bundle need not wait for that."""
        with self._lock:
            self._running()

    def stop(self) -> None:
        """End it; it would end with this process by itself."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._process = self._control = None

    def ask(self, encoded: bytes) -> bytes:
        """What a process of its own says of a bundle: see :func:`_verdict`. Empty if it came to no end."""
        with self._turns:
            ours, theirs = socket.socketpair()
            with ours:
                with theirs:
                    self._hand_over(theirs)
                ours.settimeout(_START_S + SECONDS)
                try:
                    ours.sendall(encoded)
                    ours.shutdown(socket.SHUT_WR)
                    return _all_of(ours)
                except OSError:  # it ended before it had heard or said all
                    return b""

    def _hand_over(self, connection: socket.socket) -> None:
        with self._lock:
            try:
                socket.send_fds(self._running(), [b"!"], [connection.fileno()])
            except OSError:  # it has just ended
                self._process = None
                socket.send_fds(self._running(), [b"!"], [connection.fileno()])

    def _running(self) -> socket.socket:
        if self._process is None or self._control is None or self._process.poll() is not None:
            if self._control is not None:
                self._control.close()
            self._control, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [*launcher.command("reader"), str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # what the terminal sends is for the daemon
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process without threads may fork
                )
        return self._control


READER = Reader()
atexit.register(READER.stop)


def serve() -> None:
    """The reader: fork for each connection that is handed over, until the daemon is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(fileno=int(sys.argv[1])) as control:
        while handed := socket.recv_fds(control, 1, 1)[1]:
            with socket.socket(fileno=handed[0]) as connection:
                if os.fork() == 0:
                    control.close()
                    _answer(connection)
                    os._exit(0)


def _answer(connection: socket.socket) -> None:
    signal.setitimer(signal.ITIMER_REAL, SECONDS)  # nothing catches that signal: it ends the process
    _bound_memory()
    encoded = _all_of(connection)
    connection.sendall(_verdict(encoded))


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if _PAGES.exists():
        most = int(_PAGES.read_text().split()[0]) * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _verdict(encoded: bytes) -> bytes:
    """JSON: an empty object for a bundle that is in order, else what is wrong. Nothing if memory did not suffice."""
    try:
        decode_task(encoded)
    except MemoryError:
        return b""
    except Exception as error:  # noqa: BLE001  the edge of this process: every error becomes a problem, bugs included
        return problem_of(error).for_others().encode()
    return json.dumps({}).encode()


def _all_of(connection: socket.socket) -> bytes:
    """All that comes until the other end is closed, and no more than a bundle may have."""
    content = bytearray()
    while len(content) <= MAX_BUNDLE_BYTES and (piece := connection.recv(_PIECE)):
        content += piece
    return bytes(content)
