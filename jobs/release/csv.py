"""Released tables as CSV: writing, reading back, comparing."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.release import LabelledColumn, Release
from anonymize.table import Codes, Ints, pack, tally
from jobs.data.arrow import pa, pa_csv, pc
from jobs.data.counted import counted
from jobs.data.threaded import mapped
from jobs.errors import PartyError

TABLE, REPORT = "anonymized.csv", "report.json"
PARTS_OF_TABLE = "anonymized"
"""Folder of a released table in parts (:mod:`jobs.release.parts`)."""
RELEASED = "the released table"
_CHUNK_ROWS = 1 << 15
_MOST_JOINED = 1 << 17
"""Most rows of a table made of counts that are joined to lines once."""
_MOST_TEXTS = 1 << 12
"""Most combinations of labels that are joined before the rows are."""
_SPECIAL = re.compile(r'[",\r\n]|^\s|\s$')


def csv_header(content: bytes) -> list[str]:
    """Return the column names of a CSV of ours. Raises PartyError."""
    try:
        text = io.StringIO(content.decode("utf-8"), newline="")
        return next(csv.reader(text), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise _no_table(RELEASED, content) from error


def write_csv(release: Release, path: Path, order: Codes | None = None) -> dict[str, Any]:
    """Write a release as CSV: UTF-8, header, values quoted where necessary; return the file's digest and size.

    order:  as in :func:`csv_bytes`.
    """
    digest = hashlib.sha256()

    def digested(part: pa.Buffer | bytes) -> pa.Buffer | bytes:
        digest.update(part)
        return part

    with path.open("wb") as file:
        for part in mapped(digested, _parts(release, order), threads=1):
            file.write(part)
        return {"sha256": digest.hexdigest(), "bytes": file.tell()}


def csv_bytes(release: Release, order: Codes | None = None) -> bytes:
    """Return a release as CSV, in memory.

    order:  row of each line of the table; None: a line for each row, in order.
    """
    out = io.BytesIO()  # b"".join would hold all parts twice
    for part in _parts(release, order):
        out.write(part)
    return out.getvalue()


def csv_digest(release: Release, order: Codes | None = None) -> str:
    """Return the SHA-256 of :func:`csv_bytes` in hexadecimal. No more than some lines are in memory."""
    digest = hashlib.sha256()
    for part in _parts(release, order):
        digest.update(part)
    return digest.hexdigest()


def _parts(release: Release, order: Codes | None) -> Iterator[pa.Buffer | bytes]:
    """Yield the header, then some lines at a time."""
    columns = list(release.columns.values())
    pieces = _pieces([c.labels for c in columns])
    places = _places(pieces, [c.codes for c in columns])
    n_lines = release.n_rows if order is None else len(order)
    if order is not None and 0 < release.n_rows <= _MOST_JOINED:
        texts = _joined(pieces, places)
        pieces, places = [_Piece((len(texts),), texts)], [np.arange(len(texts), dtype=np.int32)]

    def lines(start: int) -> pa.Buffer:
        some = slice(start, start + _CHUNK_ROWS)
        return _lines(pieces, [each[some if order is None else order[some]] for each in places])

    yield _header(list(release.columns))
    yield from mapped(lines, range(0, n_lines, _CHUNK_ROWS), threads=1)


def most_csv_bytes(labels: Mapping[str, Sequence[str]], n_rows: int) -> int:
    """Return the largest size of a CSV of ours with the given labels, by column name."""
    widths = (max((len(text.encode()) for text in _quoted(each)), default=0) + 1 for each in labels.values())
    return len(_header(list(labels))) + n_rows * sum(widths)


def rows_to_csv(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> bytes:
    """Write batches of dictionary-encoded text as a single CSV."""
    out = bytearray(_header(names))
    for batch in batches:
        labels = [column.dictionary.to_pylist() for column in batch.columns]
        if batch.num_rows:
            pieces = _pieces(labels)
            out += _lines(pieces, _places(pieces, [np.asarray(column.indices) for column in batch.columns]))
    return bytes(out)


def _header(names: Sequence[str]) -> bytes:
    return (",".join(_quoted(names)) + "\n").encode()


@dataclass(frozen=True)
class _Piece:
    """Neighbouring columns of a line.

    sizes:  number of labels of each column.
    texts:  of the combinations of labels; a label of the last column comes at every step.
    """

    sizes: tuple[int, ...]
    texts: pa.LargeStringArray = field(repr=False)


def _pieces(labels: Sequence[Sequence[str]]) -> list[_Piece]:
    """Return the pieces of a line. Each label is quoted once, and few combinations are joined once, not each cell."""
    ends = [*[","] * (len(labels) - 1), "\n"]
    pieces: list[tuple[tuple[int, ...], list[str]]] = []
    for values, end in zip(labels, ends[: len(labels)], strict=True):
        cells = [text + end for text in _quoted(values)]
        sizes, texts = pieces[-1] if pieces else ((), [])
        if pieces and len(texts) * len(cells) <= _MOST_TEXTS:
            pieces[-1] = ((*sizes, len(cells)), [text + cell for text in texts for cell in cells])
        else:
            pieces.append(((len(cells),), cells))
    return [_Piece(sizes, pa.array(texts, pa.large_string())) for sizes, texts in pieces]


def _places(pieces: Sequence[_Piece], codes: Sequence[Codes]) -> list[Codes]:
    """Return the place of each row's text among the texts of each piece."""
    columns, found = iter(codes), list[Codes]()
    for piece in pieces:
        places = np.zeros(len(codes[0]), dtype=np.int32)
        for size, column in zip(piece.sizes, islice(columns, len(piece.sizes)), strict=True):
            places *= np.int32(size)
            places += column.astype(np.int32, copy=False)
        found.append(places)
    return found


def _lines(pieces: Sequence[_Piece], places: Sequence[Codes]) -> pa.Buffer:
    """Join the texts of pieces to the text of some lines, one or more."""
    return _joined(pieces, places).buffers()[2]


def _joined(pieces: Sequence[_Piece], places: Sequence[Codes]) -> pa.LargeStringArray:
    """Join the texts of pieces to lines. places: of each line's texts, by piece."""
    taken = [piece.texts.take(pa.array(each)) for piece, each in zip(pieces, places, strict=True)]
    if len(taken) == 1:
        return taken[0]
    return pc.binary_join_element_wise(*taken, pa.scalar("", pa.large_string()))


def _quoted(values: Iterable[str]) -> list[str]:
    """Quote values according to RFC 4180, and the empty value (a line of a single empty value would be blank)."""
    return ['"' + v.replace('"', '""') + '"' if not v or _SPECIAL.search(v) else v for v in values]


def read_table(path: Path) -> Release:
    """Read a table of ours with all columns of its header. Raises PartyError."""
    content = path.read_bytes()
    return read_csv(content, csv_header(content), path.name)


def read_csv(content: bytes | Path, names: Sequence[str], name: str = RELEASED) -> Release:
    """Read a released table back. Raises PartyError unless the table has exactly the given columns.

    name:  the name of the table in errors; for a file the file's own name.
    """
    name = content.name if isinstance(content, Path) else name
    types = dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string()))
    convert = pa_csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False)
    parse = pa_csv.ParseOptions(newlines_in_values=True)
    try:
        source = pa.BufferReader(_owned(content)) if isinstance(content, bytes) else str(content)
        table = pa_csv.read_csv(source, parse_options=parse, convert_options=convert)
        found = table.column_names
        release = labelled_release(table) if found == list(names) else None
    except (pa.ArrowException, UnicodeDecodeError) as error:  # names are decoded when asked for
        raise _no_table(name, content) from error
    except OSError as error:
        raise PartyError("data-unreadable", f"{name} cannot be read", private=str(error)) from error
    if release is None:
        raise PartyError(
            "verification-failed",
            f"{name} has columns {', '.join(found)} where the job publishes {', '.join(names)}",
        )
    return release


def _owned(content: bytes) -> pa.Buffer:
    """Copy bytes into memory of Arrow.

    A thread of Arrow may be the last to let go of what it read. Memory of Python is freed by the interpreter alone: a
    thread that lets go of such memory while the interpreter ends would abort the process.
    """
    buffer = pa.allocate_buffer(len(content))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(content, np.uint8)
    return buffer


def require_canonical(content: bytes, release: Release, error_id: str, what: str) -> None:
    """Raise PartyError unless a file has exactly the bytes that its content is written as.

    Redundant quotes, other line ends, blank lines or a byte order mark would hold a text that nobody compares.
    """
    if csv_bytes(release) != content:
        raise PartyError(
            error_id, f"{what} has the values of a table, but not the bytes that are written of them"
        )


def _no_table(name: str, content: bytes | Path) -> PartyError:
    """Return the error for content that no release has. The error does not quote the content."""
    try:
        fault = _fault(content if isinstance(content, bytes) else content.read_bytes())
    except (OSError, csv.Error):
        fault = _NO_CSV
    return PartyError("verification-failed", f"{name} cannot be read as a table: {fault}")


_NO_CSV = "a release has CSV in UTF-8, with a header line"


def _fault(content: bytes) -> str:
    """Return the first fault of content that is no CSV of ours. Raises csv.Error."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return _NO_CSV
    rows = csv.reader(io.StringIO(text, newline=""))
    n_names = len(next(rows, []))
    for row in rows:
        if row and len(row) != n_names:
            return (
                f"line {rows.line_num} has {counted(len(row), 'value', 'values')}, and the header "
                f"{counted(n_names, 'name', 'names')}; a file that ends there may be cut off"
            )
    return _NO_CSV


def labelled_release(table: pa.Table) -> Release:
    """Return a table of dictionary-encoded text as a release."""
    whole = table.unify_dictionaries()
    return Release({name: _labelled(whole.column(name)) for name in whole.column_names})


def _labelled(column: pa.ChunkedArray) -> LabelledColumn:
    if column.num_chunks == 0:
        return LabelledColumn((), np.zeros(0, dtype=np.int64))
    codes = np.concatenate([np.asarray(chunk.indices) for chunk in column.chunks])
    return LabelledColumn(tuple(column.chunk(0).dictionary.to_pylist()), codes)


def same_rows(one: Release, other: Release, names: Sequence[str]) -> bool:
    """Return True if two tables hold the same multiset of rows on the given columns."""
    if one.n_records != other.n_records:
        return False
    pairs = [_common_codes(one.columns[name], other.columns[name]) for name in names]
    radices = [int(max(a.max(initial=0), b.max(initial=0))) + 1 for a, b in pairs]
    both = pack([np.concatenate(pair) for pair in pairs], radices)
    ours, theirs = both[: one.n_rows], both[one.n_rows :]
    if one.counts is None and other.counts is None:
        return bool((np.sort(ours) == np.sort(theirs)).all())
    kinds, kind = np.unique(both, return_inverse=True)
    n, counts = len(kinds), (one.counts, other.counts)
    parts = (kind[: one.n_rows], kind[one.n_rows :])
    held = [tally(part, times, n) for part, times in zip(parts, counts, strict=True)]
    return bool((held[0] == held[1]).all())


def _common_codes(one: LabelledColumn, other: LabelledColumn) -> tuple[Ints, Ints]:
    numbers = {label: i for i, label in enumerate(dict.fromkeys((*one.labels, *other.labels)))}

    def renumbered(column: LabelledColumn) -> Ints:
        return np.array([numbers[label] for label in column.labels] or [0], dtype=np.int64)[column.codes]

    return renumbered(one), renumbered(other)
