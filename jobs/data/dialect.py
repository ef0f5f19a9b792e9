"""Dialect of a text file: separator, quote and encoding. Unstated facts are sniffed from the head of the file."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from jobs.data.arrow import pa

PARQUET, FEATHER, WORKBOOKS = (".parquet",), (".feather", ".arrow"), (".xlsx", ".xlsm")
"""Ends of the names of files that are no text."""
SEPARATORS = ",;\t|"
"""Separators that are looked for; of equally good separators the first."""
UTF_8 = "utf-8"
_GUESSED = "cp1252"
"""Encoding of a file that is no UTF-8: Windows-1252, which has all printed characters of Latin-1."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_BROKEN = re.compile("[\udc80-\udcff]")
"""Stand-ins of Python for bytes that are no UTF-8."""
_HEAD_BYTES = 1 << 18
_ROWS_SNIFFED = 200
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})")
_POINT_NUMBER = re.compile(r"[+-]?[0-9]*\.[0-9]+")


@dataclass(frozen=True)
class Dialect:
    """Form of a text file. ``None``: sniffed.

    delimiter:  separator of values, one ASCII character.
    quote:      character around values that hold a separator.
    encoding:   name of a text encoding that Python knows.
    """

    delimiter: str | None = None
    quote: str = '"'
    encoding: str | None = None

    @property
    def separator(self) -> str:
        """Separator of values, a comma if nothing is known."""
        return self.delimiter or ","

    @property
    def codec(self) -> str:
        """Encoding, UTF-8 if nothing is known."""
        return self.encoding or UTF_8

    @property
    def is_utf_8(self) -> bool:
        return self.codec in (UTF_8, "utf-8-sig")

    def sniffed(self, path: Path) -> Dialect:
        """Return the dialect with all facts, as far as the head of a file shows them. Raises OSError."""
        with open_bytes(path) as file:
            head = file.read(_HEAD_BYTES)
        encoding = self.encoding or _encoding_of(head)
        found = replace(self, encoding=encoding)
        if self.delimiter is not None:
            return found
        return replace(found, delimiter=separator_of(found._lines(head), self.quote))

    def _lines(self, head: bytes) -> list[str]:
        """Return the first whole lines of a file."""
        text = head.decode(self.codec, errors="replace")
        lines = text.splitlines(keepends=True)[: _ROWS_SNIFFED + 1]
        if len(head) == _HEAD_BYTES or len(lines) > _ROWS_SNIFFED:
            lines = lines[:-1] or lines  # the last line may be cut
        return lines

    def decimal_of(self, path: Path) -> str:
        """Return "," if the head of a file has numbers with a decimal comma and none with a point; else "."."""
        with open_bytes(path) as file:
            head = file.read(_HEAD_BYTES)
        rows = rows_of(self._lines(head), self.separator, self.quote)[1:]
        values = {value.strip() for row in rows for value in row}
        commas = any(_COMMA_NUMBER.fullmatch(value) for value in values)
        return "," if commas and not any(_POINT_NUMBER.fullmatch(value) for value in values) else "."


SNIFFED = Dialect()
"""Dialect of a file whose owner states no fact."""


def rows_of(lines: list[str], delimiter: str, quote: str) -> list[list[str]]:
    """Return the rows of some lines that are not blank; the rows before a malformed one."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(lines, delimiter=delimiter, quotechar=quote):
            if row:
                rows.append(row)
    except csv.Error:
        pass
    return rows


def _encoding_of(head: bytes) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    text = codecs.getincrementaldecoder(UTF_8)("surrogateescape").decode(head, final=False)
    beyond_ascii, broken = len(_BEYOND_ASCII.findall(text)), len(_BROKEN.findall(text))
    # A single broken byte does not make a file of UTF-8 another one: the reader names its line.
    return _GUESSED if broken and 2 * broken >= beyond_ascii else UTF_8


def separator_of(lines: list[str], quote: str) -> str:
    """Return the separator that gives the header most names, and every row as many values as the header."""
    rows = {each: rows_of(lines, each, quote) for each in SEPARATORS}
    fitting = {
        each: len(found[0])
        for each, found in rows.items()
        if found and all(len(row) == len(found[0]) for row in found)
    }
    best = max(fitting, key=lambda each: fitting[each], default=",")
    return best if fitting.get(best, 0) > fitting.get(",", 1) else ","


def is_packed(path: Path) -> bool:
    """Return True for a compressed file, by its name."""
    return path.suffix in _PACKED


def open_bytes(path: Path) -> IO[bytes]:
    """Open a table's file, unpacked if the name ends in .gz, .zst, .bz2 or .lz4."""
    file: IO[bytes] = path.open("rb")
    packed = _PACKED.get(path.suffix)
    return file if packed is None else io.BufferedReader(pa.CompressedInputStream(file, packed))


@contextmanager
def open_text(path: Path, dialect: Dialect) -> Iterator[IO[str]]:
    """Open a table's file as text, with line ends unchanged."""
    codec = "utf-8-sig" if dialect.codec == UTF_8 else dialect.codec
    with open_bytes(path) as file, io.TextIOWrapper(file, encoding=codec, newline="") as text:
        yield text
