"""A table of an SQLite database, read with Python's own library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from jobs.data.arrow import pa, pc
from jobs.data.errors import unreadable
from jobs.data.sources import FileSource
from jobs.data.sql.engine import quoted

MAGIC = b"SQLite format 3\0"
_ROWS = 1 << 16


@dataclass(frozen=True)
class Sqlite(FileSource):
    """Cells have types of their own: numbers are written as those of Parquet files are, null is empty text."""

    table: str

    def settings(self) -> dict[str, Any]:
        return {"duckdb": {"path": self.identity, "table": self.table}}

    def _names(self) -> list[str]:
        query = f"SELECT * FROM {quoted(self.table)} LIMIT 0"  # noqa: S608
        with self._told(), closing(self._opened()) as database:
            return [name for name, *_ in database.execute(query).description]

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        query = f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(self.table)}"  # noqa: S608
        with self._told(), closing(self._opened()) as database:
            found = database.execute(query)
            while rows := found.fetchmany(_ROWS):
                texts = [pa.array([_text(cell) for cell in cells]) for cells in zip(*rows, strict=True)]
                yield pa.RecordBatch.from_arrays(
                    [column.dictionary_encode() for column in texts], list(columns)
                )

    def _opened(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{quote(str(self.path.resolve()))}?mode=ro", uri=True)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the library cannot do, in its words for the owner alone."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise unreadable(str(error)) from error


def _text(cell: object) -> str:
    """Raises UnicodeDecodeError for bytes that are no text."""
    if isinstance(cell, float):
        return str(pc.cast(pa.scalar(cell, pa.float64()), pa.string()).as_py())
    return "" if cell is None else cell.decode() if isinstance(cell, bytes) else str(cell)
