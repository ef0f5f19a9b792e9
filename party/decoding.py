"""Bundles that others sent are opened in a process of their own, with a bound on memory and on time.

Nobody can stop a thread; a process that takes too long or too much is ended by the kernel, and the daemon goes on. So
a *reader* is forked from the daemon before that has read its configuration or started gRPC, and forks a process for
each bundle: that costs milliseconds, since all that has to be imported is there already, and no process is forked
from one with keys in its memory or with the threads of gRPC. What is forked and never executed anew has the daemon's
memory layout and hash seed: whoever takes a child over knows them. It says whether the bundle is in order. What the
daemon itself reads then is a bundle that was found so: JSON and job, and the taxonomies when policy and ledger have
allowed the job.
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


class _Forked:
    """A process that we forked, as far as one that was started by a command is used."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._waited(os.WNOHANG)

    def wait(self) -> None:
        """Wait for its end."""
        self._waited(0)

    def kill(self) -> None:
        """End it, if it still runs."""
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)

    def _waited(self, how: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self._pid, how)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code


class Reader:
    """The process that forks a process for each bundle; started again, by its command, if somebody ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._process: subprocess.Popen[bytes] | _Forked | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Fork it from this process, once, before all else: it must have read no secret, and started no thread that
        holds a lock. Of libraries it has none where :mod:`jointcut.isolated` started it; elsewhere Python may warn.

        So the first bundle need not wait for it, and what both import is imported once; nor does either look through
        that for garbage, which would copy the memory that they share.
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
        """End it; it would end with this process by itself."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._process = self._control = None

    def ask(self, encoded: bytes) -> bytes:
        """Return what a process of its own says of a bundle: see :func:`_verdict`. Empty if the process did
        not finish.
        """
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
                    start_new_session=True,  # what the terminal sends is for the daemon
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
    """The reader, started by its command."""
    with socket.socket(fileno=int(sys.argv[1])) as control:
        _serve(control)


def _become_reader(control: socket.socket) -> NoReturn:
    """Become the reader that :meth:`Reader.start` forks: a process as the command would have started it."""
    code = 1
    try:
        os.setsid()  # what the terminal sends is for the daemon
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.closerange(3, control.fileno())
        os.closerange(control.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        _serve(control)
        code = 0
    except BaseException as error:  # noqa: BLE001  the edge of this process, which nobody else reads
        with suppress(OSError):
            control.send(f"{type(error).__name__}: {error}".encode()[:_PIECE])
    finally:
        os._exit(code)


def _serve(control: socket.socket) -> None:
    """Fork for each connection that is handed over, until the daemon is gone.

    Every model is imported before, so that no bundle pays for it.
    """
    import_models()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
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
