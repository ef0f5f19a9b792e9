"""Released counts as a file: writing and reading back.

`counts.csv` has the job's columns in order, generalized, and the noisy count of each cell, which may be negative.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from anonymize.dp.noisy_table import NoisyTable, as_records, norm_sub
from anonymize.release import LabelledColumn, Release
from anonymize.table import Ints
from jobs.dp.settings import COUNT
from jobs.errors import PartyError
from jobs.release.csv import csv_bytes, read_csv


def counts_csv(table: NoisyTable, names: Sequence[str]) -> bytes:
    """Return the released cells with their counts; ``names``: the published columns in order."""
    return csv_bytes(with_counts(table.cells.ordered(names), table.counts))


def with_counts(cells: Release, counts: Ints) -> Release:
    """Return a table of cells with the column of their counts."""
    values, codes = np.unique(counts, return_inverse=True)
    labels = tuple(map(str, values.tolist()))
    return Release({**cells.columns, COUNT: LabelledColumn(labels, codes)})


def read_counts(content: bytes | Path, names: Sequence[str]) -> tuple[Release, Ints]:
    """Read cells and counts back. Raises PartyError for different columns, or a count that is not an integer."""
    release = read_csv(content, [*names, COUNT], COUNTS)
    column = release.columns[COUNT]
    if not all(_INTEGER.fullmatch(label) for label in column.labels):
        raise _wrong(f"column {COUNT} has a value that is not an integer")
    values = np.array([int(label) for label in column.labels] or [0], dtype=np.int64)
    return release.ordered(names), values[column.codes]


def rows_csv(table: NoisyTable, names: Sequence[str]) -> bytes:
    """Return rows instead of counts, in the order of the cells; the rows follow from the counts."""
    ordered = NoisyTable(table.cells.ordered(names), table.counts, table.n_cells, table.threshold)
    return csv_bytes(as_records(ordered))


def are_rows_of(content: bytes, table: NoisyTable, names: Sequence[str]) -> bool:
    """Return whether a file has the rows made of the counts; as many as the file has lines are made at most."""
    n_rows = sum(norm_sub(table.counts).tolist())
    return content.count(b"\n") > n_rows and content == rows_csv(table, names)


COUNTS = "counts.csv"


_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def _wrong(what: str) -> PartyError:
    return PartyError("verification-failed", what)
