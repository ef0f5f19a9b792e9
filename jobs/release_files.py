"""The tables of a release in its folder: each is one CSV, or Parquet in parts.

In parts the table ``anonymized.csv`` is the folder ``anonymized`` with ``part-00000.parquet``, ``part-00001.parquet``
and so on: the same rows in the same order, every column text as the CSV has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from anonymize.release import Release
from anonymize.table import Ints
from jobs.data.arrow import pa, pq
from jobs.errors import PartyError
from jobs.release_csv import csv_batches, label_type, readable, require_columns, write_csv
from jobs.rows_counted import counted_rows
from jobs.sums import folder_of_parts, table_of

_GROUP_ROWS = 1 << 20
"""Rows of a row group: of a part no more are in memory at once."""


def write_table(release: Release, folder: Path, table: str, part_rows: int | None) -> tuple[str, ...]:
    """Write a table into the folder of a release; return the names of its files there.

    table:      the name that it has as CSV. part_rows: rows of each part but the last; None: write CSV.
    """
    if part_rows is None:
        write_csv(release, folder / table)
        return (table,)
    (folder / folder_of_parts(table)).mkdir()
    names: list[str] = []
    for start in range(0, release.n_rows, part_rows):
        names.append(f"{folder_of_parts(table)}/part-{len(names):05d}.parquet")
        _write_part(release, folder / names[-1], start, min(start + part_rows, release.n_rows))
    return tuple(names)


def _write_part(release: Release, path: Path, start: int, stop: int) -> None:
    """The rows from ``start`` to below ``stop``."""
    labels = [pa.array(column.labels, pa.string()) for column in release.columns.values()]
    schema = pa.schema([pa.field(name, label_type(), nullable=False) for name in release.columns])
    with (
        path.open("wb") as file,
        pq.ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer,
    ):
        for first in range(start, stop, _GROUP_ROWS):
            entries = release.entries_of_rows(first, min(first + _GROUP_ROWS, stop))
            writer.write_batch(_batch(release, labels, entries, schema))


def _batch(release: Release, labels: Sequence[pa.Array], entries: Ints, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(column.codes[entries], pa.int32()), texts)
        for column, texts in zip(release.columns.values(), labels, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def read_table(
    folder: Path, table: str, names: Sequence[str], wanted: Sequence[str] | None = None
) -> Release:
    """Read a table of a release back: its different rows, with how many there are of each.

    table:   the name that it has as CSV. wanted: as :func:`jobs.rows_counted.counted_rows` has it.

    Raises PartyError for a table that is not there, there twice, or not one of these columns.
    """
    place = place_of(folder, table)
    if not place.is_dir():
        return read_csv_counted(place, names, wanted)
    if (folder / table).exists():
        raise PartyError("verification-failed", f"there are two tables: {folder / table} and {place}")
    return counted_rows(_batches_of_parts(place, table, names), names, wanted)


def place_of(folder: Path, table: str) -> Path:
    """Where a table of a release is, or would be: the folder of its parts, if there is one; else a CSV."""
    parts = folder / folder_of_parts(table)
    return parts if parts.is_dir() else folder / table


def read_csv_counted(path: Path, names: Sequence[str], wanted: Sequence[str] | None = None) -> Release:
    """The same of a CSV wherever it is."""
    if not path.is_file():
        raise PartyError("file-missing", f"there is no table at {path}")
    return counted_rows(csv_batches(path, names), names, wanted)


def _batches_of_parts(parts: Path, table: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    found = sorted(parts.iterdir())
    if not found:
        raise PartyError("file-missing", f"there is no part of a table in {parts}")
    for path in found:
        name = f"{parts.name}/{path.name}"
        if table_of(name) != table or not path.is_file():
            raise PartyError("verification-failed", f"{path} is no part of a table")
        with readable(name):
            _require_text_columns(pq.read_schema(path), names, name)
            with pq.ParquetFile(path, read_dictionary=list(names)) as file:
                for batch in file.iter_batches(_GROUP_ROWS):
                    _require_text(
                        not any(c.null_count or c.dictionary.null_count for c in batch.columns), name
                    )
                    yield batch


def _require_text_columns(schema: pa.Schema, names: Sequence[str], name: str) -> None:
    """Raise PartyError unless a part has exactly these columns, all of text."""
    require_columns(schema.names, names, name)
    _require_text(all(kind == pa.string() for kind in schema.types), name)


def _require_text(is_met: bool, name: str) -> None:
    if not is_met:
        raise PartyError("verification-failed", f"{name} has cells that are no text")
