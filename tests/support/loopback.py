"""Ports on this machine: every worker of a test run has its own range, so that none takes a port another chose.

A port that is free now may be taken before a daemon gets to it. The ranges end below the ports that systems hand out
by themselves. Programs that choose ports themselves get those from the system: tests/support/scheduling.py keeps all
tests of them in one worker.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
import zlib
from collections.abc import Iterable

HOST = "127.0.0.1"

_FIRST, _EACH, _WORKERS, _RUNS = 12_000, 200, 10, 10


def ports_of(worker: str, run: str) -> range:
    """The ports of a worker (gw0, gw1 and so on) in a run of some name; without workers, those of the first."""
    number = int((re.findall(r"\d+", worker) or ["0"])[0]) % _WORKERS
    first = _FIRST + _EACH * (_WORKERS * (zlib.crc32(run.encode()) % _RUNS) + number)
    return range(first, first + _EACH)


_NEXT = itertools.cycle(
    ports_of(
        os.environ.get("PYTEST_XDIST_WORKER", ""),
        os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid())),
    )
)


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """A port of ours for each name, that is free now."""
    return {name: next(port for port in itertools.islice(_NEXT, _EACH) if _is_free(port)) for name in names}


def _is_free(port: int) -> bool:
    """Return True if nobody listens; connections of the last minute that are over do not count, as for
    servers.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
