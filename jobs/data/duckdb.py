"""Tables that DuckDB reads: many files, folders with parts, files larger than memory.

DuckDB reads and counts, this program codes. Each cell is the text of `CAST(... AS VARCHAR)`, and an empty text for
NULL. Rows come in the order of the files, sorted by path, and within a file as they stand; the order is the same in
each pass. Beyond the memory limit DuckDB writes parts of the table into a temporary folder of mode 0700, which goes
away with the connection.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from anonymize.errors import DataError
from jobs.data.arrow import pa, pq
from jobs.data.database import missing_engine, quoted, unreadable
from jobs.data.dialect import SNIFFED, UTF_8, Dialect
from jobs.data.engine import Engine, Numbered, kept_as_sql, keys_as_sql
from jobs.data.sources import Csv, Parquet

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS, _KEYS_ROWS = 1 << 17, 1 << 20
_TEXTS = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".txt")
_PATTERN = frozenset("*?[")
_SIGN = re.compile(r"[*?\[]")
_FILE_NAME = "jointcut file"
_FILE = f'"{_FILE_NAME}"'
_VALUE = r"/\Q{}\E=([^/]*)/"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_MOST_SAID = 500
_ENCODINGS = {UTF_8: "utf-8", "utf-8-sig": "utf-8", "utf-16": "utf-16"}
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
    """

    path: Path = Path()
    memory_limit: str = "2GB"

    KIND: ClassVar[str] = "duckdb"

    def _asked(self) -> Mapping[str, Any]:
        return {"path": str(self._place)}

    def _limits(self) -> Mapping[str, Any]:
        return {"memory_limit": self.memory_limit}

    @property
    def _place(self) -> Path:
        """Absolute path or pattern. A pattern has no links to resolve."""
        return Path(os.path.abspath(self.path))

    def version(self) -> str:
        """Return name, size and time of writing of the files."""
        with self._readable():
            found = [(path, path.stat()) for path in self._files]
        return "-".join(f"{each.st_dev}.{each.st_ino}.{each.st_size}.{each.st_mtime_ns}" for _, each in found)

    @cached_property
    def _files(self) -> tuple[Path, ...]:
        """Files of the table, sorted by path. Raises DataError."""
        place = self._place
        if place.is_dir():
            found = [path for path in place.rglob("*") if _kind(path) and not _hidden(path, place)]
        elif _PATTERN & set(str(place)) and not place.exists():
            found = [Path(text) for text in glob(str(place), recursive=True)]
        else:
            found = [place]
        if not found:
            raise self._missing(f"no file fits {place}")
        if missing := [path for path in found if not path.is_file()]:
            raise self._missing(f"{missing[0]} is not there" if len(missing) == 1 else f"{place} is no table")
        kinds = {_kind(path) for path in found}
        if "" in kinds:
            strange = next(path for path in found if not _kind(path))
            raise unreadable(self.name, f"{strange}: DuckDB is asked for Parquet and CSV files only")
        if len(kinds) > 1:
            raise unreadable(self.name, f"{place} holds Parquet and text files; name one kind, as *.parquet")
        return tuple(sorted(found))

    def _missing(self, private: str) -> DataError:
        return DataError(
            "file-missing",
            "the table is not there",
            remedy="correct the path under `data` in the configuration of the table's owner",
            private=f"{self.name}: {private}",
        )

    @cached_property
    def _form(self) -> Dialect:
        """Form of text files: that of the first."""
        form = SNIFFED.sniffed(self._files[0])
        if form.codec not in _ENCODINGS:
            raise unreadable(
                self.name, f"{self._files[0]} is {form.codec.upper()}; DuckDB reads UTF-8: convert it"
            )
        return form

    def _names(self) -> list[str]:
        return [*self._of_files, *self._of_folders]

    @cached_property
    def _of_files(self) -> list[str]:
        """Columns that stand in the files. Raises DataError."""
        first, *others = self._files
        names = _header(first)
        for path in others:
            if _header(path) != names:
                raise unreadable(self.name, f"{path} has other columns than {first}, or in another order")
        if _kind(first) == "parquet":
            self._require_apart(names, f"{first} has")
        return names

    @cached_property
    def _of_folders(self) -> list[str]:
        """Columns that folders named KEY=VALUE below the table's own folder give. Raises DataError."""
        first, *others = self._files
        keys = list(self._keys(first))
        for path in others:
            if list(self._keys(path)) != keys:
                raise unreadable(self.name, f"the folders of {path} name other columns than those of {first}")
        if keys:
            self._require_apart([*self._of_files, *keys], f"{first} and its folders have")
        return keys

    def _require_apart(self, names: Sequence[str], who: str) -> None:
        """Raise DataError for names that DuckDB takes for the same name."""
        first: dict[str, str] = {}
        for name in names:
            if (other := first.setdefault(name.casefold(), name)) is not name:
                raise unreadable(
                    self.name,
                    f"{who} the columns {other} and {name}, which DuckDB takes for one: rename one of them",
                )

    def _keys(self, path: Path) -> Mapping[str, str]:
        """Return the columns that the folders of a file give, each with its text in the folder's name."""
        below = path.parent.relative_to(self._base).parts
        return {unquote(key): key for key, equals, _ in (part.partition("=") for part in below) if equals}

    @property
    def _base(self) -> Path:
        """Folder of the table: all files are below."""
        if self._place.is_dir():
            return self._place
        if self._place.exists():
            return self._place.parent
        return Path(*takewhile(lambda part: not _PATTERN & set(part), self._place.parent.parts))

    @property
    def _reading(self) -> str:
        """SQL of the table: its columns are all text in CSV files.

        Columns of CSV files are named by number. DuckDB would take names that differ in case alone for one.
        """
        of_files = self._reading_files
        if not self._of_folders:
            return f"{of_files} AS source"
        folders = f"substr({_FILE}, {len(str(self._base)) + 1})"
        values = ", ".join(
            f"nullif(url_decode(regexp_extract({folders}, {_text(_VALUE.format(key))}, 1)), {_text(_NO_VALUE)}) "
            f"AS {quoted(name)}"
            for name, key in self._keys(self._files[0]).items()
        )
        return f"(SELECT *, {values} FROM {of_files}) AS source"  # noqa: S608 (quoted)

    @property
    def _reading_files(self) -> str:
        files = files_as_sql(self._files)
        apart = "hive_partitioning = false" + (
            f", filename = {_text(_FILE_NAME)}" if self._of_folders else ""
        )
        if _kind(self._files[0]) == "parquet":
            # Files may differ in types: pandas writes whole numbers with a missing cell as doubles. Without
            # `union_by_name` all files take the types of the first, and 1.5 becomes 2.
            return f"read_parquet({files}, {apart}, union_by_name = true)"
        form = self._form
        columns = ", ".join(f"{_text(_numbered(i))}: 'VARCHAR'" for i in range(len(self._of_files)))
        facts = {
            "delim": _text(form.separator),
            "quote": _text(form.quote),
            "escape": _text(form.quote),
            "encoding": _text(_ENCODINGS[form.codec]),
            "header": "true",
            "all_varchar": "true",
            "auto_detect": "false",
            "columns": "{" + columns + "}",
        }
        said = ", ".join(f"{key} = {value}" for key, value in facts.items())
        return f"read_csv({files}, {apart}, {said})"

    def _cell(self, column: str) -> str:
        """Return SQL for a cell as text, with an empty text for NULL."""
        is_numbered = _kind(self._files[0]) == "text" and column in self._of_files
        name = _numbered(self._of_files.index(column)) if is_numbered else column
        return f"coalesce(CAST(source.{quoted(name)} AS VARCHAR), '')"

    def _texts(self, columns: Sequence[str]) -> str:
        """Return SQL for columns as text. Every name is quoted."""
        return ", ".join(f"{self._cell(each)} AS {quoted(_numbered(i))}" for i, each in enumerate(columns))

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream rows one by one, in the order of the files."""
        with self._cursor() as cursor:
            query = f"SELECT {self._texts(columns)} FROM {self._reading}"  # noqa: S608 (quoted)
            for batch in cursor.sql(query).to_arrow_reader(_BATCH_ROWS):
                texts = [each.dictionary_encode() for each in batch.columns]
                yield pa.RecordBatch.from_arrays(texts, list(columns))

    def _distinct(self, columns: Sequence[str]) -> Sequence[pa.Array] | None:
        lists = ", ".join(f"list(DISTINCT {self._cell(each)})" for each in columns)
        with self._cursor() as cursor:
            try:
                found = cursor.sql(f"SELECT {lists} FROM {self._reading}").to_arrow_table()  # noqa: S608 (quoted)
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
            yield cursor, " ".join([self._reading, *joins])

    def n_rows_about(self) -> int | None:
        """Return the number of rows of Parquet files; None for text."""
        if _kind(self._files[0]) != "parquet":
            return None
        return sum(int(pq.read_metadata(path).num_rows) for path in self._files)

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection for a query. The time zone of the machine changes no cell."""
        with self._connection.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'").fetchall()
            yield cursor

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """Connection of all passes; the end of this object closes it, and takes the temporary folder away."""
        connection, folder = _opened(self.memory_limit)
        weakref.finalize(self, _close, connection, folder)
        return connection

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of files and of the engine into DataError, with the message for the owner."""
        engine = _engine()
        try:
            yield
        except FileNotFoundError as error:
            raise self._missing(f"{error.filename} is not there") from error
        except OSError as error:
            raise unreadable(self.name, f"{error.filename}: {error.strerror}") from error
        except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
            raise unreadable(self.name, str(error)) from error
        except engine.OutOfMemoryException as error:
            limits = f"`memory_limit: {self.memory_limit}` and the free space in {tempfile.gettempdir()}"
            said = f"the table needs more than {limits} ({str(error).splitlines()[0]})"
            raise unreadable(self.name, said, remedy=_MORE_SPACE) from error
        except engine.Error as error:
            if gone := [path for path in self._files if not path.is_file()]:
                raise self._missing(f"{gone[0]} is not there") from error
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


def files_as_sql(files: Sequence[Path]) -> str:
    """Return files as a list of SQL. DuckDB takes each for a pattern, so signs of a pattern stand for themselves."""
    return "[" + ", ".join(_text(_SIGN.sub(r"[\g<0>]", str(file))) for file in files) + "]"


def _close(connection: duckdb.DuckDBPyConnection, folder: tempfile.TemporaryDirectory[str]) -> None:
    connection.close()
    folder.cleanup()


def _kind(path: Path) -> str:
    """Return "parquet", "text", or an empty text for other files."""
    if path.suffix == ".parquet":
        return "parquet"
    return "text" if path.name.endswith(_TEXTS) else ""


def _hidden(path: Path, place: Path) -> bool:
    """Return True for files that writers of folders leave: _SUCCESS, .crc, parts still being written."""
    return any(part.startswith((".", "_")) for part in path.relative_to(place).parts)


def _header(path: Path) -> list[str]:
    """Return the names of the columns of a file. Raises DataError."""
    return (Parquet(path) if _kind(path) == "parquet" else Csv(path)).column_names()


def _numbered(number: int) -> str:
    """Return the name of a column by its number."""
    return f"jointcut {number}"


def _text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
