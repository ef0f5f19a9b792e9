"""Our command lines run in this process: what they print, and how they end."""

from __future__ import annotations

import io
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coordinator.cli
import party.cli.commands
import party.cli.console
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN
from jobs.release.sums import SUMS


@dataclass(frozen=True)
class Ran:
    """End of a command."""

    code: int
    out: str
    err: str

    @property
    def problem(self) -> dict[str, Any]:
        """The error that `--format json` printed: the last line of standard error."""
        found = json.loads(self.err.strip().splitlines()[-1])
        assert "error" in found, self.err
        assert isinstance(found, dict)
        return found

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard error as JSON lines; anything else on it is an error."""
        return [json.loads(line) for line in self.err.splitlines()]


def invoke(program: str, *arguments: str | Path) -> Ran:
    """Run `party` or `coordinator` with these arguments, to its exit."""
    main = {"party": party.cli.commands.main, "coordinator": coordinator.cli.main}[program]
    return running(main, [program, *map(str, arguments)])


def running(main: Callable[[], None], arguments: list[str]) -> Ran:
    """Run what ends in SystemExit as the process with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with _undisturbed(arguments), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Ran(int(code), out.getvalue(), err.getvalue())


@contextmanager
def _undisturbed(arguments: list[str]) -> Iterator[None]:
    """Put back what a command sets for its process."""
    root, handler = logging.getLogger(), signal.getsignal(signal.SIGTERM)
    handlers, level = root.handlers[:], root.level
    before, sys.argv = sys.argv, arguments
    try:
        yield
    finally:
        sys.argv = before
        root.handlers[:] = handlers
        root.setLevel(level)
        signal.signal(signal.SIGTERM, handler)
        party.cli.console._settings.format = "text"


def listing(folder: Path) -> list[str]:
    """Everything in a folder, hidden things too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def simulated(parties: Sequence[str]) -> list[str]:
    """Everything in the folder of a simulation that released a table."""
    return [
        SUMS,
        TABLE,
        OWN,
        *(f"{OWN}/{party}.{kind}" for party in parties for kind in ("html", "json")),
        PAGE,
        REPORT,
    ]
