"""Beginnings of the audit, in the store of approvals: whoever deletes the audit leaves its beginning there.

The SHA-256 of the first line is kept when the daemon starts, after its line `serve`. The line comes first: a daemon
killed in between has a line whose beginning is not kept yet, and the next start keeps it. So a kept beginning always
was the beginning of an audit, and another beginning is no accident of a kill.
"""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path

from jobs.errors import PartyError
from jobs.owner.durable import transaction
from party.owner.approvals import APPROVALS

_SCHEMA = "CREATE TABLE IF NOT EXISTS beginnings (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL)"


class Beginnings:
    """Store of the beginnings of an audit. The last one counts; earlier ones stay."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / APPROVALS

    def last(self) -> str:
        """Return the kept beginning, hexadecimal; empty if none is kept."""
        if not self._path.exists():
            return ""
        with self._changed() as connection:
            return _last(connection)

    def keep(self, beginning: str) -> str:
        """Keep a beginning if none is kept, durably; return the beginning that counts."""
        with self._changed() as connection:
            kept = _last(connection)
            if not kept:
                _add(connection, beginning)
            return kept or beginning

    def accept(self, beginning: str) -> None:
        """Let a beginning count from now on, on the owner's word."""
        with self._changed() as connection:
            _add(connection, beginning)

    def _changed(self) -> AbstractContextManager[sqlite3.Connection]:
        return transaction(self._path, _SCHEMA, self._failed)

    def _failed(self, error: sqlite3.Error) -> PartyError:
        return PartyError(
            "io-failed", "the beginning of the audit cannot be read or kept", cause=f"{self._path}: {error}"
        )


def _last(connection: sqlite3.Connection) -> str:
    found = connection.execute("SELECT sha256 FROM beginnings ORDER BY id DESC LIMIT 1").fetchone()
    return "" if found is None else str(found[0])


def _add(connection: sqlite3.Connection, beginning: str) -> None:
    connection.execute("INSERT INTO beginnings (sha256) VALUES (?)", (beginning,))
