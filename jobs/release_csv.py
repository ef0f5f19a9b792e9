"""Released tables as CSV: writing, reading back, comparing."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np

from anonymize.release import LabelledColumn, Release
from anonymize.table import Codes, narrowest, pack, tally
from jobs.data.arrow import pa, pa_csv, pc
from jobs.errors import PartyError

TABLE, REPORT = "anonymized.csv", "report.json"
RELEASED = "the released table"
_CHUNK_ROWS = 1 << 17
_BLOCK_BYTES = 8 << 20
_QUOTED_AT_ONCE = 1 << 14
_SPECIAL = re.compile(r'[",\r\n]|^\s|\s$')


def csv_header(content: bytes) -> list[str]:
    """The column names of a CSV of ours. Raises PartyError."""
    try:
        text = io.StringIO(content.decode("utf-8"), newline="")
        return next(csv.reader(text), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(RELEASED, error) from error


def write_csv(release: Release, path: Path) -> None:
    """Write a release as CSV: UTF-8, header, values quoted where they need it."""
    with path.open("wb") as file:
        file.writelines(_csv_of(release))


def csv_bytes(release: Release) -> bytes:
    """A release as CSV, in memory."""
    return b"".join(_csv_of(release))


def _csv_of(release: Release) -> Iterator[bytes]:
    """A release as CSV, piece by piece: each entry is made a line once, however often it stands there."""
    columns = list(release.columns.values())
    cells = _cells([c.labels for c in columns])
    yield _header(list(release.columns))
    for start in range(0, release.n_rows, _CHUNK_ROWS):
        entries = release.entries_of_rows(start, start + _CHUNK_ROWS)
        first, last = int(entries[0]), int(entries[-1])
        lines = _lines(cells, [c.codes[first : last + 1] for c in columns])
        yield _text(lines.take(pa.array(entries - first)))


def most_csv_bytes(labels: Mapping[str, Sequence[str]], n_rows: int) -> int:
    """The most that a CSV of ours takes whose columns have these labels; by column name."""
    widths = (max((len(text.encode()) for text in _quoted(each)), default=0) + 1 for each in labels.values())
    return len(_header(list(labels))) + n_rows * sum(widths)


def rows_to_csv(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> bytes:
    """Write batches of dictionary-encoded text as one CSV."""
    out = bytearray(_header(names))
    for batch in batches:
        labels = [column.dictionary.to_pylist() for column in batch.columns]
        out += _text(_lines(_cells(labels), [np.asarray(column.indices) for column in batch.columns]))
    return bytes(out)


def _header(names: Sequence[str]) -> bytes:
    return (",".join(_quoted(names)) + "\n").encode()


def _cells(labels: Sequence[Sequence[str]]) -> list[pa.LargeStringArray]:
    """By column its labels as they stand in a line: each is quoted once, not each cell."""
    ends = [*[","] * (len(labels) - 1), "\n"]
    return [_cells_of(values, end) for values, end in zip(labels, ends[: len(labels)], strict=True)]


def _cells_of(labels: Sequence[str], end: str) -> pa.LargeStringArray:
    """Some labels at a time: of as many as there are rows, not all are objects of Python at once."""
    texts, parts = iter(labels), [pa.array([], pa.large_string())]
    while some := list(islice(texts, _QUOTED_AT_ONCE)):
        parts.append(pa.array([text + end for text in _quoted(some)], pa.large_string()))
    return pa.concat_arrays(parts)


def _lines(cells: Sequence[pa.LargeStringArray], codes: Sequence[Codes]) -> pa.LargeStringArray:
    """Join columns to lines."""
    taken = [texts.take(pa.array(places)) for texts, places in zip(cells, codes, strict=True)]
    return pc.binary_join_element_wise(*taken, pa.scalar("", pa.large_string()))


def _text(lines: pa.LargeStringArray) -> bytes:
    """All lines, one behind the other; lines: as a kernel made them."""
    return bytes(lines.buffers()[2]) if len(lines) else b""


def _quoted(values: Iterable[str]) -> list[str]:
    """Quote what RFC 4180 wants quoted, and the empty value (a line of one empty value would be blank)."""
    return ['"' + v.replace('"', '""') + '"' if not v or _SPECIAL.search(v) else v for v in values]


def read_csv(content: bytes | Path, names: Sequence[str], name: str = RELEASED) -> Release:
    """Read a table of ours back, an entry for each row; it must have exactly these columns. Raises PartyError.

    name:  what the table is called in errors; of a file its own name.
    """
    batches = list(csv_batches(content, names, name))
    schema = pa.schema([(name, label_type()) for name in names])
    return labelled_release(pa.Table.from_batches(batches, schema))


def csv_batches(
    content: bytes | Path, names: Sequence[str], name: str = RELEASED
) -> Iterator[pa.RecordBatch]:
    """The same batch by batch, as dictionary-encoded text."""
    name = content.name if isinstance(content, Path) else name
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, label_type()), null_values=[], strings_can_be_null=False
    )
    read = pa_csv.ReadOptions(block_size=_BLOCK_BYTES)
    parse = pa_csv.ParseOptions(newlines_in_values=True)
    with readable(name):
        source = pa.BufferReader(content) if isinstance(content, bytes) else str(content)
        with pa_csv.open_csv(source, read, parse, convert) as reader:
            require_columns(reader.schema.names, names, name)  # names are decoded when asked for
            yield from reader


def label_type() -> pa.DictionaryType:
    """The type of every column, as it is read and written."""
    return pa.dictionary(pa.int32(), pa.string())


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn whatever a reader raises over a table that it cannot make sense of into PartyError.

    What the operating system says (no permission, a disk that fails) is not about the table, and stays what it is.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise _unreadable(name, error) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(name, error) from error


def require_columns(found: Sequence[str], names: Sequence[str], name: str) -> None:
    """Raise PartyError unless the table called ``name`` has exactly these columns."""
    if list(found) != list(names):
        raise PartyError(
            "verification-failed",
            f"{name} has columns {', '.join(found)} where the job publishes {', '.join(names)}",
        )


def _unreadable(name: str, error: Exception) -> PartyError:
    return PartyError("verification-failed", f"{name} cannot be read as a table", private=str(error))


def labelled_release(table: pa.Table) -> Release:
    """A table of dictionary-encoded text as a release."""
    whole = table.unify_dictionaries()
    return Release({name: _labelled(whole.column(name)) for name in whole.column_names})


def _labelled(column: pa.ChunkedArray) -> LabelledColumn:
    if column.num_chunks == 0:
        return LabelledColumn((), np.zeros(0, dtype=np.int64))
    codes = np.concatenate([np.asarray(chunk.indices) for chunk in column.chunks])
    return LabelledColumn(tuple(column.chunk(0).dictionary.to_pylist()), codes)


def same_rows(one: Release, other: Release, names: Sequence[str]) -> bool:
    """Return whether two tables hold the same multiset of rows on these columns."""
    if one.n_rows != other.n_rows:
        return False
    pairs = [_common_codes(one.columns[name], other.columns[name]) for name in names]
    radices = [int(max(a.max(initial=0), b.max(initial=0))) + 1 for a, b in pairs]
    rows, row = np.unique(pack([np.concatenate(pair) for pair in pairs], radices), return_inverse=True)
    ours = tally(row[: one.n_entries], one.weights, len(rows))
    theirs = tally(row[one.n_entries :], other.weights, len(rows))
    return np.array_equal(ours, theirs)


def _common_codes(one: LabelledColumn, other: LabelledColumn) -> tuple[Codes, Codes]:
    numbers = {label: i for i, label in enumerate(dict.fromkeys((*one.labels, *other.labels)))}

    def renumbered(column: LabelledColumn) -> Codes:
        by_code = np.array([numbers[label] for label in column.labels] or [0], dtype=narrowest(len(numbers)))
        return by_code[column.codes]

    return renumbered(one), renumbered(other)
