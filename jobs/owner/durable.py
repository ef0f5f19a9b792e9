"""Small SQLite file of an owner, changed in transactions that outlast a crash and a loss of power."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

_BUSY_S = 30
"""Longest wait for another process that uses the file."""
_PART_S = 0.1
"""Longest wait in SQLite, which no signal ends, before the transaction begins."""
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


def time_as_text(moment: datetime) -> str:
    """Return a moment in UTC. Texts of moments compare as the moments do."""
    return moment.astimezone(UTC).strftime(_TIME)


def time_of_text(text: str) -> datetime:
    """Read :func:`time_as_text` back."""
    return datetime.strptime(text, _TIME).replace(tzinfo=UTC)


@contextmanager
def transaction(
    path: Path, schema: str, failed: Callable[[sqlite3.Error], Exception]
) -> Iterator[sqlite3.Connection]:
    """Yield a connection in a transaction: no other writer, and on disk when the block ends.

    Nobody but the owner may read the file, which may hold keys.

    schema:  statements that make the tables where missing, with ``;`` between.
    failed:  makes the exception of an error of SQLite.
    """
    path.touch(mode=0o600)
    try:
        with closing(sqlite3.connect(path, timeout=_PART_S, isolation_level=None)) as connection:
            _begin(connection)
            for statement in schema.split(";"):
                connection.execute(statement)
            yield connection
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise failed(error) from error


def _begin(connection: sqlite3.Connection) -> None:
    """Begin a transaction. A signal can end the wait for another process."""
    deadline = time.monotonic() + _BUSY_S
    while True:
        try:
            # The removal of the journal commits. FULL leaves the removal to the next sync of the folder.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * _BUSY_S)}")
