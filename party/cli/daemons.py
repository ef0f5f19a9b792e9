"""Daemons forked from one process that has imported what a daemon imports: the parties of a simulation.

A daemon that starts an interpreter of its own takes a second of processor time; a forked daemon takes hardly any.
Forked daemons have one memory layout and one hash seed, so an attacker who takes over one daemon knows both of the
others. In a simulation one user has all tables anyway. A real party runs `party serve`.

Standard input: a line per daemon, with the path of the configuration. The end of standard input ends all daemons,
also where the process that started them was killed. Standard output: what the daemons print, and a line
{"event": "ended", "config": PATH} for a daemon that ended. A daemon logs into the file ``LOG`` beside its
configuration.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from party.cli.commands import main as party

LOG = "log"
STOP_S = 5.0
"""Seconds for the daemons to stop, before they are killed."""
_POLL_S = 0.01


def main() -> None:
    """Fork a daemon per line of standard input; end the daemons at the end of standard input.

    Returns to no caller in a daemon: the daemon runs `party serve` to the end of its process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the daemons are told otherwise
    import_all()
    running: dict[int, str] = {}
    signal.signal(signal.SIGCHLD, lambda *_: _tell_ended(running))
    while line := sys.stdin.buffer.readline():
        config = os.fsdecode(line.rstrip(b"\n"))
        pid = _fork(running, config)
        if pid == 0:
            _become_a_daemon(Path(config))
            return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _stop(running)


def import_all() -> None:
    """Import what daemons import. No library may start a thread, as a forked process would lack the thread."""
    from jobs.loading import import_models
    from party.cli import serve  # noqa: F401  imported for the processes to come

    import_models()
    gc.collect()
    gc.freeze()


def _fork(running: dict[int, str], config: str) -> int:
    """Fork; note the process before its end can be told."""
    held = {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    pid = os.fork()
    if pid:
        running[pid] = config
    signal.pthread_sigmask(signal.SIG_UNBLOCK, held)
    return pid


def _become_a_daemon(config: Path) -> None:
    """Run `party serve` with standard output of this process, and a log of its own."""
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(config.with_name(LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for opened, place in ((nothing, 0), (log, 2)):
        os.dup2(opened, place)
        os.close(opened)
    sys.argv = ["party", "serve", "--config", str(config), "--format", "json"]
    party()


def _tell_ended(running: dict[int, str]) -> None:
    """Print a line for each daemon that ended."""
    for config in _ended(running):
        os.write(1, json.dumps({"event": "ended", "config": config}).encode() + b"\n")


def _ended(running: dict[int, str]) -> list[str]:
    """Return the configurations of daemons that ended, and forget these daemons."""
    found = []
    while running:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        found.append(running.pop(pid))
    return found


def _stop(running: dict[int, str]) -> None:
    """Ask the daemons to stop; kill a daemon that has not stopped after ``STOP_S``."""
    _signal_all(running, signal.SIGTERM)
    until = time.monotonic() + STOP_S
    while running and time.monotonic() < until:
        if not _ended(running):
            time.sleep(_POLL_S)
    _signal_all(running, signal.SIGKILL)


def _signal_all(running: dict[int, str], number: signal.Signals) -> None:
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
