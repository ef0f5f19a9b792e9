"""Transactions in the small files of an owner."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from jobs.owner import durable


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_signal_is_heard_while_another_process_uses_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    """The handler of the signal frees the file. SQLite alone would wait to the end, and fail."""
    monkeypatch.setattr(durable, "_BUSY_S", 2)
    path = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"BEGIN {lock}")
        before = signal.signal(signal.SIGUSR1, lambda *_: other.execute("ROLLBACK"))
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        try:
            with durable.transaction(path, "CREATE TABLE charges (id)", lambda error: error) as connection:
                connection.execute("INSERT INTO charges VALUES (1)")
        finally:
            timer.join()
            signal.signal(signal.SIGUSR1, before)
        assert other.execute("SELECT * FROM charges").fetchall() == [(1,)]
