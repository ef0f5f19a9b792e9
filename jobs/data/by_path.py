"""Which source a path alone names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from jobs.data.arrow_file import ArrowFile
from jobs.data.sources import Csv, Parquet, Source
from jobs.data.sql.duck_tables import MEMORY_LIMIT, DuckDb, is_many

_BY_SUFFIX: Mapping[str, Callable[[Path], Source]] = {
    ".parquet": Parquet,
    ".feather": ArrowFile,
    ".arrow": ArrowFile,
}


def source_of_path(
    path: Path, delimiter: str = ",", table: str | None = None, memory_limit: str | None = None
) -> Source:
    """A table by its path: .parquet, .feather or .arrow, or CSV; with DuckDB a folder, a pattern, or a table of a
    database.

    memory_limit:  a file, too, is read with DuckDB, within so much memory.
    """
    if table is not None or memory_limit is not None or is_many(path):
        return DuckDb(path, memory_limit or MEMORY_LIMIT, delimiter, table)
    kind = _BY_SUFFIX.get(path.suffix.lower())
    return Csv(path, delimiter) if kind is None else kind(path)
