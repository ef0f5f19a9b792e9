"""Privacy ledger of a data set: all its releases, in a SQLite file that survives everything.

A job is *reserved* durably with its full ε before the first value under ε is opened. A charge stays, also after a
crash, unless nothing was opened: then the reservation is given back. (The alignment of a vertical job is not under
ε, and happens under the reservation.) The finished result is stored before anybody sees it. A retry of the same job
returns the stored result at no cost; any other repetition is charged again (semantics §8.4).

Where releases do not compose, *runs* are charged. The ledger notes the table of each run
(:mod:`jobs.owner.charge`), and the publications (:mod:`jobs.owner.composition`). Their results are kept likewise
(:mod:`jobs.owner.kept`).

Nothing is called released before its files are in place: until then the state is charged, not delivered.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from crypto.rng import Rng
from jobs.errors import BudgetError, PartyError
from jobs.owner import ledger_count
from jobs.owner.durable import transaction

log = logging.getLogger("party")

State = Literal["reserved", "opened", "finished", "released", "returned"]
"""State of an entry. reserved: charged, nothing opened yet. opened: charged for good. finished: its result is
kept. released: its files were delivered. returned: nothing was opened, not charged.
"""

STATE_WORDS: Mapping[State, str] = {
    "reserved": "reserved",
    "opened": "charged, not delivered",
    "finished": "charged, not delivered; the result is kept",
    "released": "released",
    "returned": "given back",
}
"""Names of states for the owner."""

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
);
CREATE TABLE IF NOT EXISTS lkc_runs (
    entry INTEGER NOT NULL,
    run BLOB NOT NULL,
    table_digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS published (
    entry INTEGER PRIMARY KEY,
    content BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS deliveries (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    delivered TEXT NOT NULL,
    release TEXT NOT NULL,
    agreed INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS askers (
    entry INTEGER PRIMARY KEY,
    asker TEXT NOT NULL,
    ended TEXT NOT NULL,
    ended_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS answers (
    id INTEGER PRIMARY KEY,
    data TEXT NOT NULL,
    kind TEXT NOT NULL,
    asker TEXT NOT NULL,
    job_sha256 TEXT NOT NULL,
    job TEXT NOT NULL,
    version TEXT NOT NULL,
    asked TEXT NOT NULL,
    came_to TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS places (
    data TEXT PRIMARY KEY,
    place TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS keys (
    data TEXT PRIMARY KEY,
    key BLOB NOT NULL
)
"""
_NOTE = "REPLACE INTO published (entry, content) VALUES (?, ?)"
_KEY_BYTES = 32
_LOST = "peer-lost"
"""End of a run whose daemon was killed: the word of the other parties' ledgers."""


Told: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Listener to charges. An error of the listener ends the run; the charge stands."""


def tell_nobody(charge: Mapping[str, Any]) -> None:
    return


@dataclass(frozen=True)
class Delivery:
    """Delivered files of a release.

    release:  the digest of the release (:mod:`jobs.release.sums`), hexadecimal.
    agreed:   True if we checked the files and agreed; else the digest is the coordinator's word.
    """

    delivered: str
    release: str
    agreed: bool


@dataclass(frozen=True)
class Entry:
    """Release, or attempted release.

    kind:      the name of the job's model.
    asker:     the coordinator of the job; empty for the owner's own job.
    ended:     the id of the error that ended the run, if noted.
    ended_at:  the party of the error, as far as known. A lost party is named by the party that misses it.
    """

    number: int
    job: str
    job_sha256: str
    kind: str
    epsilon: Fraction
    state: State
    began: str
    deliveries: tuple[Delivery, ...] = ()
    asker: str = ""
    ended: str = ""
    ended_at: str = ""

    @property
    def stands(self) -> bool:
        """True if the run is charged: delivered or not, its openings happened, or still may."""
        return self.state != "returned"

    @property
    def charged(self) -> Fraction:
        return self.epsilon if self.stands else Fraction(0)


@dataclass(frozen=True)
class ChargedJob:
    """Job in the ledger.

    kind:    the name of its model.
    digest:  the job hash, 32 bytes.
    """

    kind: str
    name: str
    digest: bytes = field(repr=False)
    epsilon: Fraction = Fraction(0)


@dataclass(frozen=True)
class ChargedRun:
    """Run in the ledger, charged with its table.

    run:           the first charged run: 16 bytes, the same at all its parties.
    table_digest:  keyed digest of our table as read by the job (:meth:`PrivacyLedger.key`).
    published:     the public part of the run, written by :mod:`jobs.owner.composition`; empty: nothing is
                noted.
    """

    job: ChargedJob
    run: bytes = field(repr=False)
    table_digest: bytes = field(repr=False)
    published: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class History:
    """Ledger of a data set at a moment.

    entries:    oldest first.
    published:  notes on runs (:class:`ChargedRun`), by number of the entry.
    """

    entries: Sequence[Entry] = ()
    published: Mapping[int, bytes] = field(default_factory=dict, repr=False)


class PrivacyLedger:
    """Ledger of a data set."""

    def __init__(
        self,
        path: Path,
        data: str,
        asker: str = "",
        remedy: str = "",
        place: str = "",
        told: Told = tell_nobody,
    ) -> None:
        """``data``: the name of the data set; a ledger file may hold several. ``asker``: see :meth:`asked_by`.

        remedy:  advice on a job that exceeds the limit; empty: the advice of the catalogue of errors.
        place:   digest of the place of the rows, if only the name identifies the data set.
        told:    hears of each charge, once the charge is on disk.
        """
        self._path = path
        self.data = data
        self.asker = asker
        self._remedy = remedy
        self._place = place
        self.told = told

    def asked_by(self, asker: str, told: Told = tell_nobody) -> PrivacyLedger:
        """Return the same ledger, with a coordinator to note at further charges. told: hears of each charge."""
        return PrivacyLedger(self._path, self.data, asker, self._remedy, self._place, told)

    def accept(self) -> None:
        """Take the ledger as it is, on the owner's word, whatever the count beside the ledger says."""
        try:
            with ledger_count.locked(self._path), self._connected() as connection:
                ledger_count.note(self._path, ledger_count.counted(connection))
        except OSError as error:
            raise self._failed(error) from error

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction: no other writer, and on disk when the block ends.

        Raises BudgetError for a ledger with missing entries (:mod:`jobs.owner.ledger_count`), and for a folder that
        cannot be written.
        """
        try:
            with ledger_count.locked(self._path):
                before = ledger_count.noted(self._path)
                with self._connected() as connection:
                    ledger_count.check(self._path, connection)
                    yield connection
                    after = ledger_count.counted(connection)
                if after != before:  # a crash here leaves a count with fewer rows than the ledger: allowed
                    ledger_count.note(self._path, after)
        except OSError as error:
            raise self._failed(error) from error

    def _connected(self) -> AbstractContextManager[sqlite3.Connection]:
        return transaction(self._path, _SCHEMA, self._failed)

    def _failed(self, error: sqlite3.Error | OSError) -> BudgetError:
        return BudgetError(
            "budget-ledger",
            "the privacy ledger cannot be read or written",
            cause=f"{self._path}: {error}",
        )

    @property
    def exists(self) -> bool:
        """True if there is a ledger file, of this or another data set. Raises BudgetError if the file is gone."""
        if self._path.exists():
            return True
        ledger_count.check_absent(self._path)
        return False

    def entries(self) -> list[Entry]:
        """Return all entries of the data set, oldest first."""
        if not self.exists:
            return []
        with self.connected() as connection:
            return self._entries(connection)

    def _entries(self, connection: sqlite3.Connection) -> list[Entry]:
        rows = connection.execute(
            "SELECT id, job, job_sha256, kind, epsilon, state, began, asker, ended, ended_at FROM entries "
            "LEFT JOIN askers ON askers.entry = entries.id WHERE data = ? ORDER BY id",
            (self.data,),
        )
        return [
            Entry(
                n,
                job,
                sha,
                kind,
                Fraction(eps),
                state,
                began,
                _deliveries(connection, n),
                *map(_known, of_run),
            )
            for n, job, sha, kind, eps, state, began, *of_run in rows.fetchall()
        ]

    def spent(self) -> Fraction:
        """Return the sum of all charges."""
        return spent_in(self.entries())

    def check(self, job: ChargedJob, limit: Fraction) -> None:
        """Raise BudgetError if the job would exceed the limit on the sum of all charges."""
        self._check(self.entries(), job, limit)

    def _check(self, entries: Sequence[Entry], job: ChargedJob, limit: Fraction) -> None:
        spent = spent_in(entries)
        if spent + job.epsilon > limit:
            raise BudgetError(
                "budget-exceeded",
                f"the job asks for an epsilon of {_text(job.epsilon)}, more than is left for this data set",
                remedy=self._remedy,
                private=f"{_text(spent)} of {_text(limit)} is spent",
            )

    def reserve(self, job: ChargedJob, limit: Fraction | None) -> int:
        """Charge a job its ε; return the number of the entry.

        Raises BudgetError if the sum of all charges would exceed the limit; None: no limit.
        """
        with self.connected() as connection:
            if limit is not None:
                self._check(self._entries(connection), job, limit)
            number = self._insert(connection, job, "reserved")
        self.told({"kind": job.kind, "entry": number, "epsilon": str(job.epsilon)})
        return number

    def key(self, rng: Rng) -> bytes:
        """Return the key of the data set's table digests, made at the first call.

        The key never leaves the ledger's file: with the key, anybody who sees a digest could try tables until a
        table fits.
        """
        with self.connected() as connection:
            found = connection.execute("SELECT key FROM keys WHERE data = ?", (self.data,)).fetchone()
            if found is not None:
                return bytes(found[0])
            key = rng.bytes(_KEY_BYTES)
            connection.execute("INSERT INTO keys (data, key) VALUES (?, ?)", (self.data, key))
            return key

    def kept_run(self, digest: bytes, table_digest: bytes) -> tuple[int, bytes] | None:
        """Return number and result of the last run of a job on the same table with a kept result, or None."""
        if not self.exists:
            return None
        with self.connected() as connection:
            found = connection.execute(
                "SELECT entries.id, entries.result FROM entries JOIN lkc_runs ON lkc_runs.entry = entries.id "
                "WHERE data = ? AND job_sha256 = ? AND table_digest = ? AND result IS NOT NULL "
                "AND state IN ('finished', 'released') ORDER BY entries.id DESC LIMIT 1",
                (self.data, digest.hex(), table_digest),
            ).fetchone()
        return None if found is None else (int(found[0]), bytes(found[1]))

    def history(self) -> History:
        """Return all entries, with the notes on runs."""
        if not self.exists:
            return History()
        with self.connected() as connection:
            return self._history(connection)

    def _history(self, connection: sqlite3.Connection) -> History:
        noted = connection.execute(
            "SELECT entry, content FROM published JOIN entries ON entries.id = entry WHERE data = ?",
            (self.data,),
        )
        return History(self._entries(connection), {number: bytes(content) for number, content in noted})

    def note_published(self, number: int, content: bytes) -> None:
        """Note, on disk, the next publications of a charged run."""
        with self.connected() as connection:
            connection.execute(_NOTE, (number, content))

    def charge_run(self, run: ChargedRun, check: Callable[[History], None]) -> int:
        """Charge a run; return the number of the entry. Until :meth:`open` the charge may be given back.

        check:  receives the whole ledger, and raises if no further run is allowed. Nobody charges in between.

        Raises the errors of ``check``, and PartyError for the number of an earlier run. With a repeated number,
        tables from different runs could be taken for tables of the same run.
        """
        with self.connected() as connection:
            check(self._history(connection))
            if connection.execute("SELECT 1 FROM lkc_runs WHERE run = ?", (run.run,)).fetchone() is not None:
                raise PartyError("peer-protocol", "the coordinator gave the run the number of an earlier one")
            number = self._insert(connection, run.job, "reserved")
            if run.published:
                connection.execute(_NOTE, (number, run.published))
            connection.execute(
                "INSERT INTO lkc_runs (entry, run, table_digest) VALUES (?, ?, ?)",
                (number, run.run, run.table_digest),
            )
        self.told({"kind": run.job.kind, "entry": number})
        return number

    def deliver(self, number: int, release: bytes, *, agreed: bool = True) -> None:
        """Note that the files of a release are in place: the entry is released, whatever error ended an earlier
        run.

        release:  its digest, see :class:`Delivery`.
        """
        with self.connected() as connection:
            connection.execute("UPDATE entries SET state = 'released' WHERE id = ?", (number,))
            connection.execute("UPDATE askers SET ended = '', ended_at = '' WHERE entry = ?", (number,))
            connection.execute(
                "INSERT INTO deliveries (entry, delivered, release, agreed) VALUES (?, ?, ?, ?)",
                (number, now(), release.hex(), agreed),
            )

    def _insert(self, connection: sqlite3.Connection, job: ChargedJob, state: State) -> int:
        cursor = connection.execute(
            "INSERT INTO entries (data, job_sha256, job, kind, epsilon, state, began) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self.data, job.digest.hex(), job.name, job.kind, str(job.epsilon), state, now()),
        )
        assert cursor.lastrowid is not None
        connection.execute(
            "INSERT INTO askers (entry, asker, ended, ended_at) VALUES (?, ?, '', '')",
            (cursor.lastrowid, self.asker),
        )
        self._note_place(connection)
        return cursor.lastrowid

    def _note_place(self, connection: sqlite3.Connection) -> None:
        """Note the place of the rows, and warn the owner if the last run had another place."""
        if not self._place:
            return
        before = connection.execute("SELECT place FROM places WHERE data = ?", (self.data,)).fetchone()
        connection.execute("REPLACE INTO places (data, place) VALUES (?, ?)", (self.data, self._place))
        if before not in (None, (self._place,)):
            log.warning(
                "the path or query of %s is not that of the last run; by its name it is the same data set, with "
                "the same budget",
                self.data,
            )

    def end(self, number: int, error_id: str, party: str) -> None:
        """Note the problem that ended a charged run, and the party of the problem, as far as known.

        An entry with a release stays: the problem is of a run that would have given the release again.
        """
        with self.connected() as connection:
            connection.execute(
                "UPDATE askers SET ended = ?, ended_at = ? WHERE entry = ? "
                "AND entry NOT IN (SELECT id FROM entries WHERE state = 'released')",
                (error_id, party, number),
            )

    def give_up(self, party: str) -> int:
        """Note that runs without an end were lost with their daemon, at ``party``; return the number of their charges
        and questions.

        For a daemon at its start, when no run of the ledger goes on. Charges stay.
        """
        if not self.exists:
            return 0
        with self.connected() as connection:
            lost = connection.execute(
                "UPDATE askers SET ended = ?, ended_at = ? WHERE ended = '' AND asker != '' "
                "AND entry IN (SELECT id FROM entries WHERE state IN ('reserved', 'opened', 'finished'))",
                (_LOST, party),
            )
            asked = connection.execute(
                "UPDATE answers SET came_to = ? WHERE came_to = '' AND kind = 'question'", (_LOST,)
            )
        return lost.rowcount + asked.rowcount

    def open(self, number: int) -> None:
        """Make the charge final before the first value is opened."""
        self._move(number, "reserved", "opened")

    def finish(self, number: int, result: bytes) -> None:
        """Keep the result before anybody sees the result."""
        self._move(number, "opened", "finished", result)

    def give_back(self, number: int) -> None:
        """Undo a reservation, if still a reservation: nothing was opened, and nothing will be."""
        with self.connected() as connection:
            given = connection.execute(
                "UPDATE entries SET state = 'returned' WHERE id = ? AND state = 'reserved'", (number,)
            )
        if given.rowcount:
            self.told({"entry": number, "returned": True})

    def _move(self, number: int, before: State, after: State, result: bytes | None = None) -> None:
        with self.connected() as connection:
            moved = connection.execute(
                "UPDATE entries SET state = ?, result = ? WHERE id = ? AND state = ?",
                (after, result, number, before),
            )
            if moved.rowcount != 1:
                raise BudgetError("budget-ledger", f"entry {number} of the privacy ledger is not {before}")

    def stored(self, digest: bytes) -> bytes | None:
        """Return the result of the last finished run of a job, or None."""
        found = self.stored_entry(digest)
        return None if found is None else found[1]

    def stored_entry(self, digest: bytes) -> tuple[int, bytes] | None:
        """Return number and result of the last finished run of a job, delivered or not."""
        if not self.exists:
            return None
        with self.connected() as connection:
            row = connection.execute(
                "SELECT id, result FROM entries WHERE data = ? AND job_sha256 = ? AND result IS NOT NULL "
                "AND state IN ('finished', 'released') ORDER BY id DESC LIMIT 1",
                (self.data, digest.hex()),
            ).fetchone()
        return None if row is None else (int(row[0]), bytes(row[1]))


def now() -> str:
    """Return the time for the ledger: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def charges(entries: Sequence[Entry]) -> tuple[Fraction, ...]:
    """Return the ε of each run with a charge, in order."""
    return tuple(entry.charged for entry in entries if entry.charged)


def _known(text: str | None) -> str:
    """Return a noted text; empty in a ledger of an earlier version without the note."""
    return text or ""


def _deliveries(connection: sqlite3.Connection, number: int) -> tuple[Delivery, ...]:
    rows = connection.execute(
        "SELECT delivered, release, agreed FROM deliveries WHERE entry = ? ORDER BY id", (number,)
    )
    return tuple(Delivery(delivered, release, bool(agreed)) for delivered, release, agreed in rows)


def spent_in(entries: Sequence[Entry]) -> Fraction:
    """Return the sum of all charges."""
    return sum(charges(entries), Fraction(0))


def _text(epsilon: Fraction) -> str:
    return f"{float(epsilon):g}"
