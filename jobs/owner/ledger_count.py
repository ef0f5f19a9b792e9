"""The count of a ledger's entries, in a file of its own beside it: a ledger that lacks entries is no new budget.

A ledger that was emptied, deleted or replaced by an older copy would allow again what was spent. The count says how
many entries and counted answers there were, with a chain of digests over each. The two files lie side by side: who
deletes both is not found out (docs/security.md, N15).
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
"""By table what never changes in its rows."""
_ALL = -1

Count: TypeAlias = "dict[str, tuple[int, str]]"
"""By table of a ledger how many rows it has, and a digest over them: SHA-256, hexadecimal."""
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
    """Return the count that stands beside a ledger. Raises BudgetError for a file that has none."""
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
    """Raise BudgetError if a ledger lacks rows that its count tells of, or has others in their place."""
    before = noted(ledger)
    if counted(connection, before) != before:
        raise lacking(ledger)


def check_absent(ledger: Path) -> None:
    """Raise BudgetError if there is no ledger, and its count tells of rows."""
    if noted(ledger) != NONE:
        raise lacking(ledger)


@contextmanager
def locked(ledger: Path) -> Iterator[None]:
    """Let no other thread or process write ledgers of this folder, or their counts, while the block runs.

    Raises RuntimeError inside another block of this thread: it would wait for itself. So does code that Python runs
    where it collects garbage, which may be anywhere.
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
"""The threads that are in a block, with the folder."""


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
    """Write the count beside a ledger, on disk; others see the old one or the new."""
    file = file_of(ledger)
    new = file.with_name(f".{file.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        out.write(json.dumps(count))
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)
