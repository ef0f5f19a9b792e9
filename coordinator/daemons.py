"""Daemons of a simulation: one process that imports, and forks a daemon per party (`party.cli.daemons`)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from jobs.errors import TransportError, json_object
from jointcut.launcher import command
from party.cli.daemons import LOG, STOP_S

_START_S = 30.0
_END_S = STOP_S + 5.0
_PIECE = 1 << 12


class Daemons:
    """Daemons of this machine. Leaving the block ends all daemons."""

    def __init__(self) -> None:
        """Start the process that forks. It imports beside this process."""
        self.process = subprocess.Popen(
            command("daemons"), bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._asking: IO[bytes] = self.process.stdin
        self._saying: IO[bytes] = self.process.stdout
        self._said = b""

    def __enter__(self) -> Daemons:
        return self

    def __exit__(self, *_: object) -> None:
        self._asking.close()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._saying.close()

    def start(self, configs: Mapping[str, Path]) -> None:
        """Start a daemon per party, by configuration; return when all daemons listen.

        Raises TransportError for a daemon that ends, or takes too long.
        """
        with suppress(BrokenPipeError):  # the process has ended: it says nothing more, which is told below
            self._asking.write(b"".join(os.fsencode(config) + b"\n" for config in configs.values()))
        missing, until = dict(configs), time.monotonic() + _START_S
        while missing:
            said = self._next(until)
            if said.get("event") == "listening":
                del missing[said["name"]]
                continue
            name = next(
                (party for party in missing if str(missing[party]) == said.get("config")), min(missing)
            )
            message = f"the daemon of {name} did not start: {_last_words(missing[name])}"
            raise TransportError("peer-unreachable", message, party=name)

    def _next(self, until: float) -> dict[str, Any]:
        """Return the next line of the daemons; empty if none comes in time."""
        while b"\n" not in self._said:
            ready, _, _ = select.select([self._saying], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._saying.fileno(), _PIECE) if ready else b""
            if not piece:
                return {}
            self._said += piece
        line, _, self._said = self._said.partition(b"\n")
        said = json.loads(line)
        assert isinstance(said, dict)
        return said


def _last_words(config: Path) -> str:
    log = config.with_name(LOG)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    said = [json_object(line) for line in lines if line.startswith("{")]
    last = said[-1] if said else None
    return str((last or {}).get("message", "see its log"))
