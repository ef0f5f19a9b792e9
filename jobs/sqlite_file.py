"""A SQLite file that survives everything: one writer at a time, and what a transaction wrote is on disk after it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_BUSY_S = 30


@contextmanager
def transaction(path: Path, schema: str) -> Iterator[sqlite3.Connection]:
    """A connection in a transaction that excludes every other writer and is on disk when the block ends.

    Nothing of it is kept if the block raises. The file is made, for its owner alone, if there is none.
    schema:  statements that make the tables where they are missing. Raises sqlite3.Error.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as connection:
        # FULL leaves the removal of the journal, which commits, to the next sync of the folder.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("BEGIN IMMEDIATE")
        for statement in schema.split(";"):
            connection.execute(statement)
        yield connection
        connection.execute("COMMIT")
