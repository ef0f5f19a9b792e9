"""A read-only transaction of a PostgreSQL database, through ADBC: what is read in it is read of one snapshot.

What the server says of a query may quote values of its table, and the query itself: for the owner alone. What libpq
says of a connection that does not come about names host, user and database, never a password: for the owner's log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from anonymize.errors import DataError
from jobs.data.arrow import pa
from jobs.data.errors import library, unreadable
from jobs.data.postgres_address import Address

_BEGIN = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "extra_float_digits": "1",
    "lock_timeout": "1min",
    "statement_timeout": "4h",
    "idle_in_transaction_session_timeout": "0",
    "work_mem": "64MB",
}
"""How values are written, and how long what stands in the way is waited for. Between two passes the transaction is
idle for as long as a table takes to be anonymized. Memory is that of one sort, or of a table of different rows.
"""
_CUT = ("08", "57P", "53", "28", "3D")
"""SQLSTATE classes of connections that do not come about or do not last."""


class Session:
    """A connection in its transaction."""

    def __init__(self, driver: Any, connection: Any) -> None:
        self._driver = driver
        self._connection = connection

    def schema(self, sql: str) -> pa.Schema:
        """The columns that a query gives, which is parsed and not run. Raises DataError."""
        with self._told(), closing(self._connection.cursor()) as cursor:
            return cursor.adbc_execute_schema(sql)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Run a query; the rows that it gives. Raises DataError."""
        with self._told(), closing(self._connection.cursor()) as cursor:
            cursor.execute(sql)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def text(self, sql: str) -> str:
        """Run a query for the one text that it gives. Raises DataError."""
        (found,) = (value for batch in self.batches(sql) for value in batch.column(0).to_pylist())
        return str(found)

    def begin(self) -> None:
        """Begin the transaction. Raises DataError."""
        with self._told(), closing(self._connection.cursor()) as cursor:
            cursor.execute(_BEGIN)
        settings = (f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
        self.text(f"SELECT concat({', '.join(settings)})")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Nothing of the driver's error goes along with ours: its text has the query."""
        try:
            yield
        except (
            self._driver.Error,
            OSError,
            pa.ArrowException,
        ) as error:  # the last two in the midst of the rows
            state = getattr(error, "sqlstate", None)
            if state.startswith(_CUT) if state else not self._lasts():
                raise unreachable("the connection was cut", private=_said(error)) from None
            raise unreadable(_said(error)) from None

    def _lasts(self) -> bool:
        """Whether the server still answers, be it that our transaction has failed."""
        try:
            with closing(self._connection.cursor()) as cursor:
                cursor.adbc_execute_schema("SELECT 1")
        except self._driver.Error as error:
            return error.sqlstate is not None
        return True


def _said(error: Exception) -> str:
    """What the server said, without the query."""
    details = dict(getattr(error, "details", None) or [])
    kinds = ("PG_DIAG_MESSAGE_PRIMARY", "PG_DIAG_MESSAGE_DETAIL", "PG_DIAG_MESSAGE_HINT")
    found = [bytes(details[kind]).decode(errors="replace") for kind in kinds if kind in details]
    return "; ".join(found) or " ".join(str(error).partition("Query was:")[0].split())


def unreachable(cause: str, private: str = "") -> DataError:
    """``cause``: for the owner's log."""
    message = "the database that has the table cannot be read"
    return DataError("data-unreachable", message, cause=cause, private=private)


@contextmanager
def session(address: Address) -> Iterator[Session]:
    """A new transaction, which ends with the block. Raises DataError."""
    adbc = library("adbc_driver_postgresql.dbapi", "ADBC's driver for PostgreSQL", "postgres")
    try:
        connection = adbc.connect(address.conninfo(), autocommit=True)
    except adbc.Error as error:
        raise unreachable(" ".join(str(error).rpartition("Failed to connect: ")[2].split())) from None
    with closing(connection):
        made = Session(adbc, connection)
        made.begin()
        yield made
