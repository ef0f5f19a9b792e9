"""Count of a ledger's entries, in a file beside the ledger: a ledger with missing entries is no new budget.

An emptied, deleted or older ledger would allow spent budget again. The count holds the number of entries and
counted answers, each with a chain of digests. The deletion of both files is not detected (docs/security.md, N15).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from jobs.errors import BudgetError

_SUFFIX = ".count"
_ROWS = {
    "entries": "SELECT id, data, job_sha256, kind, epsilon, began FROM entries ORDER BY id LIMIT ?",
    "answers": "SELECT id, data, kind, asker, job_sha256, asked FROM answers ORDER BY id LIMIT ?",
}
"""Unchanging fields of rows, by table."""
_ALL = -1

Count: TypeAlias = "dict[str, tuple[int, str]]"
"""Number of rows of each table of a ledger, and a digest over the rows: SHA-256, hexadecimal."""
NONE: Mapping[str, tuple[int, str]] = dict.fromkeys(_ROWS, (0, ""))


def counted(connection: sqlite3.Connection, most: Mapping[str, tuple[int, str]] | None = None) -> Count:
    """Return the count of a ledger, of all data sets. most: of as many rows of each table as this count has."""
    return {table: _of_table(connection, table, _ALL if most is None else most[table][0]) for table in _ROWS}


def _of_table(connection: sqlite3.Connection, table: str, most: int) -> tuple[int, str]:
    n, chain = 0, ""
    for row in connection.execute(_ROWS[table], (most,)):
        n, chain = n + 1, hashlib.sha256(json.dumps([chain, *row]).encode()).hexdigest()
    return n, chain


def file_of(ledger: Path) -> Path:
    """Return the file with the count of a ledger."""
    return ledger.with_name(ledger.name + _SUFFIX)


def noted(ledger: Path) -> Count:
    """Return the count beside a ledger. Raises BudgetError for a file without a count."""
    try:
        content = file_of(ledger).read_bytes()
    except FileNotFoundError:
        return dict(NONE)
    try:
        fields = json.loads(content)
        return {table: (int(fields[table][0]), str(fields[table][1])) for table in _ROWS}
    except (ValueError, LookupError, TypeError) as error:
        raise BudgetError(
            "budget-ledger",
            "the count beside the privacy ledger is damaged",
            cause=str(file_of(ledger)),
            remedy=_REMEDY,
        ) from error


def check(ledger: Path, connection: sqlite3.Connection) -> None:
    """Raise BudgetError if a ledger lacks rows of its count, or has different rows in their place."""
    before = noted(ledger)
    if counted(connection, before) != before:
        raise lacking(ledger)


def check_absent(ledger: Path) -> None:
    """Raise BudgetError if there is no ledger but its count has rows."""
    if noted(ledger) != NONE:
        raise lacking(ledger)


@contextmanager
def locked(ledger: Path) -> Iterator[None]:
    """Keep other threads and processes from writing ledgers of the folder, or their counts, during the block.

    Raises RuntimeError inside another block of the same thread, which would wait for itself. Code that runs during
    garbage collection may run anywhere, and raises likewise.
    """
    ours = (threading.get_ident(), str(ledger.parent))
    if ours in _HELD:
        raise RuntimeError("this thread is writing a ledger of this folder already")
    folder = os.open(ledger.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        _HELD.add(ours)
        yield
    finally:
        _HELD.discard(ours)
        os.close(folder)


_HELD: set[tuple[int, str]] = set()
"""Threads inside a block, with the folder."""


def lacking(ledger: Path) -> BudgetError:
    return BudgetError(
        "budget-ledger",
        "the privacy ledger lacks runs that were charged: somebody emptied or deleted the ledger, or restored an "
        "older copy",
        cause=str(ledger),
        remedy=_REMEDY,
    )


_REMEDY = (
    "restore the ledger from a copy; or, to accept the present ledger, `party budget --accept` (`coordinator "
    "budget`)"
)


def note(ledger: Path, count: Count) -> None:
    """Write the count beside a ledger, on disk. Readers see the old or the new count."""
    file = file_of(ledger)
    new = file.with_name(f".{file.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        out.write(json.dumps(count))
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)
