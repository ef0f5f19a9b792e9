"""Tables that DuckDB reads: many files, folders with parts, files larger than memory, SQLite.

DuckDB reads and counts, this program codes. Each cell is the text of `CAST(... AS VARCHAR)`, and an empty text for
NULL. Rows come in the order of the files, sorted by path, and within a file as they stand; the order is the same in
each pass. Beyond the memory limit DuckDB writes parts of the table into a temporary folder of mode 0700, which goes
away with the connection.
"""

from __future__ import annotations

import csv
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from jobs.data.arrow import pa
from jobs.data.database import missing_engine, quoted, unreadable
from jobs.data.duckdb_files import Reading, files_at, numbered, reading_of
from jobs.data.engine import Engine, Numbered, kept_as_sql, keys_as_sql
from jobs.data.sqlite import is_sqlite, sqlite_at
from jobs.data.table_file import missing

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS, _KEYS_ROWS = 1 << 17, 1 << 20
_MOST_SAID = 500
_MORE_SPACE = "raise `memory_limit`, free space, or set TMPDIR to a folder with more free space"
_NO_FETCHING = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
"""Settings against code from the network: DuckDB would fetch a reader for a file that it does not know."""


@dataclass(frozen=True)
class DuckDb(Engine):
    """Table in files that DuckDB reads.

    path:          a file, a pattern of files, or a folder.
    memory_limit:  memory of the engine, as `2GB`.
    table:         table or view of a SQLite file; None: the only table, or files of other kinds.
    """

    path: Path = Path()
    memory_limit: str = "2GB"
    table: str | None = None

    KIND: ClassVar[str] = "duckdb"

    def _asked(self) -> Mapping[str, Any]:
        return {"path": str(self._place), **({} if self.table is None else {"table": self.table})}

    def _limits(self) -> Mapping[str, Any]:
        return {"memory_limit": self.memory_limit}

    @property
    def _place(self) -> Path:
        """Absolute path or pattern. A pattern has no links to resolve."""
        return Path(os.path.abspath(self.path))

    def version(self) -> str:
        """Return name, size and time of writing of the files."""
        with self._readable():
            found = [path.stat() for path in self._reading.watched]
        return "-".join(f"{each.st_dev}.{each.st_ino}.{each.st_size}.{each.st_mtime_ns}" for each in found)

    @cached_property
    def _reading(self) -> Reading:
        """Form of the table for the engine. Raises DataError."""
        files = files_at(self._place, self.name)
        if is_sqlite(files[0]):
            return sqlite_at(self.name, files, self.table)
        if self.table is not None:
            raise unreadable(
                self.name,
                f"`table: {self.table}` is for a SQLite file, and {files[0]} does not begin like one",
                remedy="leave `table` out for Parquet and CSV files; give a plain copy of an encrypted SQLite file",
            )
        return reading_of(self.name, self._place, files)

    def _names(self) -> list[str]:
        return self._reading.names

    def _cell(self, column: str) -> str:
        """Return SQL for a cell as text, with an empty text for NULL."""
        return f"coalesce(CAST(source.{quoted(self._reading.column(column))} AS VARCHAR), '')"

    def _texts(self, columns: Sequence[str]) -> str:
        """Return SQL for columns as text. Every name is quoted."""
        return ", ".join(f"{self._cell(each)} AS {quoted(numbered(i))}" for i, each in enumerate(columns))

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream rows one by one, in the order of the files."""
        with self._cursor() as cursor:
            query = f"SELECT {self._texts(columns)} FROM {self._reading.sql}"  # noqa: S608 (quoted)
            for batch in cursor.sql(query).to_arrow_reader(_BATCH_ROWS):
                texts = [each.dictionary_encode() for each in batch.columns]
                yield pa.RecordBatch.from_arrays(texts, list(columns))

    def _distinct(self, columns: Sequence[str]) -> Sequence[pa.Array] | None:
        with self._cursor() as cursor:
            lists = ", ".join(f"list(DISTINCT {self._cell(each)})" for each in columns)
            try:
                found = cursor.sql(f"SELECT {lists} FROM {self._reading.sql}").to_arrow_table()  # noqa: S608 (quoted)
            except _engine().OutOfMemoryException:
                return None
        return [pa.concat_arrays([part.flatten() for part in each.chunks]) for each in found.columns]

    def _counted(self, columns: Sequence[Numbered]) -> Iterator[tuple[Sequence[pa.Array], pa.Array]]:
        sums = keys_as_sql(columns)
        with self._joined(columns) as (cursor, joined):
            asked = ", ".join([*sums, "count(*)"])
            answer = cursor.sql(f"SELECT {asked} FROM {joined} GROUP BY {', '.join(sums)}")  # noqa: S608 (quoted)
            for batch in answer.to_arrow_reader(_KEYS_ROWS):
                *found, counts = batch.columns
                yield found, counts

    def _count_ids(self, columns: Sequence[Numbered], ids: Sequence[str]) -> int:
        with self._joined(columns) as (cursor, joined):
            of_rows = f"SELECT DISTINCT {self._texts(ids)} FROM {joined} WHERE {kept_as_sql(columns)}"  # noqa: S608 (quoted)
            (found,) = cursor.sql(f"SELECT count(*) FROM ({of_rows})").fetchall()  # noqa: S608 (quoted)
        return int(found[0])

    @contextmanager
    def _joined(self, columns: Sequence[Numbered]) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
        """Yield a cursor with SQL of the table joined to the parts of columns: `m0.part` and so on."""
        with self._cursor() as cursor:
            joins = []
            for i, column in enumerate(columns):
                cursor.register("parts", pa.table({"text": column.texts, "part": column.parts}))
                cursor.execute(f"CREATE TEMP TABLE m{i} AS FROM parts").fetchall()
                cursor.unregister("parts")
                joins.append(f"LEFT JOIN m{i} ON m{i}.text = {self._cell(column.name)}")
            yield cursor, " ".join([self._reading.sql, *joins])

    def n_rows_about(self) -> int | None:
        return self._reading.n_rows_about()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection for a query. The time zone of the machine changes no cell."""
        with self._connection.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'").fetchall()
            yield cursor

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """Connection of all passes; the end of this object closes it, and takes the temporary folder away."""
        state = self._state
        connection, folder = _opened(self.memory_limit)
        weakref.finalize(self, _close, connection, folder)
        self._reading.fill(connection)
        self.require_unchanged(state)
        return connection

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of files and of the engine into DataError, with the message for the owner."""
        engine = _engine()
        try:
            yield
        except FileNotFoundError as error:
            raise missing(f"{self.name}: {error.filename} is not there") from error
        except OSError as error:
            raise unreadable(self.name, f"{error.filename}: {error.strerror}") from error
        except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
            raise unreadable(self.name, str(error)) from error
        except engine.OutOfMemoryException as error:
            limits = f"`memory_limit: {self.memory_limit}` and the free space in {tempfile.gettempdir()}"
            said = f"the table needs more than {limits} ({str(error).splitlines()[0]})"
            raise unreadable(self.name, said, remedy=_MORE_SPACE) from error
        except engine.Error as error:
            if gone := [path for path in self._reading.watched if not path.is_file()]:
                raise missing(f"{self.name}: {gone[0]} is not there") from error
            raise unreadable(self.name, _said(error)) from error


def _engine() -> ModuleType:
    """Return the package. Raises DataError where it is not installed."""
    try:
        return import_module("duckdb")
    except ImportError as error:
        raise missing_engine("duckdb", "duckdb") from error


def _said(error: Exception) -> str:
    """Return what the engine says, without a row of the table, and without advice on settings of the engine."""
    said, _, row = str(error).partition("\nOriginal Line:")
    after = row.splitlines()
    number = [line for line in after if line.startswith("Expected Number of Columns")][-1:]
    file = [line.strip() for line in after if line.startswith("  file = ")][-1:]
    before = takewhile(lambda line: line and not line.startswith("Possible"), said.splitlines())
    return "; ".join([*before, *number, *file])[:_MOST_SAID]


def _opened(memory_limit: str) -> tuple[duckdb.DuckDBPyConnection, tempfile.TemporaryDirectory[str]]:
    """Return a connection, and the folder for what is beyond the memory limit."""
    folder = tempfile.TemporaryDirectory(prefix="jointcut-")
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "temp_directory": folder.name,
        **_NO_FETCHING,
    }
    return _engine().connect(":memory:", config=settings), folder


@contextmanager
def connected(memory_limit: str, refused: Callable[[str], Exception]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection of its own. Raises DataError without the package.

    refused:  makes the exception of an error of the engine, from the engine's words, which may hold values.
    """
    connection, folder = _opened(memory_limit)
    try:
        yield connection
    except _engine().Error as error:
        raise refused(_said(error)) from error
    finally:
        _close(connection, folder)


def _close(connection: duckdb.DuckDBPyConnection, folder: tempfile.TemporaryDirectory[str]) -> None:
    connection.close()
    folder.cleanup()
