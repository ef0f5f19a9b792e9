"""Table in a PostgreSQL server, read through ADBC at one snapshot.

A cell has the text that `COPY` to CSV writes: a boolean is `t` or `f`, a missing value is an empty cell. A cast to
text would differ from `COPY` in booleans and in the blanks of `char(n)`.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, unquote, unquote_plus
from weakref import finalize

from jobs.data.adbc import execute, rows_of
from jobs.data.arrow import pa, pc
from jobs.data.database import Database, missing_engine, quoted, unreadable

if TYPE_CHECKING:
    from adbc_driver_manager import AdbcConnection, AdbcDatabase

_SETTINGS = {
    "application_name": "jointcut",
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    # Rows in the same order at each read.
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
    "enable_indexonlyscan": "off",
}
"""Settings of the transaction, against other settings of the role or the server."""
_VERSION = "SELECT concat_ws(' ', pg_current_snapshot(), pg_postmaster_start_time(), current_database())"
_PART = r'(?:[^\W\d][\w$]*|"(?:[^"]|"")+")'
_TABLE = re.compile(rf"{_PART}(?:\.{_PART})?")
_BEFORE_WORDS = re.compile(
    r"^(?:[A-Z_]+: )?(?:\[libpq\] )?"
    r"(?:.*could not begin COPY: |Failed to prepare query: |Execution error \[PGRES_[A-Z_]+\]: )?"
)
_LOST = "the connection to the server was lost, and the rows of this moment with it: run the job again"
_ABOUT_LOSS = re.compile(
    "server closed the connection|no connection to the server|terminating connection|could not (?:send|receive) data"
    "|connection not open|SSL"
)
_OTHERS = 0o077
_MOST_BYTES = 1 << 16
_HIDDEN = "***"
_PASSWORD = re.compile(
    r"password\s*=\s*(?:'((?:\\.|[^'\\])*)'|((?:\\.|[^\s\\])+))", re.IGNORECASE | re.DOTALL
)
_QUERY_PASSWORD = re.compile(r"[?&](?:ssl)?password=([^&]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Dsn:
    """Place of a connection string. The string is read at each connection, and nowhere kept.

    env:   name of an environment variable.
    file:  file that its owner alone can read.
    """

    env: str | None
    file: Path | None

    def settings(self) -> dict[str, Any]:
        """Return the place as keys of a configuration."""
        return {"dsn_file": str(self.file.absolute())} if self.file is not None else {"dsn_env": self.env}

    def read(self, name: str) -> str:
        """Return the connection string. Raises DataError. name: the table, for the error."""
        text = (self._of_env(name) if self.file is None else _content(self.file, name)).strip()
        if not text or not text.isprintable():
            raise unreadable(name, f"{self._place}: {_WRITE}")
        return text

    @property
    def _place(self) -> str:
        return f"the environment variable {self.env}" if self.file is None else str(self.file)

    def _of_env(self, name: str) -> str:
        if (text := os.environ.get(str(self.env))) is None:
            raise unreadable(name, f"{self._place} (`dsn_env`) is not set: {_WRITE}")
        return text


_WRITE = "write the connection string there, on one line, such as postgresql://reader@host/database"


def _content(file: Path, name: str) -> str:
    """Return the text of a file that its owner alone can read. Raises DataError."""
    try:
        with file.open("rb") as opened:
            about = os.fstat(opened.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise unreadable(name, f"{file} (`dsn_file`) is no regular file")
            if about.st_mode & _OTHERS:
                raise unreadable(name, f"other users can read or write {file} (`dsn_file`): chmod 600 {file}")
            return opened.read(_MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        raise unreadable(name, f"{file} (`dsn_file`) is not there: {_WRITE}, and chmod 600 {file}") from None
    except OSError as error:
        raise unreadable(name, "", f"{file}: {os.strerror(error.errno or 0)}") from None


@dataclass(frozen=True)
class Postgres(Database):
    """Table or query of a PostgreSQL server.

    All reads of an object are in one read-only transaction, opened at the first read: rows that others write
    meanwhile are not seen, and the tables cannot be altered or truncated. The end of the object ends the transaction.
    Rows are not grouped in the server (D46).

    PostgreSQL promises no order of rows without ORDER BY. At one snapshot, and with the settings of the transaction,
    a scan of a table gives the rows in the order of the disk. A query with joins may be planned differently for other
    columns. Pass 2 needs the order of pass 1 only beside plain columns: there the rows are compared with pass 1
    (:mod:`jobs.publishing`), and a difference is refused.

    query:  a SELECT; None: the whole ``table``.
    table:  name as in SQL: lower case, unless in double quotes; possibly after a schema and a point.
    """

    dsn: Dsn = field(kw_only=True)
    query: str | None = field(default=None, kw_only=True)
    table: str | None = field(default=None, kw_only=True)

    KIND: ClassVar[str] = "postgres"

    def _asked(self) -> Mapping[str, Any]:
        asked = {"query": self.query} if self.query is not None else {"table": self.table}
        return {**self.dsn.settings(), **asked}

    def version(self) -> str:
        """Return a digest of the snapshot, the server's start, and the query.

        A write anywhere in the server's databases may change the snapshot. Equal snapshots of a running server see
        the same rows. The tables of other servers (foreign tables) are not covered.
        """
        with self._readable():
            ((snapshot,),) = (batch.column(0).to_pylist() for batch in self._read(_VERSION))
        return hashlib.sha256(f"{self._from} {snapshot}".encode()).hexdigest()

    def _names(self) -> list[str]:
        return self._all_names

    @cached_property
    def _all_names(self) -> list[str]:
        # The transaction locks the tables here against changes of form, and against TRUNCATE.
        with rows_of(self._connection, f"SELECT * FROM {self._from} LIMIT 0") as rows:  # noqa: S608  the owner's own query
            return list(rows.schema.names)

    @cached_property
    def _from(self) -> str:
        """The table as in a FROM clause."""
        if self.query is not None:
            # A query may end in a comment, which ends with the line.
            return f"(\n{self.query.rstrip().rstrip(';')}\n) AS t"
        if not _TABLE.fullmatch(str(self.table)):
            raise unreadable(
                self.name,
                f"table: {self.table!r} is no name of a table; write table or schema.table, and a name with upper "
                "case or other characters in double quotes: '\"My table\"'",
            )
        return ".".join(map(_as_quoted, re.findall(_PART, str(self.table))))

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        names = self._names()  # the tables are locked before rows are read
        assert set(columns) <= set(names)
        cells = ", ".join(f"concat({quoted(name)}) AS {quoted(f'c{i}')}" for i, name in enumerate(columns))
        for batch in self._read(f"SELECT {cells} FROM {self._from}"):  # noqa: S608  the owner's own query
            arrays = [pc.dictionary_encode(column) for column in batch.columns]
            for array in arrays:
                array.dictionary.validate(full=True)  # a database may hold text in no encoding
            yield pa.RecordBatch.from_arrays(arrays, list(columns))

    def _read(self, sql: str) -> Iterator[pa.RecordBatch]:
        with rows_of(self._connection, sql) as rows:
            yield from rows

    @cached_property
    def _connection(self) -> AdbcConnection:
        """Connection in the transaction of all reads. The transaction is never committed."""
        from adbc_driver_manager import AdbcConnection, Error
        from adbc_driver_postgresql import connect

        text = self.dsn.read(self.name)
        try:
            database = connect(text)
            connection = AdbcConnection(database)
        except Error as error:
            raise unreadable(self.name, _without_secrets(_about_connecting(str(error)), text)) from None
        finalize(self, _close, connection, database)
        execute(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for key, value in _SETTINGS.items():
            execute(connection, f"SET LOCAL {key} = '{value}'")
        return connection

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of the driver and the server into DataError, without the connection string.

        The driver's own error is no cause of the DataError: a traceback would quote the driver's error.
        """
        try:
            from adbc_driver_manager import Error
        except ImportError:
            raise missing_engine("adbc-driver-postgresql", "postgres") from None
        try:
            yield
        except (Error, OSError, pa.ArrowException) as error:
            said = _without_secrets(_about_reading(str(error)), self.dsn.read(self.name))
            raise unreadable(self.name, said) from None


def _close(connection: AdbcConnection, database: AdbcDatabase) -> None:
    connection.close()
    database.close()


def _as_quoted(part: str) -> str:
    """Return a part of a table's name in double quotes. The server's rule: letters of ASCII become lower case."""
    return part if part.startswith('"') else quoted(re.sub("[A-Z]", lambda found: found[0].lower(), part))


def _about_connecting(message: str) -> str:
    """Return the reason why no connection was made, without all that may be a part of the connection string.

    The library quotes the parts of a string that it takes for a host or an option: of a string with a wrong
    password's `@` or blank the parts are pieces of the password.
    """
    reasons = re.findall(r"failed: (.*)", message)
    if "connection to server" not in message or not reasons:
        return (
            "the connection string names no server that is found; write "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and a sign such as @ / : # or a blank in the password as "
            "%40 %2F %3A %23 %20"
        )
    return "no connection to the server: " + "; ".join(re.sub(r'"[^"]*"', '"..."', each) for each in reasons)


def _about_reading(message: str) -> str:
    """Return the server's words on a statement, without the statement.

    An excerpt of the statement stands above a line that points into the excerpt. Cut in the middle, a secret in the
    excerpt would not be recognized.
    """
    lines = _BEFORE_WORDS.sub("", message.partition("\n\nQuery was: ")[0]).splitlines()
    kept = [line for line, after in zip(lines, [*lines[1:], ""], strict=True) if after.strip() != "^"]
    said = " ".join(" ".join(kept).rstrip(" ^").split())
    return f"{_LOST} ({said})" if _ABOUT_LOSS.search(said) else said


def _without_secrets(message: str, dsn: str) -> str:
    """Return a message without the connection string and the passwords, in all spellings."""
    for secret in sorted(_secrets(dsn), key=len, reverse=True):
        message = message.replace(secret, _HIDDEN)
    return message


def _secrets(dsn: str) -> set[str]:
    """Return the connection string and the passwords in the string and in the environment, in all spellings."""
    found = {dsn, os.environ.get("PGPASSWORD", "")}
    scheme, _, rest = dsn.partition("://")
    if rest and re.fullmatch(r"[a-z]+", scheme):
        for user in {
            rest.rpartition("@")[0],
            rest.partition("@")[0],
            rest.partition("/")[0].rpartition("@")[0],
        }:
            found.add(user.partition(":")[2])
        found |= set(_QUERY_PASSWORD.findall(rest))
    for in_quotes, plain in _PASSWORD.findall(dsn):
        found |= {in_quotes, plain, re.sub(r"\\(.)", r"\1", in_quotes), re.sub(r"\\(.)", r"\1", plain)}
    plain_texts = found | set(map(unquote, found)) | set(map(unquote_plus, found))
    return (plain_texts | {quote(text, safe="") for text in plain_texts}) - {""}
