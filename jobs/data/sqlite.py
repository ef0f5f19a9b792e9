"""Table of a SQLite file, copied into DuckDB at one snapshot.

DuckDB's own reader of SQLite would come from the network. A driver of ADBC reads the rows instead, by one SELECT over
a read-only connection, so that the rows are of one moment. DuckDB holds the copy within its memory limit, and beyond
the limit in its temporary folder.

A cell has the text of SQLite's `CAST(... AS TEXT)`, and an empty text for NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anonymize.errors import DataError
from jobs.data.adbc import rows_of
from jobs.data.arrow import pa, pc
from jobs.data.database import missing_engine, quoted, unreadable
from jobs.data.duckdb_files import Reading, numbered
from jobs.data.table_file import missing

if TYPE_CHECKING:
    import duckdb
    from adbc_driver_manager import AdbcConnection

_MAGIC = b"SQLite format 3\0"
_COPY = "jointcut copy"
_BATCH = {"adbc.sqlite.query.batch_rows": str(1 << 16)}
_TABLES = (
    "SELECT name, type FROM sqlite_schema "
    "WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
)
_MOST_TOLD = 10
_BEFORE_WORDS = re.compile(r"^(?:[A-Z_]+: )?(?:\[SQLite\] )?(?:[Ff]ailed to [^:]*: )?")
_WHAT_TO_WRITE = "write the name of the table beside the path: `duckdb: {path: FILE, table: NAME}`"
_NO_TEXT = "store the text as UTF-8, or name a view under `table` that leaves the column out"
_REMEDIES = (
    ("malformed|not a database", "give a whole copy of the file, such as a backup: this file is damaged"),
    (
        "unable to open|readonly",
        "let a program that may write the file finish the unfinished write or the write-ahead log: "
        "sqlite3 FILE 'PRAGMA journal_mode=DELETE'; or give a copy that VACUUM INTO made",
    ),
    ("locked", "run the job again when nobody writes the table"),
)
"""Remedies by the words of SQLite on an error."""


def is_sqlite(file: Path) -> bool:
    """Return True if a file begins like a SQLite file. Raises OSError.

    The file is not open elsewhere in this process: its close would end the lock of a connection (POSIX).
    """
    with file.open("rb") as opened:
        return opened.read(len(_MAGIC)) == _MAGIC


def sqlite_at(name: str, files: Sequence[Path], table: str | None) -> SqliteTable:
    """Return the table of a SQLite file. Raises DataError for several files. files: the first is SQLite."""
    first, *others = files
    if others:
        raise unreadable(
            name,
            f"{first} is a SQLite file, and {others[0]} fits `path`, too",
            remedy="write the path of a single SQLite file",
        )
    return SqliteTable(name, first, table)


class SqliteTable(Reading):
    """Table or view of a SQLite file.

    Columns of the copy are named by number. DuckDB would take names that differ in case alone for one.

    table:  None: the only table of the file.
    """

    def __init__(self, name: str, file: Path, table: str | None) -> None:
        super().__init__(name)
        self._file, self._table = file, table
        self._blobs: dict[str, int] = {}
        self._n_rows: int | None = None

    @property
    def watched(self) -> Sequence[Path]:
        """The file, and the log with writes that are not yet in the file. Each reader makes an empty log."""
        file = self._file.resolve()
        log = file.with_name(f"{file.name}-wal")
        return [self._file, log] if log.is_file() and log.stat().st_size else [self._file]

    @property
    def names(self) -> list[str]:
        return self._form[1]

    @cached_property
    def _form(self) -> tuple[str, list[str]]:
        """Name of the table, and the names of the columns."""
        with self._connection() as connection:
            table = self._found(_read(connection, _TABLES))
            with rows_of(connection, f"SELECT * FROM {quoted(table)} LIMIT 0") as rows:  # noqa: S608 (quoted)
                return table, list(rows.schema.names)

    def _found(self, entries: Sequence[dict[str, str]]) -> str:
        """Return the name of the table among the tables and views of the file. Raises DataError."""
        tables = [entry["name"] for entry in entries if entry["type"] == "table"]
        if self._table is None and len(tables) == 1:
            return tables[0]
        names = [entry["name"] for entry in entries]
        if self._table in names:
            return str(self._table)
        more = f" and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else ""
        has = f"{self._file} has {', '.join(names[:_MOST_TOLD]) or 'no table'}{more}"
        if self._table is None:
            raise unreadable(self._name, f"{has}: which is the table of this job?", remedy=_WHAT_TO_WRITE)
        raise unreadable(
            self._name, f"there is no table {self._table}: {has}", remedy="correct `table` beside the path"
        )

    @property
    def sql(self) -> str:
        return f"{quoted(_COPY)} AS source"

    def column(self, name: str) -> str:
        if name in self._blobs:
            raise unreadable(
                self._name,
                f"row {self._blobs[name]} of the column {name} is a BLOB, and only texts and numbers can be read",
                remedy="leave the column out of the job, or name a view under `table` that gives the column as text",
            )
        return numbered(self.names.index(name))

    def n_rows_about(self) -> int | None:
        return self._n_rows

    def fill(self, connection: duckdb.DuckDBPyConnection) -> None:
        columns = ", ".join(f"{quoted(numbered(i))} VARCHAR" for i in range(len(self.names)))
        connection.execute(f"CREATE TABLE {quoted(_COPY)} ({columns})").fetchall()
        n_rows = -1  # the first row is none of the table
        with self._connection() as reader, rows_of(reader, self._select, _BATCH) as rows:
            for batch in rows:
                for name, column in zip(self.names, batch.columns, strict=True):
                    self._check(name, column, n_rows)
                kept = batch.slice(max(0, -n_rows))
                connection.from_arrow(pa.Table.from_batches([kept])).insert_into(_COPY)
                n_rows += batch.num_rows
        self._n_rows = n_rows

    @property
    def _select(self) -> str:
        """SQL of the rows as text, with NULL for a BLOB, behind a row of empty texts.

        The driver takes the types of columns from the first rows: a column that begins with NULL would have no text.
        """
        table, names = self._form
        first = ", ".join(f"'' AS {quoted(numbered(i))}" for i in range(len(names)))
        cells = ", ".join(map(_cell, names))
        # An index could give the rows in another order: the number of a row would not be its place.
        return f"SELECT {first} UNION ALL SELECT {cells} FROM {quoted(table)} AS t NOT INDEXED"  # noqa: S608 (quoted)

    def _check(self, name: str, column: pa.Array, n_before: int) -> None:
        """Keep the first row with a BLOB. Raises DataError for text in no encoding. n_before: rows before."""
        if column.null_count and name not in self._blobs:
            self._blobs[name] = n_before + int(pc.index(column.is_null(), True).as_py()) + 1
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise unreadable(
                self._name, f"{self._file}: the column {name} has a text that is no UTF-8", remedy=_NO_TEXT
            ) from None

    @contextmanager
    def _connection(self) -> Iterator[AdbcConnection]:
        """Yield a read-only connection. Turns errors of the driver into DataError.

        The driver's own error is no cause of the DataError: the error quotes the statement.
        """
        try:
            from adbc_driver_manager import AdbcConnection, Error
            from adbc_driver_sqlite import connect
        except ImportError:
            raise missing_engine("adbc-driver-sqlite", "duckdb") from None
        try:
            with connect(f"{self._file.as_uri()}?mode=ro") as database, AdbcConnection(database) as made:
                yield made
        except (Error, OSError, pa.ArrowException) as error:
            raise self._refused(str(error)) from None

    def _refused(self, message: str) -> DataError:
        """Return the error for a message of the driver, without the statement."""
        if not self._file.is_file():
            return missing(f"{self._name}: {self._file} is not there")
        said = _BEFORE_WORDS.sub("", message.partition("\nquery: ")[0])
        remedy = next((remedy for words, remedy in _REMEDIES if re.search(words, said)), "")
        return unreadable(self._name, f"{self._file}: {said}", remedy=remedy)


def _cell(name: str) -> str:
    """Return SQL of a cell as text, with NULL for a BLOB."""
    # With the table's name before it, a name in double quotes is never taken for a text.
    cell = f"t.{quoted(name)}"
    return f"CASE typeof({cell}) WHEN 'blob' THEN NULL ELSE coalesce(CAST({cell} AS TEXT), '') END"


def _read(connection: AdbcConnection, sql: str) -> list[dict[str, str]]:
    """Return the rows of a short SELECT."""
    with rows_of(connection, sql) as rows:
        found: list[dict[str, str]] = rows.read_all().to_pylist()
    return found
