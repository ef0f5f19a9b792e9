"""Tables that DuckDB reads: many files, folders with parts, files larger than memory.

DuckDB reads, this program codes. Each cell is the text of `CAST(... AS VARCHAR)`, and an empty text for NULL. Rows
come in the order of the files, sorted by path, and within a file as they stand; the order is the same in each pass.
Beyond the memory limit DuckDB writes parts of the table into a temporary folder of mode 0700, which goes away with
the connection.
"""

from __future__ import annotations

import csv
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from anonymize.errors import DataError
from anonymize.table import Ints
from jobs.data.arrow import pa
from jobs.data.coding import Coded, Coding
from jobs.data.database import Database, missing_engine, quoted, unreadable
from jobs.data.dialect import SNIFFED, UTF_8, Dialect
from jobs.data.sources import Csv, Parquet
from jobs.data.streaming import Reader

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS = 1 << 17
_COUNT = '"number of equal rows"'
_TEXTS = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".txt")
_PATTERN = frozenset("*?[")
_ENCODINGS = {UTF_8: "utf-8", "utf-8-sig": "utf-8", "utf-16": "utf-16"}
_NO_FETCHING = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
"""Settings against code from the network: DuckDB would fetch a reader for a file that it does not know."""


@dataclass(frozen=True)
class DuckDb(Database):
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
        files = "[" + ", ".join(map(_text, map(str, self._files))) + "]"
        parts = "hive_partitioning = true, hive_types_autocast = false"
        if _kind(self._files[0]) == "parquet":
            return f"read_parquet({files}, {parts})"
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
        return f"read_csv({files}, {parts}, {', '.join(f'{key} = {value}' for key, value in facts.items())})"

    def collapse(self, coding: Coding) -> Coded:
        """Let the engine count equal rows, where the job asks for nothing else.

        If a value is unfit, the rows are read one by one after all: only then do values have a place.
        """
        if coding.of_counts:
            reader = Reader(self, coding)
            for batch, weights in self.counted(reader.names):
                reader.add(batch, weights)
                if reader.has_unfit:
                    break
            else:
                return reader.finish()
        return super().collapse(coding)

    def counted(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        """Yield the different rows of some columns, as :meth:`batches`, with the number of equal rows each."""
        with self._readable():
            named = {self.wording.name(name): name for name in self._names()}
            for batch in self._counted([named[name] for name in columns]):
                *texts, counts = batch.columns
                worded = map(self.wording.worded, columns, texts)
                yield pa.RecordBatch.from_arrays(list(worded), list(columns)), np.asarray(counts, np.int64)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._asked_for(columns, f"SELECT {_texts(columns)} FROM {self._reading}")  # noqa: S608

    def _counted(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream different rows of columns, by their names in the table, as text; the last column counts rows."""
        names = ", ".join(map(quoted, columns))
        groups = f"SELECT {names}, count(*) AS {_COUNT} FROM {self._reading} GROUP BY ALL"  # noqa: S608
        return self._asked_for(columns, f"SELECT {_texts(columns)}, {_COUNT} FROM ({groups})")  # noqa: S608

    def _asked_for(self, columns: Sequence[str], query: str) -> Iterator[pa.RecordBatch]:
        """Stream the answer to a query: columns of text, and further columns unchanged."""
        with self._connection.cursor() as cursor:
            for batch in cursor.sql(query).to_arrow_reader(_BATCH_ROWS):
                found = batch.columns
                texts = [each.dictionary_encode() for each in found[: len(columns)]]
                yield pa.RecordBatch.from_arrays([*texts, *found[len(columns) :]], batch.schema.names)

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """Connection of all passes; the end of this object closes it, and takes the temporary folder away."""
        folder = tempfile.TemporaryDirectory(prefix="jointcut-")
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": self.memory_limit,
            "temp_directory": folder.name,
            **_NO_FETCHING,
        }
        connection: duckdb.DuckDBPyConnection = _engine().connect(":memory:", config=settings)
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
    """Return SQL for columns as text, with an empty text for NULL. Every name is quoted."""
    return ", ".join(f"coalesce(CAST({quoted(each)} AS VARCHAR), '') AS {quoted(each)}" for each in columns)


def _text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
