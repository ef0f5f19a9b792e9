"""Order between columns of drawn rows: no row ends before its beginning.

The draw keeps an order only as far as the measured tables show the order. Rows that break the order are mended
afterwards, or counted. Both use drawn rows alone, and cost no ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anonymize.dates import DateGrid
from anonymize.grid import Grid
from anonymize.release import Release, narrowed
from anonymize.table import Ints, QidColumn

Texts = NDArray[np.object_]


def in_order(release: Release, columns: Sequence[QidColumn]) -> tuple[Release, list[int]]:
    """Return the rows with values in the order of the columns, and the number of mended rows of each pair.

    A row with a later value below the earlier value gets the earlier value in both columns. If the later column's
    domain lacks the earlier value, both columns get the later value, or the least value of both domains. Rows with a
    missing value stay.

    columns:  columns of numbers or dates that print alike, with overlapping domains.
    """
    texts = {column.name: _texts(release, column.name) for column in columns}
    broken = []
    for before, after in pairwise(columns):
        broken.append(_mend(texts[before.name], texts[after.name], _grid(before), _grid(after)))
    mended = {}
    for name, found in texts.items():
        labels, codes = np.unique(found.astype(str), return_inverse=True)
        mended[name] = narrowed(tuple(labels.tolist()), codes.astype(np.int64))
    return Release({**release.columns, **mended}), broken


def days_of(release: Release, column: QidColumn) -> NDArray[np.float64]:
    """Return the number of the day of each row of a column of dates; NaN for a missing date."""
    grid, found = _grid(column), release.columns[column.name]
    assert isinstance(grid, DateGrid), "a column of dates"
    numbers = np.array([grid.number(label) for label in found.labels], dtype=np.float64)
    return np.floor_divide(numbers, grid.per_day)[found.codes]


def are_in_order(columns: Sequence[QidColumn]) -> bool:
    """Return True if columns can be ordered: they print alike, and the domains of neighbours overlap."""
    grids = [column.values for column in columns]
    forms = {_form(grid) for grid in grids if isinstance(grid, Grid)}
    if len(forms) != 1 or not all(isinstance(grid, Grid) for grid in grids):
        return False
    return all(_least(a, b) is not None for a, b in pairwise(map(_grid, columns)))


def _form(grid: Grid) -> tuple[object, ...]:
    """Return the form in which numbers of a grid print."""
    return (grid.form, grid.timed) if isinstance(grid, DateGrid) else (grid.decimals,)


def _grid(column: QidColumn) -> Grid:
    assert isinstance(column.values, Grid), "the job allows columns of numbers and dates alone"
    return column.values


def _texts(release: Release, name: str) -> Texts:
    column = release.columns[name]
    return np.array(column.labels, dtype=object)[column.codes]


def _least(low: Grid, high: Grid) -> int | None:
    """Return the least number of both domains, in units of the grids; None if there is none."""
    start, end = max(low.units[0], high.units[0]), min(low.units[-1], high.units[-1])
    return start if start < end else None


def _mend(first: Texts, second: Texts, low: Grid, high: Grid) -> int:
    """Put the values of a pair of columns in order, in place; return the number of changed rows."""
    begins, ends = _numbers(first, low), _numbers(second, high)
    wrong: Ints = np.flatnonzero(ends < begins)  # never with a missing value
    least = _least(low, high)
    assert least is not None, "domains that overlap"
    both = np.full(len(wrong), low.text(least), dtype=object)
    both = np.where(low.cells(ends[wrong]) >= 0, second[wrong], both)
    both = np.where(high.cells(begins[wrong]) >= 0, first[wrong], both)
    first[wrong] = second[wrong] = both
    return len(wrong)


def _numbers(texts: Texts, grid: Grid) -> NDArray[np.float64]:
    """Return the numbers of printed values; NaN for a missing value."""
    labels, places = np.unique(texts.astype(str), return_inverse=True)
    read = grid.number if isinstance(grid, DateGrid) else float
    found: NDArray[np.float64] = np.array([read(label) if label else np.nan for label in labels])[places]
    return found
