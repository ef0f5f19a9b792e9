"""Sources of a party's table for the two passes, and the sources that are files."""

from __future__ import annotations

import csv
import errno
import os
import stat
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from anonymize.errors import DataError
from jobs.data.arrow import pa, pa_csv, pc, pq
from jobs.data.coding import Coded, Coding, Published
from jobs.data.streaming import Streamed
from jobs.data.table_file import (
    about_header,
    as_read,
    lines_of_rows,
    lone_quote,
    open_text,
    other_kind,
    what_is_wrong,
)

_BLOCK_BYTES = 8 << 20
_PARQUET_ROWS = 1 << 16


class Source(Protocol):
    """Party's table, in any place.

    A source with rows in batches inherits both passes from :class:`jobs.data.streaming.Streamed`.
    """

    @property
    def identity(self) -> str:
        """Name of the data set in a privacy ledger, unless its owner gives another name."""
        ...

    @property
    def ledger(self) -> Path:
        """Place of a single holder's privacy ledger, unless the holder names another place."""
        ...

    def settings(self) -> dict[str, Any]:
        """Return the source as `data` in a party's configuration; for a file the absolute path."""
        ...

    def version(self) -> str:
        """Return a text that changes whenever the table may have changed, without reading rows. Raises DataError."""
        ...

    def column_names(self) -> list[str]:
        """Return the columns of the table, in order. Raises DataError."""
        ...

    def about_names(self, names: Sequence[str], wanted: str) -> str:
        """Return the owner's hint for a table with columns ``names`` that lacks or repeats ``wanted``."""
        ...

    def place(self, row: int) -> str:
        """Return the place of a row, for the owner. ``row``: its number, from 1."""
        ...

    def collapse(self, coding: Coding) -> Coded:
        """Run pass 1. Raises DataError for a cell refused by a coder, or an unreadable table."""
        ...

    def relabel(self, published: Mapping[str, Published], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Run pass 2: yield the columns ``names`` of the rows kept by pass 1, in the same order for all columns.

        A column outside ``published`` is given unchanged. Dictionary-encoded text throughout. Raises DataError as
        pass 1.
        """
        ...


@dataclass(frozen=True)
class FileSource(Streamed):
    """Table in a single file."""

    path: Path

    @property
    def identity(self) -> str:
        """Path behind all links."""
        return str(self.path.resolve())

    @property
    def ledger(self) -> Path:
        """Place of the ledger: beside the table itself, not beside a link to the table."""
        table = self.path.resolve()
        return table.with_name(f"{table.name}.privacy.sqlite")

    def version(self) -> str:
        """Return the file, its size and the time of writing."""
        with self._readable():
            found = self.path.stat()
        return f"{found.st_dev}-{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"

    def column_names(self) -> list[str]:
        with self._readable():
            return list(map(as_read, self._names()))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._readable():
            named = {as_read(name): name for name in self._names()}
            for batch in self._batches([named.get(name, name) for name in columns]):
                yield pa.RecordBatch.from_arrays(batch.columns, list(columns))

    def place(self, row: int) -> str:
        return f"row {row}"

    def about_names(self, names: Sequence[str], wanted: str) -> str:
        return about_header(names, wanted, ",")

    @abstractmethod
    def _names(self) -> list[str]:
        """Return the names of all columns as in the file, with blanks around."""

    @abstractmethod
    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]: ...

    def _wrong(self) -> str:
        """Return a sentence on a usual error in the file, or an empty text."""
        return ""

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn all errors of readers over a malformed file into DataError."""
        try:
            mode = self.path.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a pipe would be waited for without end
                raise _unreadable(f"{self.path} is no regular file")
            yield
        except FileNotFoundError as error:
            raise DataError(
                "file-missing",
                "the table is not there",
                remedy="correct the path under `data` in the configuration of the table's owner",
                cause=f"{self.path}: {os.strerror(errno.ENOENT)}",
            ) from error
        except OSError as error:
            if error.errno is None:  # a reader's error, about the content of the file
                raise _unreadable(self._found_wrong(error)) from error
            raise _unreadable("", f"{self.path}: {os.strerror(error.errno)}") from error
        except (EOFError, zlib.error, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
            raise _unreadable(self._found_wrong(error)) from error

    def _found_wrong(self, error: Exception) -> str:
        """Return the owner's sentence on a file that no reader understands."""
        wrong = self._wrong()
        return f"{self.path} {wrong}" if wrong else f"{self.path}: {error}"


def _unreadable(private: str, cause: str = "") -> DataError:
    """Return the error; ``cause``: the operating system's message about the file, not about its content."""
    return DataError("data-unreadable", "the table cannot be read", private=private, cause=cause)


@dataclass(frozen=True)
class Csv(FileSource):
    """UTF-8 text with a header line; a name in .gz means a compressed file."""

    delimiter: str = ","

    def settings(self) -> dict[str, Any]:
        return {"csv": {"path": self.identity, "delimiter": self.delimiter}}

    def place(self, row: int) -> str:
        """Return the row's line, while the file has the row."""
        return self.places([row])[0]

    def places(self, rows: Sequence[int]) -> list[str]:
        lines = lines_of_rows(self.path, self.delimiter, rows)
        return [f"line {lines[row]}" if row in lines else super(Csv, self).place(row) for row in rows]

    def about_names(self, names: Sequence[str], wanted: str) -> str:
        return about_header(names, wanted, self.delimiter)

    def _names(self) -> list[str]:
        return next(iter(self._first_lines(1)), [])

    def _first_lines(self, n: int) -> list[list[str]]:
        """Return the first lines that are not blank, at most ``n``."""
        if found := other_kind(self.path):
            raise _unreadable(f"{self.path} {found}")
        with open_text(self.path) as file:
            lines = list(islice(filter(None, csv.reader(file, delimiter=self.delimiter)), n))
        if any("\n" in value for line in lines for value in line):
            self._refuse_lone_quote()
        return lines

    def _refuse_lone_quote(self) -> None:
        """Refuse a lone quote: the reader would take all that follows for a single value, and silently lose rows."""
        if found := lone_quote(self.path, self.delimiter):
            raise _unreadable(f"{self.path} {found}")

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if len(self._first_lines(2)) < 2:
            return  # a header alone is no CSV to the reader below
        self._refuse_lone_quote()
        convert = pa_csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pa.dictionary(pa.int32(), pa.string())),
            null_values=[],
            strings_can_be_null=False,
        )
        read = pa_csv.ReadOptions(block_size=_BLOCK_BYTES)
        parse = pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        with pa_csv.open_csv(self.path, read, parse, convert) as reader:
            yield from reader

    def _wrong(self) -> str:
        return what_is_wrong(self.path, self.delimiter)


@dataclass(frozen=True)
class Parquet(FileSource):
    """Apache Parquet file."""

    def settings(self) -> dict[str, Any]:
        return {"parquet": {"path": self.identity}}

    def _names(self) -> list[str]:
        return list(pq.read_schema(self.path).names)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(_PARQUET_ROWS, columns=list(columns)):
                yield pa.RecordBatch.from_arrays(list(map(_as_text, batch.columns)), batch.schema.names)


def _as_text(column: pa.Array) -> pa.DictionaryArray:
    """Return a column of any type as dictionary-encoded text, null as empty text. Each number is written once."""
    if not pa.types.is_integer(column.type) and not pa.types.is_float64(column.type):
        return pc.dictionary_encode(pc.fill_null(pc.cast(column, pa.string()), ""))
    numbers = pc.dictionary_encode(column, null_encoding="encode")
    texts = pc.fill_null(pc.cast(numbers.dictionary, pa.string()), "")
    return pa.DictionaryArray.from_arrays(numbers.indices, texts)


def source_of_file(path: Path, delimiter: str = ",") -> Source:
    """Return a table by its file name: .parquet, or CSV."""
    return Parquet(path) if path.suffix == ".parquet" else Csv(path, delimiter)
