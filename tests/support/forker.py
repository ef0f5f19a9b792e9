"""Imports what our programs import, compiles the engine, and forks a process for each command of
`tests.support.forked`.

It is started by its path, as `jointcut/isolated.py` is, and imports nothing of the tests. A process that it forks
runs `jointcut/isolated.py` to the end of the interpreter, with its own arguments, environment, limits and streams.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import runpy
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 1 << 18


def import_all() -> None:
    """Import every command of both programs and all models, and compile. Nothing of it may start a thread."""
    sys.path.insert(0, str(ROOT))
    for program in ("party.cli.commands", "coordinator.cli"):
        for command in import_module(program).COMMANDS:
            command.command  # noqa: B018  imports it
    import_module("jobs.loading").import_models()
    arrow = import_module("jobs.data.arrow")
    for _ in (arrow.pa_csv.ReadOptions, arrow.pc.value_counts, arrow.pq.ParquetFile):  # imported at first use
        pass
    import_module("party.compiling")._compiled()  # else each daemon takes half a second of processor time
    assert len(os.listdir("/proc/self/task")) == 1, "a library has started threads"
    gc.collect()
    gc.freeze()


def next_command(control: socket.socket) -> dict[str, Any] | None:
    """Fork for each command that comes; return it in the process that runs it, None in the end where none does."""
    while True:
        asked, fds, _, _ = socket.recv_fds(control, MOST_BYTES, 3)
        if not asked:
            return None
        pid = _orphan()
        if pid is None:
            for place, fd in enumerate(fds):
                os.dup2(fd, place)
            found = json.loads(asked)
            assert isinstance(found, dict)
            _close(fds)
            control.close()
            return found
        _close(fds)
        control.sendall(str(pid).encode())


def _orphan() -> int | None:
    """Fork a process that has lost its parent; return its id, and None in the process itself.

    The process in between ends at once. The kernel gives the orphan to the test process, which has asked for orphans.
    """
    ours, theirs = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid == 0:
            _close((ours, theirs))
            return None
        os.write(theirs, str(pid).encode())
        os._exit(0)
    os.close(theirs)
    os.waitpid(between, 0)
    pid = int(os.read(ours, 32))
    os.close(ours)
    return pid


def _close(fds: tuple[int, ...] | list[int]) -> None:
    for fd in fds:
        os.close(fd)


def become(command: dict[str, Any]) -> None:
    """Give this process the environment, folder, limits and arguments of a command."""
    os.environ.clear()
    os.environ.update(command["environ"])
    os.chdir(command["folder"])
    if command["umask"] >= 0:
        os.umask(command["umask"])
    for number, limits in command["limits"]:
        if resource.getrlimit(number) != tuple(limits):
            resource.setrlimit(number, limits)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    sys.argv = command["arguments"]


def main() -> None:
    """Serve the socket that is standard input; run one command in each process that was forked."""
    with socket.socket(fileno=os.dup(0)) as control:
        import_all()
        command = next_command(control)
    if command is not None:
        become(command)
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
