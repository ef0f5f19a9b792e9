"""Processes that are killed at a statement of SQL."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from typing import Any


def killed_at(statement: int, work: Callable[[], object]) -> bool:
    """Do work in a forked process that is killed at a statement of SQL; return True if the work came to its end."""
    pid = os.fork()
    if pid == 0:  # pragma: no cover  the child ends by a signal, or at once
        left = statement

        def count(_: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        connect: Any = sqlite3.connect

        def traced(*given: Any, **named: Any) -> sqlite3.Connection:
            made: sqlite3.Connection = connect(*given, **named)
            made.set_trace_callback(count)
            return made

        sqlite3.connect = traced
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0
