"""Text of a CSV in blocks that are read side by side. A text without quotes has a row on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

from jobs.data.arrow import pa, pa_csv
from jobs.data.dialect import Dialect, open_bytes
from jobs.data.threaded import mapped

_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?+[\r\n]*[^\r\n]+[\r\n]+")
_LOOK_BYTES, _SEARCHED_BYTES = 1 << 12, 1 << 18


def has_quote(path: Path, dialect: Dialect) -> bool:
    """Return True if a file has a quote. Raises OSError."""
    quote = dialect.quote.encode()
    with open_bytes(path) as file:
        return any(quote in block for block in iter(partial(file.read, _SEARCHED_BYTES), b""))


def batches_of_lines(
    path: Path, dialect: Dialect, convert: pa_csv.ConvertOptions, n_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Read a CSV in UTF-8 without quotes, in blocks of some bytes. Raises OSError and pyarrow's errors."""
    parse = pa_csv.ParseOptions(delimiter=dialect.separator, quote_char=False)
    with open_bytes(path) as file:
        yield from mapped(partial(_batch, parse, convert), _blocks(file, n_bytes))


def _batch(parse: pa_csv.ParseOptions, convert: pa_csv.ConvertOptions, block: pa.Buffer) -> pa.RecordBatch:
    """Read the rows of a block."""
    read = pa_csv.ReadOptions(use_threads=False, block_size=block.size)
    table = pa_csv.read_csv(pa.BufferReader(block), read, parse, convert)
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, table.column_names)


def _blocks(file: IO[bytes], n_bytes: int) -> Iterator[pa.Buffer]:
    """Yield blocks of whole lines, each behind the header.

    Blocks are memory of Arrow, since a thread of Arrow may be the last to let go of a block
    (:func:`jobs.release.csv.read_csv`).
    """
    header, rest, is_last = b"", b"", False
    while not is_last:
        begin = len(header) + len(rest)
        block = pa.allocate_buffer(begin + n_bytes)
        view = memoryview(block).cast("B")
        view[:begin] = header + rest
        end = begin + _fill(view[begin:], file)
        is_last = end < len(view)
        cut = end if is_last else _end_of_lines(view, len(header), end)
        if not header:
            found = _HEADER.match(view[:cut])
            header = found[0] if found else b""
            cut = cut if found else 0
        if cut > len(header):
            yield block.slice(0, cut)
        rest = bytes(view[cut:end])


def _fill(view: memoryview, file: IO[bytes]) -> int:
    """Read a file into a view, to the end of either; return the number of bytes."""
    size = 0
    while size < len(view) and (n := file.readinto(view[size:])):  # type: ignore[attr-defined]
        size += n
    return size


def _end_of_lines(view: memoryview, begin: int, end: int) -> int:
    """Return the end of the last whole line between two places, or the first place."""
    size = _LOOK_BYTES
    while True:
        first = max(begin, end - size)
        tail = bytes(view[first:end])
        found = max(tail.rfind(b"\n"), tail.rfind(b"\r"))
        if found >= 0 or first == begin:
            return first + found + 1
        size *= 2
