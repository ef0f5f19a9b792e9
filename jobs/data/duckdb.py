"""Tables that DuckDB reads: many files, folders with parts, files larger than memory.

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
from glob import glob
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from anonymize.errors import DataError
from jobs.data.arrow import pa, pq
from jobs.data.database import missing_engine, quoted, unreadable
from jobs.data.dialect import SNIFFED, UTF_8, Dialect
from jobs.data.engine import Engine, Numbered
from jobs.data.sources import Csv, Parquet

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS, _KEYS_ROWS = 1 << 17, 1 << 20
_TEXTS = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".txt")
_PATTERN = frozenset("*?[")
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
        first, *others = self._files
        names = _header(first)
        for path in others:
            if _header(path) != names:
                raise unreadable(self.name, f"{path} has other columns than {first}, or in another order")
        return [*names, *(key for key in _parts(first, self._place) if key not in names)]

    @property
    def _reading(self) -> str:
        """SQL of the table: its columns are all text in CSV files."""
        files = files_as_sql(self._files)
        parts = "hive_partitioning = true, hive_types_autocast = false"
        if _kind(self._files[0]) == "parquet":
            # Files may differ in types: pandas writes whole numbers with a missing cell as doubles. Without
            # `union_by_name` all files take the types of the first, and 1.5 becomes 2.
            return f"read_parquet({files}, {parts}, union_by_name = true) AS source"
        form = self._form
        facts = {
            "delim": _text(form.separator),
            "quote": _text(form.quote),
            "escape": _text(form.quote),
            "encoding": _text(_ENCODINGS[form.codec]),
            "header": "true",
            "all_varchar": "true",
            "auto_detect": "false",
            "columns": "{" + ", ".join(f"{_text(name)}: 'VARCHAR'" for name in _header(self._files[0])) + "}",
        }
        said = ", ".join(f"{key} = {value}" for key, value in facts.items())
        return f"read_csv({files}, {parts}, {said}) AS source"

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream rows one by one, in the order of the files."""
        with self._connection.cursor() as cursor:
            query = f"SELECT {_texts(columns)} FROM {self._reading}"  # noqa: S608 (quoted)
            for batch in cursor.sql(query).to_arrow_reader(_BATCH_ROWS):
                texts = [each.dictionary_encode() for each in batch.columns]
                yield pa.RecordBatch.from_arrays(texts, batch.schema.names)

    def _distinct(self, columns: Sequence[str]) -> Sequence[pa.Array] | None:
        lists = ", ".join(f"list(DISTINCT {_cell(each)})" for each in columns)
        with self._connection.cursor() as cursor:
            try:
                found = cursor.sql(f"SELECT {lists} FROM {self._reading}").to_arrow_table()  # noqa: S608 (quoted)
            except _engine().OutOfMemoryException:
                return None
        return [pa.concat_arrays([part.flatten() for part in each.chunks]) for each in found.columns]

    def _counted(self, columns: Sequence[Numbered]) -> Iterator[tuple[Sequence[pa.Array], pa.Array]]:
        keys = range(max((column.key for column in columns), default=-1) + 1)
        sums = [
            " + ".join(f"m{i}.part" for i, column in enumerate(columns) if column.key == key) for key in keys
        ]
        with self._joined(columns) as (cursor, joined):
            asked = ", ".join([*sums, "count(*)"])
            answer = cursor.sql(f"SELECT {asked} FROM {joined} GROUP BY {', '.join(sums)}")  # noqa: S608 (quoted)
            for batch in answer.to_arrow_reader(_KEYS_ROWS):
                *found, counts = batch.columns
                yield found, counts

    def _count_ids(self, columns: Sequence[Numbered], ids: Sequence[str]) -> int:
        dropped = [(i, part) for i, column in enumerate(columns) for part in column.dropped]
        kept = " AND ".join(["true", *(f"m{i}.part <> {part}" for i, part in dropped)])
        with self._joined(columns) as (cursor, joined):
            of_rows = f"SELECT DISTINCT {_texts(ids)} FROM {joined} WHERE {kept}"  # noqa: S608 (quoted)
            (found,) = cursor.sql(f"SELECT count(*) FROM ({of_rows})").fetchall()  # noqa: S608 (quoted)
        return int(found[0])

    @contextmanager
    def _joined(self, columns: Sequence[Numbered]) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
        """Yield a cursor with SQL of the table joined to the parts of columns: `m0.part` and so on."""
        with self._connection.cursor() as cursor:
            joins = []
            for i, column in enumerate(columns):
                cursor.register("parts", pa.table({"text": column.texts, "part": column.parts}))
                cursor.execute(f"CREATE TEMP TABLE m{i} AS FROM parts").fetchall()
                cursor.unregister("parts")
                joins.append(f"LEFT JOIN m{i} ON m{i}.text = {_cell(column.name)}")
            yield cursor, " ".join([self._reading, *joins])

    def n_rows_about(self) -> int | None:
        """Return the number of rows of Parquet files; None for text."""
        if _kind(self._files[0]) != "parquet":
            return None
        return sum(int(pq.read_metadata(path).num_rows) for path in self._files)

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
        except OSError as error:
            raise unreadable(self.name, f"{error.filename}: {error.strerror}") from error
        except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
            raise unreadable(self.name, str(error)) from error
        except engine.OutOfMemoryException as error:
            limits = f"`memory_limit: {self.memory_limit}` and the free space in {tempfile.gettempdir()}"
            said = f"the table needs more than {limits} ({str(error).splitlines()[0]})"
            raise unreadable(self.name, said, remedy=_MORE_SPACE) from error
        except engine.Error as error:
            raise unreadable(self.name, _said(error)) from error


def _engine() -> ModuleType:
    """Return the package. Raises DataError where it is not installed."""
    try:
        return import_module("duckdb")
    except ImportError as error:
        raise missing_engine("duckdb", "duckdb") from error


def _said(error: Exception) -> str:
    """Return what the engine says, without its advice on its own settings."""
    lines = takewhile(lambda line: line and not line.startswith("Possible"), str(error).splitlines())
    return "; ".join(lines)


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
    """Return files as a list of SQL."""
    return "[" + ", ".join(map(_text, map(str, files))) + "]"


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


def _parts(path: Path, place: Path) -> list[str]:
    """Return the names in the parts KEY=VALUE of the folders of a file."""
    return [part.partition("=")[0] for part in path.parent.parts if "=" in part]


def _texts(columns: Sequence[str]) -> str:
    """Return SQL for columns as text. Every name is quoted."""
    return ", ".join(f"{_cell(each)} AS {quoted(each)}" for each in columns)


def _cell(column: str) -> str:
    """Return SQL for a cell as text, with an empty text for NULL."""
    return f"coalesce(CAST(source.{quoted(column)} AS VARCHAR), '')"


def _text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
