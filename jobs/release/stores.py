"""Forms in which a released table stands in a folder: one CSV file, or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from anonymize.release import Release, Rng, random_order
from anonymize.table import Codes
from jobs.data.arrow import pa, pa_csv
from jobs.release.csv import PARTS_OF_TABLE, csv_header, read_csv, require_canonical, write_csv


class Store(Protocol):
    """Form of a table in a folder."""

    def write(self, table: Release, folder: Path, name: str, rng: Rng) -> dict[str, dict[str, Any]]:
        """Write a table; return digest and size of its files, by name.

        rng:  draws the order of rows that have none.
        """
        ...

    def files(self, folder: Path, name: str) -> tuple[str, ...]:
        """Return the names of a table's files in a folder; empty if no table is there."""
        ...

    def read(self, path: Path, columns: Sequence[str]) -> Release:
        """Read a table. Raises PartyError unless the table has exactly the given columns."""
        ...

    def in_arrow(self, path: Path) -> pa.Table:
        """Return all columns of a table as text, with a row for each record."""
        ...

    def require_written(self, path: Path, table: Release) -> bool:
        """Raise PartyError unless the files have exactly the bytes that their content is written as.

        Return False if this program cannot tell.
        """
        ...


class _Csv:
    """Form of one CSV file, with a row for each record. Rows made of counts come in random order."""

    def write(self, table: Release, folder: Path, name: str, rng: Rng) -> dict[str, dict[str, Any]]:
        return {name: write_csv(table, folder / name, drawn_order(table, rng))}

    def files(self, folder: Path, name: str) -> tuple[str, ...]:
        return (name,) if (folder / name).is_file() else ()

    def read(self, path: Path, columns: Sequence[str]) -> Release:
        return read_csv(path, columns)

    def in_arrow(self, path: Path) -> pa.Table:
        with path.open("rb") as file:
            names = csv_header(file.readline())
        convert = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=[], strings_can_be_null=False
        )
        parse = pa_csv.ParseOptions(newlines_in_values=True)
        return pa_csv.read_csv(path, parse_options=parse, convert_options=convert)

    def require_written(self, path: Path, table: Release) -> bool:
        require_canonical(path.read_bytes(), table, "verification-failed", str(path))
        return True


def drawn_order(table: Release, rng: Rng) -> Codes | None:
    """Return the row of each line of a CSV: of a table made of counts, in random order; None for rows in order."""
    if table.counts is None:
        return None
    rows = np.repeat(np.arange(table.n_rows, dtype=np.int32), table.counts)
    order: Codes = rows[random_order(len(rows), rng)]
    return order


CSV: Store = _Csv()
"""Form of released tables unless the job says otherwise."""


def store_of(name: str) -> Store:
    """Return the form of a table, by the name of the table in a release."""
    if name != PARTS_OF_TABLE:
        return CSV
    from jobs.release.parts import PARTS

    return PARTS
