"""The privacy ledger of a data set: what was released from it, in a SQLite file that survives everything.

A DP job is charged its full ε before the first value that ε covers is opened, durably. What was charged stays
charged, unless nothing was opened: then the reservation is given back. (What the alignment of a vertical job tells
is not covered, and told under the reservation.) A crash in between leaves it
charged. The finished result is kept, and stored before anybody sees it: a retry of the same job returns it
and costs nothing; any other repetition is charged again (dp-notes, section 2). Releases of LKC jobs
are listed, too: they do not compose, so the policy may limit their number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Literal

from party.errors import BudgetError

State = Literal["reserved", "opened", "finished", "released", "returned"]
"""reserved: charged, nothing opened yet. opened: charged for good. finished: with its result. released: an LKC
release. returned: nothing was opened, not charged."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY,
    data TEXT NOT NULL,
    job_sha256 TEXT NOT NULL,
    job TEXT NOT NULL,
    kind TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    state TEXT NOT NULL,
    began TEXT NOT NULL,
    result BLOB
)
"""
_BUSY_S = 30


@dataclass(frozen=True)
class Entry:
    """One release, or an attempt at one."""

    number: int
    job: str
    job_sha256: str
    kind: Literal["dp", "lkc"]
    epsilon: Fraction
    state: State
    began: str

    @property
    def charged(self) -> Fraction:
        return Fraction(0) if self.state == "returned" else self.epsilon


@dataclass(frozen=True)
class Job:
    """What the ledger notes of a job."""

    name: str
    digest: bytes = field(repr=False)
    epsilon: Fraction


def data_set(table: Path) -> str:
    """The name of a table's data set in a ledger, where it has no other: its path behind all links."""
    return str(table.resolve())


class Budget:
    """The ledger of one data set."""

    def __init__(self, path: Path, data: str) -> None:
        """``data`` names the data set, see :func:`data_set`; a ledger file may hold several."""
        self._path = path
        self._data = data

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction that excludes every other writer and is on disk when the block ends."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)) as connection:
                # FULL leaves the removal of the journal, which commits, to the next sync of the folder.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_SCHEMA)
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise BudgetError(
                "budget-ledger",
                "the privacy ledger cannot be read or written",
                private=f"{self._path}: {error}",
            ) from error

    @property
    def exists(self) -> bool:
        """Whether there is a ledger file, of this or another data set."""
        return self._path.exists()

    def entries(self) -> list[Entry]:
        """All entries of the data set, oldest first."""
        if not self.exists:
            return []
        with self._connected() as connection:
            return self._entries(connection)

    def _entries(self, connection: sqlite3.Connection) -> list[Entry]:
        rows = connection.execute(
            "SELECT id, job, job_sha256, kind, epsilon, state, began FROM entries WHERE data = ? ORDER BY id",
            (self._data,),
        )
        return [Entry(n, job, sha, kind, Fraction(eps), *rest) for n, job, sha, kind, eps, *rest in rows]

    def spent(self) -> Fraction:
        """The sum of what is charged."""
        return _spent(self.entries())

    def check(self, job: Job, limit: Fraction) -> None:
        """Raise BudgetError if the job would exceed the limit on the sum of all charges."""
        _check(_spent(self.entries()), job, limit)

    def reserve(self, job: Job, limit: Fraction) -> int:
        """Charge a job its ε; return the number of the entry. Raises BudgetError if it exceeds the limit."""
        with self._connected() as connection:
            _check(_spent(self._entries(connection)), job, limit)
            return self._insert(connection, job, "dp", "reserved")

    def note_lkc(self, name: str, digest: bytes) -> None:
        """List the release of an LKC job."""
        with self._connected() as connection:
            self._insert(connection, Job(name, digest, Fraction(0)), "lkc", "released")

    def _insert(self, connection: sqlite3.Connection, job: Job, kind: str, state: State) -> int:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        cursor = connection.execute(
            "INSERT INTO entries (data, job_sha256, job, kind, epsilon, state, began) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self._data, job.digest.hex(), job.name, kind, str(job.epsilon), state, now),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def open(self, number: int) -> None:
        """The first value is about to be opened: the charge is final."""
        self._move(number, "reserved", "opened")

    def finish(self, number: int, result: bytes) -> None:
        """Keep the result; nobody has seen it yet."""
        self._move(number, "opened", "finished", result)

    def give_back(self, number: int) -> None:
        """Nothing was opened, and nothing will be: undo the reservation, if it is still one."""
        with self._connected() as connection:
            connection.execute(
                "UPDATE entries SET state = 'returned' WHERE id = ? AND state = 'reserved'", (number,)
            )

    def _move(self, number: int, before: State, after: State, result: bytes | None = None) -> None:
        with self._connected() as connection:
            moved = connection.execute(
                "UPDATE entries SET state = ?, result = ? WHERE id = ? AND state = ?",
                (after, result, number, before),
            )
            if moved.rowcount != 1:
                raise BudgetError("budget-ledger", f"entry {number} of the privacy ledger is not {before}")

    def stored(self, digest: bytes) -> bytes | None:
        """The result of the last finished run of a job, None if there is none."""
        if not self.exists:
            return None
        with self._connected() as connection:
            row = connection.execute(
                "SELECT result FROM entries WHERE data = ? AND job_sha256 = ? AND state = 'finished' "
                "ORDER BY id DESC LIMIT 1",
                (self._data, digest.hex()),
            ).fetchone()
        return None if row is None else bytes(row[0])


def _spent(entries: list[Entry]) -> Fraction:
    return sum((entry.charged for entry in entries), Fraction(0))


def _check(spent: Fraction, job: Job, limit: Fraction) -> None:
    if spent + job.epsilon > limit:
        raise BudgetError(
            "budget-exceeded",
            f"the job asks for an epsilon of {_text(job.epsilon)}, more than is left for this data set",
            private=f"{_text(spent)} of {_text(limit)} is spent",
        )


def _text(epsilon: Fraction) -> str:
    return f"{float(epsilon):g}"
