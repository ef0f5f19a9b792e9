"""Released table as a folder of Parquet files, for tables larger than memory.

Rows come in the order of their printed values, so the order tells nothing beyond the table. A row is expanded from
its count only while it is written. Readers let DuckDB count equal rows within a bound of memory, and
beyond the bound on disk.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.release import LabelledColumn, Release, Rng
from anonymize.table import Ints
from jobs.data.arrow import pa, pq
from jobs.data.database import quoted
from jobs.data.duckdb import connected
from jobs.data.duckdb_files import files_as_sql
from jobs.errors import PartyError
from jobs.release.csv import labelled_release
from jobs.release.sums import fields_of_file

PART_ROWS = 1 << 24
"""Rows of each part but the last."""
_GROUP_ROWS = 1 << 20
_MAGIC = b"PAR1"
_ARROW = re.compile(r"parquet-cpp-arrow version [0-9]{1,3}(?:\.[0-9]{1,3}){2}(?:-SNAPSHOT)?")
_MEMORY = "2GB"
"""Memory for counting equal rows; beyond it the counts go to disk."""


class _Parts:
    """Folder of Parquet files."""

    def write(self, table: Release, folder: Path, name: str, rng: Rng) -> dict[str, dict[str, Any]]:
        (folder / name).mkdir()
        files = {}
        for number, part in enumerate(_parts(table), 1):
            path = folder / name / _name(number)
            _write(table, part, path)
            files[f"{name}/{path.name}"] = fields_of_file(path)
        return files

    def files(self, folder: Path, name: str) -> tuple[str, ...]:
        return tuple(f"{name}/{path.name}" for path in parts_in(folder / name))

    def read(self, path: Path, columns: Sequence[str]) -> Release:
        parts = parts_in(path)
        for part in parts:
            _check(part, columns)
        return _counted(parts, columns).merged()

    def in_arrow(self, path: Path) -> pa.Table:
        return pq.read_table(path)

    def require_written(self, path: Path, table: Release) -> bool:
        found, parts = parts_in(path), list(_parts(table))
        for part in found:
            _require_dense(part)
        if any(pq.read_metadata(part).created_by != _created_by() for part in found):
            return False  # another version of Arrow may write other bytes
        if len(found) != len(parts) or any(
            fields_of_file(part)["sha256"] != _digest(table, rows)
            for part, rows in zip(found, parts, strict=True)
        ):
            raise PartyError(
                "verification-failed",
                f"{path} has the values of a table, but not the bytes that are written of them",
            )
        return True


PARTS = _Parts()


def parts_in(folder: Path) -> list[Path]:
    """Return the files of a table in a folder, in order. Raises PartyError for another file, or a missing part."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    for number, path in enumerate(found, 1):
        if path.name != _name(number) or not path.is_file() or path.is_symlink():
            raise _no_part(path)
    return found


def _name(number: int) -> str:
    """Return the name of a part. number: from 1."""
    return f"part-{number:05}.parquet"


def _no_part(path: Path, private: str = "") -> PartyError:
    return PartyError("verification-failed", f"{path} is no part of a released table", private=private)


def _parts(table: Release) -> Iterator[range]:
    """Yield the records of each part."""
    for start in range(0, table.n_records, PART_ROWS):
        yield range(start, min(start + PART_ROWS, table.n_records))


def _write(table: Release, records: range, file: Any) -> None:
    """Write some records of a table, by number. file: a path, or an open file."""
    assert table.counts is not None
    ends = np.cumsum(table.counts)
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([pa.field(name, kind, nullable=False) for name in table.columns])
    with pq.ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer:
        for start in range(records.start, records.stop, _GROUP_ROWS):
            stop = min(start + _GROUP_ROWS, records.stop)
            rows, times = _rows_between(table.counts, ends, start, stop)
            columns = [_cells(column, rows, times) for column in table.columns.values()]
            writer.write_batch(pa.record_batch(columns, schema=schema), row_group_size=_GROUP_ROWS)


def _rows_between(counts: Ints, ends: Ints, start: int, stop: int) -> tuple[Ints, Ints]:
    """Return the rows that stand for the records from ``start`` up to ``stop``, and the records of each.

    counts, ends:  records of each row, and their running sum: int64, shape (n_rows,).
    """
    rows = np.arange(np.searchsorted(ends, start, "right"), np.searchsorted(ends, stop) + 1)
    return rows, np.minimum(ends[rows], stop) - np.maximum(ends[rows] - counts[rows], start)


def _cells(column: LabelledColumn, rows: Ints, times: Ints) -> pa.DictionaryArray:
    """Return the cells of some rows, each as often as said. The labels are those of the rows alone."""
    present, codes = np.unique(column.codes[rows], return_inverse=True)
    labels = pa.array([column.labels[code] for code in present.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(np.repeat(codes.astype(np.int32), times)), labels)


def _digest(table: Release, records: range) -> str:
    """Return the digest of a part as this program writes it."""
    file = io.BytesIO()
    _write(table, records, file)
    return hashlib.sha256(file.getbuffer()).hexdigest()


def _created_by() -> str:
    """Return the name and version that this program's Arrow writes into files."""
    file = io.BytesIO()
    pq.write_table(pa.table({"": pa.array([], pa.string())}), file)
    return str(pq.read_metadata(file).created_by)


def _check(part: Path, columns: Sequence[str]) -> None:
    """Raise PartyError unless a part has exactly the given columns of text, and no text beside them."""
    try:
        schema, beside = pq.read_schema(part), pq.read_metadata(part).metadata
    except (pa.ArrowException, OSError) as error:
        raise _no_part(part, str(error)) from error
    wanted = pa.schema([pa.field(name, pa.string(), nullable=False) for name in columns])
    if beside or not schema.equals(wanted, check_metadata=True):
        raise PartyError(
            "verification-failed",
            f"{part} has other columns than the job publishes, or texts beside them: {', '.join(columns)}",
        )


def _require_dense(part: Path) -> None:
    """Raise PartyError unless Arrow wrote a part, and each byte belongs to a column or to the footer."""
    about, end = pq.read_metadata(part), len(_MAGIC)
    for group in range(about.num_row_groups):
        for number in range(about.num_columns):
            column = about.row_group(group).column(number)
            begin = column.dictionary_page_offset or column.data_page_offset
            if begin != end:
                raise _no_part(part)
            end += column.total_compressed_size
    footer = about.serialized_size + 4 + len(_MAGIC)
    if end + footer != part.stat().st_size or not _ARROW.fullmatch(about.created_by):
        raise _no_part(part)


def _counted(parts: Sequence[Path], columns: Sequence[str]) -> Release:
    """Return the different rows of all parts, with their numbers of records. Raises PartyError."""
    names = ", ".join(map(quoted, columns))
    table = f"read_parquet({files_as_sql(parts)}, hive_partitioning = false)"
    with connected(_MEMORY, partial(_no_part, parts[0].parent)) as connection:
        found = connection.sql(f"SELECT {names}, count(*) FROM {table} GROUP BY ALL").to_arrow_table()  # noqa: S608 (quoted)
    *texts, counts = found.columns
    encoded = pa.table([text.cast(pa.string()).dictionary_encode() for text in texts], names=list(columns))
    return replace(labelled_release(encoded), counts=np.asarray(counts, np.int64))
