"""Reader of foreign bundles, in a separate process with a bound on memory and time.

Nobody can stop a thread; the kernel ends a process that takes too long or too much, and the daemon goes on. So the
daemon forks a *reader* before reading its configuration or starting gRPC. The reader forks a process for each
bundle, in milliseconds, since all modules are already imported. No process is forked from a process with keys in
memory or with the threads of gRPC. A forked process that never executes a new program has the daemon's memory
layout and hash seed: an attacker who takes over a child knows both. The child only says if the bundle is in order.
The daemon itself then reads a bundle in order: JSON and job, and the taxonomies once policy and ledger have allowed
the job.
"""

from __future__ import annotations

import atexit
import gc
import json
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from jobs.errors import ConfigError, Problem, json_object, problem_of
from jobs.file.bundle import MAX_BUNDLE_BYTES
from jobs.loading import decode_task, import_models, read_task
from jobs.task import Task
from jointcut import launcher

log = logging.getLogger("party")

SECONDS = 15
MEMORY_BYTES = 1 << 30
"""Memory limit beyond the reader's initial memory; on Linux, where the kernel enforces the limit."""
AT_ONCE = 2
_START_S = 60
_PIECE = 1 << 16
_PAGES = Path("/proc/self/statm")


def open_foreign(encoded: bytes) -> Task:
    """Open a bundle of a foreign sender. Raises ConfigError for every error in the bundle.

    Takes at most ``SECONDS``, apart from the wait for a turn and for a newly started reader.
    """
    answer = json_object(READER.ask(encoded))
    if answer is None:
        limits = f"{SECONDS} s and {MEMORY_BYTES >> 20} MiB"
        raise ConfigError(
            "job-invalid",
            f"the bundle cannot be read within {limits}",
            remedy="take fewer columns or smaller taxonomies",
        )
    if answer:
        error = ConfigError(answer["error"], answer["message"])
        error.problem = Problem.received(answer)
        raise error
    return read_task(encoded)


class _Forked:
    """Forked process, with the used part of the interface of a process started by a command."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._waited(os.WNOHANG)

    def wait(self) -> None:
        """Wait for the end of the process."""
        self._waited(0)

    def kill(self) -> None:
        """End the process, if still running."""
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)

    def _waited(self, how: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self._pid, how)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code


class Reader:
    """Process that forks a process for each bundle; restarted by its command after a foreign kill."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._process: subprocess.Popen[bytes] | _Forked | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Fork the reader from this process, once, before all else: without a secret read, and without a thread
        that holds a lock.

        If :mod:`jointcut.isolated` started the process, no library has a thread yet; otherwise Python may warn. The
        first bundle then need not wait, and common modules are imported once. Neither process collects garbage
        among the common modules, which would copy the shared memory.
        """
        gc.freeze()
        self._control, theirs = socket.socketpair()
        with theirs:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # of idle threads of libraries, from 3.12 on
                pid = os.fork()
            if pid == 0:
                self._control.close()
                _become_reader(theirs)
        self._process = _Forked(pid)

    def stop(self) -> None:
        """End the reader, which would end with this process anyway."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._process = self._control = None

    def ask(self, encoded: bytes) -> bytes:
        """Return a child process's verdict on a bundle: see :func:`_verdict`. Empty if the process did not finish."""
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
                except OSError:  # the process ended before the exchange was complete
                    return b""

    def _hand_over(self, connection: socket.socket) -> None:
        with self._lock:
            try:
                socket.send_fds(self._running(), [b"!"], [connection.fileno()])
            except OSError:  # the process has just ended
                self._has_ended()
                self._process = None
                socket.send_fds(self._running(), [b"!"], [connection.fileno()])

    def _running(self) -> socket.socket:
        if self._process is None or self._control is None or self._has_ended():
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
                    start_new_session=True,  # signals of the terminal are for the daemon
                )
        return self._control

    def _has_ended(self) -> bool:
        """Return True if the reader is gone, and tell why."""
        assert self._process is not None
        assert self._control is not None
        code = self._process.poll()
        if code is None:
            return False
        try:
            said = self._control.recv(_PIECE, socket.MSG_DONTWAIT).decode()
        except OSError:
            said = ""
        log.error(
            "the process that reads bundles has ended: %s; a new process is started", said or f"code {code}"
        )
        return True


READER = Reader()
atexit.register(READER.stop)


def serve() -> None:
    """Run the reader, started by its command."""
    with socket.socket(fileno=int(sys.argv[1])) as control:
        _serve(control)


def _become_reader(control: socket.socket) -> NoReturn:
    """Become the reader forked by :meth:`Reader.start`: a process as if started by the command."""
    code = 1
    try:
        os.setsid()  # signals of the terminal are for the daemon
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.closerange(3, control.fileno())
        os.closerange(control.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        _serve(control)
        code = 0
    except BaseException as error:  # noqa: BLE001  the edge of the process, without a reader
        with suppress(OSError):
            control.send(f"{type(error).__name__}: {error}".encode()[:_PIECE])
    finally:
        os._exit(code)


def _serve(control: socket.socket) -> None:
    """Fork for each connection handed over, until the daemon is gone.

    Every model is imported before, so that no bundle pays for an import.
    """
    import_models()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    while handed := socket.recv_fds(control, 1, 1)[1]:
        with socket.socket(fileno=handed[0]) as connection:
            if os.fork() == 0:
                _answer_alone(control, connection)


def _answer_alone(control: socket.socket, connection: socket.socket) -> NoReturn:
    try:
        control.close()
        _answer(connection)
    finally:
        os._exit(0)


def _answer(connection: socket.socket) -> None:
    signal.setitimer(signal.ITIMER_REAL, SECONDS)  # nothing catches the signal: the process ends
    _bound_memory()
    encoded = _all_of(connection)
    connection.sendall(_verdict(encoded))


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if _PAGES.exists():
        most = int(_PAGES.read_text().split()[0]) * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _verdict(encoded: bytes) -> bytes:
    """Return JSON: an empty object for a bundle in order, else the error. Empty if memory did not suffice."""
    try:
        decode_task(encoded)
    except MemoryError:
        return b""
    except Exception as error:  # noqa: BLE001  the edge of the process: every error becomes a problem, bugs included
        return problem_of(error).for_others().encode()
    return json.dumps({}).encode()


def _all_of(connection: socket.socket) -> bytes:
    """Return all bytes until the other end is closed, but no more than a bundle may have."""
    content = bytearray()
    while len(content) <= MAX_BUNDLE_BYTES and (piece := connection.recv(_PIECE)):
        content += piece
    return bytes(content)
