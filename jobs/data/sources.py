"""Sources of a party's table for the two passes, and the sources that are files."""

from __future__ import annotations

import csv
import errno
import os
import stat
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, Self

from jobs.data.arrow import pa, pa_csv, pc, pq
from jobs.data.coding import Coded, Coding, Published
from jobs.data.dialect import FEATHER, PARQUET, SNIFFED, UTF_8, WORKBOOKS, Dialect, is_packed, open_text
from jobs.data.row_blocks import batches_of_lines, has_quote
from jobs.data.rows_read import NO_METER, Meter
from jobs.data.table_file import (
    AS_UTF_8,
    about_header,
    damaged,
    damaged_pack,
    lines_of_rows,
    lone_quote,
    missing,
    not_packed,
    other_kind,
    unreadable,
    what_is_wrong,
)
from jobs.data.worded import Worded
from jobs.data.wording import AS_WRITTEN, Wording

_BLOCK_BYTES, _HEAD_BYTES = 4 << 20, 1 << 20
_PARQUET_ROWS = 1 << 16
_MOST_SHEETS = 10
_MOST_EXACT = float(1 << 53)
"""Every smaller whole number has an own float64."""
_SEPARATORS = {",": "commas", ";": "`;`", "\t": "tabs", "|": "`|`"}


class Source(Protocol):
    """Party's table, in any place.

    A source with rows in batches inherits both passes from :class:`jobs.data.streaming.Streamed`.
    """

    @property
    def identity(self) -> str:
        """Name of the data set in a privacy ledger, unless its owner gives another name."""
        ...

    @property
    def held_at(self) -> str:
        """Digest of the place of the rows, if only a name identifies the data set; else empty."""
        ...

    @property
    def ledger(self) -> Path:
        """Place of a single holder's privacy ledger, unless the holder names another place."""
        ...

    def settings(self) -> dict[str, Any]:
        """Return the source as `data` in a party's configuration; for a file the absolute path."""
        ...

    def notes(self) -> list[str]:
        """Return what was found out about the table's form without a word of its owner, for the owner."""
        ...

    def version(self) -> str:
        """Return a text that changes whenever the table may have changed, without reading rows. Raises DataError."""
        ...

    def metered(self, meter: Meter) -> Source:
        """Return the table with a meter of its rows."""
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
class FileSource(Worded):
    """Table in a single file."""

    path: Path
    wording: Wording = AS_WRITTEN
    meter: Meter = field(default=NO_METER, kw_only=True, compare=False, repr=False)

    def metered(self, meter: Meter) -> Self:
        return replace(self, meter=meter)

    @property
    def identity(self) -> str:
        """Path behind all links."""
        return str(self.path.resolve())

    @property
    def file(self) -> str:
        return self.path.name

    @property
    def called(self) -> str:
        return self.file

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

    @abstractmethod
    def settings(self) -> dict[str, Any]: ...

    def _wrong(self) -> str:
        """Return a sentence on a usual error in the file, or an empty text."""
        return ""

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn all errors of readers over a malformed file into DataError."""
        try:
            mode = self.path.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a pipe would be waited for without end
                raise unreadable(f"{self.path} is no regular file")
            yield
        except FileNotFoundError as error:
            raise missing(cause=f"{self.path}: {os.strerror(errno.ENOENT)}") from error
        except OSError as error:
            if error.errno is None:  # a reader's error, about the content of the file
                raise unreadable(self._found_wrong(error)) from error
            raise unreadable("", f"{self.path}: {os.strerror(error.errno)}") from error
        except (UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
            raise unreadable(self._found_wrong(error)) from error

    def _found_wrong(self, error: Exception) -> str:
        """Return the owner's sentence on a file that no reader understands."""
        wrong = self._wrong()
        return f"{self.path} {wrong}" if wrong else f"{self.path}: {error}"


@dataclass(frozen=True)
class Csv(FileSource):
    """Text with a header line. A name in .gz, .zst, .bz2 or .lz4 means a compressed file.

    dialect:  facts about the text that its owner states. Other facts are sniffed.
    """

    dialect: Dialect = SNIFFED

    def settings(self) -> dict[str, Any]:
        facts = {"delimiter": self.dialect.delimiter, "encoding": self.dialect.encoding}
        quote = {"quote": self.dialect.quote} if self.dialect.quote != '"' else {}
        given = {key: fact for key, fact in facts.items() if fact is not None}
        return {"csv": {"path": self.identity, **given, **quote, **self.wording.settings()}}

    def notes(self) -> list[str]:
        """Return what was sniffed, where it differs from a plain CSV, for the owner. Raises DataError."""
        with self._readable():
            found, said = self._sniffed, self.dialect
            notes = []
            if said.delimiter is None and found.separator != ",":
                notes.append(f"values are separated by {_SEPARATORS[found.separator]} (`delimiter`)")
            if said.encoding is None and found.codec not in (UTF_8, "utf-8-sig"):
                notes.append(f"the text is {found.codec.upper()} (`encoding`)")
            if self.wording.decimal is None and self._decimal == ",":
                notes.append("numbers have a decimal comma (`decimal`)")
            names = self._names()
        sniffed = [f"{self.path.name}: {', '.join(notes)}: found in its first lines"] if notes else []
        if self._is_quoted(names):
            sniffed.append(f'{self.path.name}: its names are in single quotes (`quote: "\'"` under `data`)')
        return [*sniffed, *super().notes()]

    def with_quote(self) -> Csv:
        """Return the table with single quotes around values, if its names are in single quotes. Raises DataError."""
        with self._readable():
            is_quoted = self._is_quoted(self._names())
        return replace(self, dialect=replace(self.dialect, quote="'")) if is_quoted else self

    def _is_quoted(self, names: Sequence[str]) -> bool:
        in_quotes = [len(name) > 2 and name[0] == name[-1] == "'" for name in names]
        return self.dialect.quote == '"' and bool(names) and all(in_quotes)

    def n_rows_about(self) -> int | None:
        """Return the number of rows if all rows are as long as the first; None if the file is packed."""
        with self._readable(), self.path.open("rb") as file:
            head, size = file.read(_HEAD_BYTES), os.fstat(file.fileno()).st_size
        n_lines = head.count(b"\n")
        return None if is_packed(self.path) or not n_lines else size * n_lines // len(head)

    @cached_property
    def _sniffed(self) -> Dialect:
        return self.dialect.sniffed(self.path)

    @cached_property
    def _decimal(self) -> str:
        return self.wording.decimal or self._sniffed.decimal_of(self.path)

    def place(self, row: int) -> str:
        """Return the row's line, while the file has the row."""
        return self.places([row])[0]

    def places(self, rows: Sequence[int]) -> list[str]:
        lines = lines_of_rows(self.path, self._sniffed, rows)
        return [f"line {lines[row]}" if row in lines else super(Csv, self).place(row) for row in rows]

    def about_names(self, names: Sequence[str], wanted: str) -> str:
        return about_header(names, wanted, self._sniffed.separator)

    def _names(self) -> list[str]:
        form = self._sniffed
        if found := other_kind(self.path, form):
            raise unreadable(f"{self.path} {found}")
        with self._rows() as rows:
            names = next(rows, [])
        if any("\n" in name for name in names):
            self._refuse_lone_quote()
        return names

    def _has_rows(self) -> bool:
        with self._rows() as rows:
            next(rows, None)
            try:
                return next(rows, None) is not None
            except csv.Error:  # a value has more characters than this reader takes
                return True

    @contextmanager
    def _rows(self) -> Iterator[Iterator[list[str]]]:
        """Yield the lines that are not blank."""
        form = self._sniffed
        with open_text(self.path, form) as file:
            yield filter(None, csv.reader(file, delimiter=form.separator, quotechar=form.quote))

    def _refuse_lone_quote(self) -> None:
        """Refuse a lone quote: the reader would take all that follows for a single value, and silently lose rows."""
        if found := lone_quote(self.path, self._sniffed):
            raise unreadable(f"{self.path} {found}")

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if not self._has_rows():
            return  # a header alone is no CSV to the reader below
        form = self._sniffed
        convert = pa_csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pa.dictionary(pa.int32(), pa.string())),
            null_values=[],
            strings_can_be_null=False,
        )
        if form.is_utf_8 and not has_quote(self.path, form):
            yield from batches_of_lines(self.path, form, convert, _BLOCK_BYTES)
            return
        self._refuse_lone_quote()
        read = pa_csv.ReadOptions(block_size=_BLOCK_BYTES, encoding=form.codec.removesuffix("-sig"))
        parse = pa_csv.ParseOptions(delimiter=form.separator, quote_char=form.quote, newlines_in_values=True)
        with pa_csv.open_csv(self.path, read, parse, convert) as reader:
            yield from reader

    def _wrong(self) -> str:
        try:
            return not_packed(self.path) or damaged_pack(self.path) or what_is_wrong(self.path, self._sniffed)
        except OSError:
            return ""  # the reader's own words are better


@dataclass(frozen=True)
class Parquet(FileSource):
    """Apache Parquet file."""

    def settings(self) -> dict[str, Any]:
        return {"parquet": {"path": self.identity, **self.wording.settings()}}

    def n_rows_about(self) -> int:
        with self._readable():
            return int(pq.read_metadata(self.path).num_rows)

    def _names(self) -> list[str]:
        return list(pq.read_schema(self.path).names)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return map(_texts_of, self._stored(list(columns)))

    def _stored(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(_PARQUET_ROWS, columns=columns)

    def _wrong(self) -> str:
        return damaged("Parquet", self._stored())


@dataclass(frozen=True)
class Feather(FileSource):
    """Arrow file (Feather version 2)."""

    def settings(self) -> dict[str, Any]:
        return {"feather": {"path": self.identity, **self.wording.settings()}}

    def _names(self) -> list[str]:
        with pa.memory_map(str(self.path)) as file:
            return list(pa.ipc.open_file(file).schema.names)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return (_texts_of(batch.select(list(columns))) for batch in self._stored())

    def _stored(self) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(self.path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    def _wrong(self) -> str:
        return damaged("Arrow (Feather)", self._stored())


@dataclass(frozen=True)
class Excel(FileSource):
    """Excel workbook; the table is on one sheet, with a header row.

    sheet:  name of the sheet; None: the first.
    """

    sheet: str | None = None

    def settings(self) -> dict[str, Any]:
        sheet = {} if self.sheet is None else {"sheet": self.sheet}
        return {"excel": {"path": self.identity, **sheet, **self.wording.settings()}}

    def place(self, row: int) -> str:
        return f"row {row + 1} of the sheet"

    def _names(self) -> list[str]:
        return next(self._rows(), [])

    def notes(self) -> list[str]:
        """Return the sheets besides the first, unless a sheet is named. Raises DataError."""
        from jobs.data.workbook import sheets_of

        with self._readable():
            first, *others = sheets_of(self.path) if self.sheet is None else ("",)
        more = []
        if others:
            told = ", ".join(map(repr, others[:_MOST_SHEETS]))
            rest = f" and {len(others) - _MOST_SHEETS} more" if len(others) > _MOST_SHEETS else ""
            more = [f"{self.path.name}: the table is on sheet {first!r}; not read: {told}{rest} (`sheet`)"]
        return [*more, *super().notes()]

    def _rows(self, used: Sequence[str] = ()) -> Iterator[list[str]]:
        from jobs.data.workbook import rows_of_sheet

        return rows_of_sheet(self.path, self.sheet, used)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rows = self._rows(columns)
        names = next(rows, [])
        places = [names.index(name) for name in columns]
        while block := list(islice(rows, _PARQUET_ROWS)):
            texts = [[row[place] for row in block] for place in places]
            arrays = [pa.array(each, pa.string()).dictionary_encode() for each in texts]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))


def _texts_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return columns of any type as dictionary-encoded text.

    Raises ArrowTypeError for values without a text, and for text that is no UTF-8.
    """
    names, texts = batch.schema.names, []
    for name, column in zip(names, batch.columns, strict=True):
        try:
            texts.append(_as_text(column))
        except pa.ArrowException as error:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                raise pa.ArrowTypeError(f"column {name} has text that is no UTF-8; {AS_UTF_8}") from error
            raise pa.ArrowTypeError(
                f"column {name} has values of type {column.type}, which have no text; write texts or numbers, or "
                "leave the column out of the job"
            ) from error
    return pa.RecordBatch.from_arrays(texts, names)


def _as_text(column: pa.Array) -> pa.DictionaryArray:
    """Return a column of any type as dictionary-encoded text, null as empty text. Each number is written once."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_integer(column.type) and not pa.types.is_float64(column.type):
        texts = pc.dictionary_encode(pc.fill_null(pc.cast(column, pa.string()), ""))
        texts.dictionary.validate(full=True)  # a file may claim that any bytes are text
        return texts
    numbers = pc.dictionary_encode(column, null_encoding="encode")
    texts = pc.cast(numbers.dictionary, pa.string())
    if pa.types.is_float64(column.type):
        texts = pc.coalesce(_in_digits(numbers.dictionary), texts)
    return pa.DictionaryArray.from_arrays(numbers.indices, pc.fill_null(texts, ""))


def _in_digits(numbers: pa.Array) -> pa.Array:
    """Return whole numbers in digits, and null for other numbers: Arrow writes 20000000000 as 2e+10.

    Many programs store whole numbers, such as ids, as float64 if a cell of the column is missing.
    """
    whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), _MOST_EXACT))
    return pc.cast(pc.cast(pc.if_else(whole, numbers, None), pa.int64()), pa.string())


def source_of_file(
    path: Path, dialect: Dialect = SNIFFED, wording: Wording = AS_WRITTEN, sheet: str | None = None
) -> FileSource:
    """Return a table by its file name: .parquet, .feather, .arrow, .xlsx, .tsv, or CSV."""
    if path.suffix in PARQUET:
        return Parquet(path, wording)
    if path.suffix in FEATHER:
        return Feather(path, wording)
    if path.suffix in WORKBOOKS:
        return Excel(path, wording, sheet)
    if ".tsv" in path.suffixes[-2:] and dialect.delimiter is None:
        dialect = replace(dialect, delimiter="\t")
    return Csv(path, wording, dialect)
