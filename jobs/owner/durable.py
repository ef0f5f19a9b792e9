"""Small SQLite file of an owner, changed in transactions that outlast a crash and a loss of power."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

_BUSY_S = 30
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
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as connection:
            # The removal of the journal commits. FULL leaves the removal to the next sync of the folder.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            for statement in schema.split(";"):
                connection.execute(statement)
            yield connection
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise failed(error) from error
