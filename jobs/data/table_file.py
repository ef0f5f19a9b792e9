"""Table's file as its owner sees the file: lines of rows, and the kind of a file that is no proper CSV.

Everything is for the owner's console, and may quote names, places and values.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from anonymize.errors import DataError
from jobs.data.arrow import pa
from jobs.data.counted import counted
from jobs.data.dialect import SEPARATORS, UTF_8, Dialect, open_bytes, open_text

AS_UTF_8 = "write the file again, with all text in UTF-8"
_AS_CSV = 'save it as "CSV UTF-8"'
_UTF_16 = (
    "is UTF-16 text without a mark at the beginning: set `encoding: utf-16-le` (or utf-16-be) beside the path"
)
_KINDS: Sequence[tuple[int, bytes, str]] = (
    (
        0,
        b"PK\x03\x04",
        f"is an Excel workbook (or a different ZIP archive): end the file's name in .xlsx, or {_AS_CSV}",
    ),
    (0, b"\xd0\xcf\x11\xe0", f"is an old Excel workbook: {_AS_CSV}"),
    (0, b"ARROW1", "is an Arrow (Feather) file: end the file's name in .feather"),
    (0, b"FEA1", "is a Feather file of version 1: save it as Parquet or CSV"),
    (0, b"PAR1", "is a Parquet file: say `parquet`, not `csv`; or end the file's name in .parquet"),
    (0, b"SQLite format 3\0", "is a SQLite file: say `duckdb`, not `csv`, and give the data set a `name`"),
    (8, b"DUCK", "is a DuckDB file: say `duckdb`, not `csv`, and give the data set a `name`"),
    (0, b"\x1f\x8b", "is compressed by gzip: end the file's name in .gz"),
    (0, b"\xff\xfe\0\0", "is UTF-32 text: save it as UTF-8"),
)
"""Kinds of files that are no CSV: place and bytes by which they are known, and what to do."""
_PACKED = {
    ".gz": ("gzip", b"\x1f\x8b"),
    ".zst": ("zstd", b"\x28\xb5\x2f\xfd"),
    ".bz2": ("bzip2", b"BZh"),
    ".lz4": ("lz4", b"\x04\x22\x4d\x18"),
}
"""Name and first bytes of compressed files, by the end of the file's name."""
_HEAD_BYTES = 4096
_UTF_16_ZEROS = 1 / 8
"""Least share of zero bytes in text taken for UTF-16."""
_BLOCK_BYTES = 1 << 20
_END = "end"
_MOST_SHOWN = 60
_MOST_LINES = 20
"""Largest number of malformed rows named at once."""
MISSING_WORDS = frozenset({"na", "n/a", "nan", "null", "none", "nil", "-", ".", "#n/a", "missing"})
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}")
NO_DATE = "a date is no number: give the column `dates: {from: 2020-01-01, to: 2021-01-01, step: 1mo}`"


def changed(name: str) -> DataError:
    """Return the error about a table that somebody wrote during a run. name: for the owner."""
    return DataError(
        "data-unreadable",
        "the table changed while it was read",
        private=name,
        remedy="run the job again when nobody writes the table",
    )


def missing(private: str = "", cause: str = "", named: str = "the path") -> DataError:
    """Return the error about a table that is not there.

    private, cause:  as of :func:`unreadable`.
    named:           the keys that name the table in a configuration.
    """
    return DataError(
        "file-missing",
        "the table is not there",
        private=private,
        cause=cause,
        remedy=f"correct {named} under `data` in the configuration of the table's owner",
    )


def unreadable(private: str, cause: str = "", remedy: str = "") -> DataError:
    """Return the error about a table that cannot be read.

    private:  words for the owner alone. They may name values, and never hold a secret.
    cause:    the operating system's message about a file, not about its content.
    remedy:   replaces the general advice.
    """
    return DataError(
        "data-unreadable", "the table cannot be read", private=private, cause=cause, remedy=remedy
    )


def as_read(text: str) -> str:
    """Return a text in the form for comparing values: in NFC, without blanks at the ends."""
    return unicodedata.normalize("NFC", text).strip()


def _numbered_rows(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV that are not blank, the header first, each with its first line number."""
    with open_text(path, dialect) as file:
        rows, begins = csv.reader(file, delimiter=dialect.separator, quotechar=dialect.quote), 1
        for row in rows:
            if row:
                yield begins, row
            begins = rows.line_num + 1


def lines_of_rows(path: Path, dialect: Dialect, rows: Sequence[int]) -> dict[int, int]:
    """Map rows to their first lines, as an editor counts: header and line breaks in quotes count, too.

    rows: from 1, the header left out. A row is left out if missing in the file, or unreadable.
    """
    wanted, found = set(rows), dict[int, int]()
    try:
        for number, (line, _) in enumerate(_numbered_rows(path, dialect)):
            if len(found) == len(wanted):
                break
            if number in wanted:
                found[number] = line
    except (OSError, UnicodeDecodeError, csv.Error):
        pass
    return found


def what_is_wrong(path: Path, dialect: Dialect) -> str:
    """Return the reason and the remedy for a file unreadable as CSV; empty if no usual reason is found."""
    try:
        return (
            other_kind(path, dialect)
            or _not_text(path, dialect)
            or lone_quote(path, dialect)
            or _ragged(path, dialect)
        )
    except (OSError, UnicodeDecodeError, csv.Error):
        return ""  # the reader's own words are better


def not_packed(path: Path) -> str:
    """Return the words on a file whose name promises a compression that the file lacks. Raises OSError."""
    if path.suffix not in _PACKED:
        return ""
    name, magic = _PACKED[path.suffix]
    with path.open("rb") as file:
        is_packed = file.read(len(magic)) == magic
    return (
        ""
        if is_packed
        else f"is no {name} file: take {path.suffix} off the end of its name, or compress the file"
    )


def damaged(form: str, parts: Iterable[object]) -> str:
    """Return the words on a file that breaks its form, or an empty text.

    parts:  the file's content as the form's reader gives the content. The file is read to its end.
    """
    try:
        for _ in parts:
            pass
    except (OSError, pa.ArrowException):
        return (
            f"is a damaged or incomplete {form} file, or of another kind: save or copy the file again, whole"
        )
    return ""


def damaged_pack(path: Path) -> str:
    """Return the words on a compressed file that cannot be unpacked to its end, or an empty text."""
    if path.suffix not in _PACKED:
        return ""
    with open_bytes(path) as file:
        return damaged(_PACKED[path.suffix][0], iter(partial(file.read, _BLOCK_BYTES), b""))


def other_kind(path: Path, dialect: Dialect) -> str:
    """Return the kind of a file that is no text, or an empty text. Raises OSError."""
    with open_bytes(path) as file:
        head = file.read(_HEAD_BYTES)
    for place, magic, words in _KINDS:
        if head.startswith(magic, place):
            return words
    if b"\0" not in head or dialect.codec.startswith("utf-16"):
        return ""
    return _UTF_16 if _has_the_zeros_of_utf_16(head) else _zeros(head)


def _has_the_zeros_of_utf_16(head: bytes) -> bool:
    """Return True if separators, digits and line ends have a zero byte each, always first or always second."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    return min(even, odd) == 0 and max(even, odd) >= _UTF_16_ZEROS * len(head)


def _zeros(head: bytes) -> str:
    line = head[: head.index(0)].count(b"\n") + 1
    return f"has a zero byte (NUL) on line {line}: the file is damaged, or no text; {_AS_CSV}"


def _not_text(path: Path, dialect: Dialect) -> str:
    if dialect.codec.startswith("utf-16"):  # a line end is no line end in every place
        return ""
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(dialect.codec)
            except UnicodeDecodeError:
                return _as_text(dialect.codec, number)
    return ""


def _as_text(codec: str, line: int) -> str:
    """Return the first line that is no text in an encoding, and the remedy."""
    is_utf_8 = codec in (UTF_8, "utf-8-sig")
    guess = "; perhaps Windows-1252" if is_utf_8 else ""
    encoding = "`encoding: cp1252`" if is_utf_8 else "`encoding` to the encoding that the file was saved in"
    return f"is not {codec.upper()} text (line {line}{guess}): set {encoding} beside the path, or {_AS_CSV}"


def lone_quote(path: Path, dialect: Dialect) -> str:
    """Return the place of an unclosed quote, or an empty text. All rows behind the quote would count as a single
    value.

    Raises OSError or UnicodeDecodeError.
    """
    line = _row_without_end(path, dialect) if _may_be_open(path, dialect) else None
    if line is None:
        return ""
    return (
        f'has a quote (") without a closing quote, in the row that begins on line {line}; write a quote inside a '
        'quoted value twice ("")'
    )


def _may_be_open(path: Path, dialect: Dialect) -> bool:
    """Return False if no quote of a file can be without a closing quote.

    An unclosed value begins with the last quote of the file, or has the last quote as one of a pair. Stray quotes
    inside other values may make the number of quotes even.
    """
    codec = "utf-16-le" if dialect.codec == "utf-16" else dialect.codec
    quote, *others = (sign.encode(codec) for sign in (dialect.quote, dialect.separator, "\n", "\r"))
    n_quotes, previous, before = 0, b"", b""
    with open_bytes(path) as file:
        for block in iter(partial(file.read, _BLOCK_BYTES), b""):
            n_quotes += block.count(quote)
            if (last := block.rfind(quote)) >= 0:
                before = (previous + block[max(0, last - len(quote)) : last])[-len(quote) :]
            previous = block[-len(quote) :]
    return n_quotes % 2 == 1 or (n_quotes > 0 and before in (b"", quote, *others))


def _row_without_end(path: Path, dialect: Dialect) -> int | None:
    """Return the first line of the last row, if a quote in the row swallows text appended to the file."""
    begins = end = 1
    last: list[str] = []
    with open_text(path, dialect) as file:
        rows = csv.reader(chain(file, [_END]), delimiter=dialect.separator, quotechar=dialect.quote)
        try:
            for row in rows:
                last, begins, end = row, end, rows.line_num + 1
        except csv.Error:  # the value has more characters than the reader takes
            return end
    return None if last == [_END] else begins


def _ragged(path: Path, dialect: Dialect) -> str:
    """Return the lines of rows with more or fewer values than the header has names, or an empty text."""
    rows = _numbered_rows(path, dialect)
    _, header = next(rows, (0, []))
    wrong = ((line, row) for line, row in rows if len(row) != len(header))
    told = [
        f"{counted(len(row), 'value', 'values')} on line {line}" for line, row in islice(wrong, _MOST_LINES)
    ]
    if not told:
        return ""
    n_more = sum(1 for _ in wrong)
    more = [f"a wrong number on {counted(n_more, 'more line', 'more lines')}"] if n_more else []
    return (
        f"has {', '.join([*told, *more])}, where the header has {counted(len(header), 'name', 'names')}; quote "
        "values that hold the separator or a line break"
    )


def about_header(names: Sequence[str], wanted: str, delimiter: str) -> str:
    """Return the header's alternatives to a missing column, for the owner."""
    has = f"it has {', '.join(names) or 'no header'}"
    alike = [name for name in names if name != wanted and _loosely(name) == _loosely(wanted)]
    if names and names[0].startswith("sep="):
        return f"{has}; this line is for Excel alone: remove the line"
    if f"'{wanted}'" in names:
        return f'{has}; the names are in single quotes: say `quote: "\'"` under `data`'
    if alike:
        return f"{has}; {alike[0]!r} differs in blanks, case or Unicode form only"
    return has + (_other_separator(names[0], delimiter) if len(names) == 1 else "")


def _loosely(name: str) -> str:
    return as_read(name).casefold()


def _other_separator(header: str, delimiter: str) -> str:
    """Return a hint if the only name in a header holds another separator."""
    found = max((each for each in SEPARATORS if each != delimiter), key=header.count)
    if found not in header:
        return ""
    shown = "tab" if found == "\t" else repr(found)
    written = '"\\t"' if found == "\t" else f'"{found}"'
    return (
        f"; the file looks {shown}-separated: set `delimiter: {written}` beside the path; a command that names the "
        "file has an option of this name"
    )


def shown(value: str) -> str:
    """Return a value in quotes; for a long value the beginning."""
    return repr(value) if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]!r}..."


def about_value(value: str, *, is_number: bool) -> str:
    """Return a hint for a value refused by a column, or an empty text."""
    text = value.strip()
    if "\n" in text or "\r" in text:
        return '; the value goes over several lines: is a quote (") unclosed here or on an earlier line?'
    if text.casefold() in MISSING_WORDS:
        return (
            "; if the value is missing, leave the cell empty or write ?, or list the text in `missing`, beside the "
            "path or query in `data`"
        )
    if not is_number:
        return ""
    return f"; {NO_DATE}" if DATE.fullmatch(text) else ""
