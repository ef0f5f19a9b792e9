"""Starts our programs as processes that have imported everything: `tests.support.forker` forks them.

Starting an interpreter and importing takes a second of processor time, forking takes hardly any. A forked process is
a child of the test process like any other, with its own streams, signals, limits and exit code. Three things differ:
the modules of all commands are imported already, the engine is compiled already, and all forked processes share one
hash seed. So tests of the start itself, of the interpreter or of the launcher execute their commands: ``EXECUTED``.
So do all processes that are no children of the test process, such as the commands of a script, and all that are
started unusually.
"""

from __future__ import annotations

import atexit
import ctypes
import inspect
import json
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from jointcut import launcher

EXECUTED = ("jointcut/", "deploy/", "test_installed.py", "test_places.py")
"""Tests of how a program is started: each command starts its own interpreter there."""

_PROGRAM = Path(__file__).with_name("forker.py")
_COMMANDS = [launcher.command(program) for program in ("party", "coordinator", "daemons")]
_BEFORE = len(_COMMANDS[0]) - 2
"""The interpreter and its options come before the file that it runs, and the program's name."""
_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
_ENDS = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_USUAL = {
    "executable": None,
    "preexec_fn": None,
    "close_fds": True,
    "pass_fds": (),
    "shell": False,
    "restore_signals": True,
    "gid": None,
    "gids": None,
    "uid": None,
    "start_new_session": False,
    "process_group": -1,
}
"""Arguments that `subprocess.Popen` hands on where only streams, folder, environment and umask were asked
for.
"""


class Forker:
    """The process that forks for this test process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*_COMMANDS[0][:_BEFORE], str(_PROGRAM)],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                env=dict(os.environ) | _NO_THREADS,
            )
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the process that forks. Processes that it forked go on."""
        self._control.close()
        self._process.wait()

    def fork(self, command: Mapping[str, Any], streams: Sequence[int]) -> int:
        """Run a command in a child of this process; return the id of the child."""
        with self._lock, _adopting():
            socket.send_fds(self._control, [json.dumps(command).encode()], streams)
            said = self._control.recv(32)
        assert said, "the process that forks has ended"
        return int(said)


@contextmanager
def _adopting() -> Iterator[None]:
    """Become the parent of every descendant of this process that loses its own parent meanwhile (Linux)."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@cache
def forker() -> Forker:
    """Return the one process that forks, started when it is needed first."""
    return Forker()


class Popen(subprocess.Popen[Any]):
    """Starts a process like `subprocess.Popen`, but forks where the command is one of our programs."""

    def _execute_child(self, *given: Any, **named: Any) -> None:
        execute = super()._execute_child  # type: ignore[misc]
        asked = inspect.signature(execute).bind(*given, **named).arguments
        if not _is_ours(asked):
            execute(*given, **named)
            return
        ends = {name: asked[name] for name in _ENDS}
        environ = os.environ if asked["env"] is None else asked["env"]
        command = {
            "arguments": [os.fsdecode(word) for word in asked["args"][_BEFORE:]],
            "environ": {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()},
            "folder": os.path.abspath(os.fsdecode(asked["cwd"] or os.curdir)),
            "umask": asked["umask"],
            "limits": [(limit, resource.getrlimit(limit)) for limit in _LIMITS],
        }
        own = (ends["p2cread"], ends["c2pwrite"], ends["errwrite"])
        self.pid = forker().fork(command, [i if end == -1 else end for i, end in enumerate(own)])
        self._child_created = True
        self._close_pipe_fds(**ends)  # type: ignore[attr-defined]


def _is_ours(asked: Mapping[str, Any]) -> bool:
    """Return True if a command is one of `jointcut.launcher` and asks for nothing unusual."""
    words = asked["args"]
    return (
        sys.platform == "linux"
        and isinstance(words, Sequence)
        and list(words[: _BEFORE + 2]) in _COMMANDS
        and all(asked[name] == value for name, value in _USUAL.items())
    )
