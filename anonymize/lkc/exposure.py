"""Exposure: what a party of a vertical run can read off the release about people it knows (semantics §4, §7).

Such a party knows of every matched person the whole generalized record and the class, so the *cell*: the
rows that agree on all quasi-identifiers and the class. L does not bound it. What the cell tells about a
person's other columns is counted here, from the released table alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.clear import met_by_group
from anonymize.criteria.confidence import Confidence
from anonymize.criteria.criterion import RECORDS
from anonymize.release import Release
from anonymize.table import Ints, tally
from anonymize.verification.tables import Bound, label_codes, number_rows


@dataclass(frozen=True)
class Exposure:
    """Records by what their cell gives away; a cell is *homogeneous* if any of the three holds.

    cells:        number of cells.
    alone:        records that are the only ones of their cell: all their columns are known.
    one_value:    per sensitive column, records in cells that have one value of it only.
    above_c:      per sensitive column, records in cells in which a protected value is more frequent than C.
    homogeneous:  records in homogeneous cells.
    """

    cells: int
    alone: int
    one_value: dict[str, int]
    above_c: dict[str, int]
    homogeneous: int


def measure_exposure(release: Release, columns: Sequence[str], bounds: Sequence[Bound]) -> Exposure:
    """Count the records in homogeneous cells.

    columns:  the quasi-identifiers and the class. bounds: one for each sensitive column, with its C.
    """
    codes = [label_codes(release.columns[name]) for name in columns]
    _, cell, sizes = np.unique(number_rows(codes, release.n_rows), return_inverse=True, return_counts=True)
    one_value = {b.column: _one_value(release, b, cell, sizes) for b in bounds}
    above_c = {b.column: _above_c(release, b, cell, sizes) for b in bounds}
    homogeneous = np.logical_or.reduce([sizes == 1, *one_value.values(), *above_c.values()])
    return Exposure(
        cells=len(sizes),
        alone=int(sizes[sizes == 1].sum()),
        one_value={name: int(sizes[told].sum()) for name, told in one_value.items()},
        above_c={name: int(sizes[told].sum()) for name, told in above_c.items()},
        homogeneous=int(sizes[homogeneous].sum()),
    )


def _one_value(release: Release, bound: Bound, cell: Ints, sizes: Ints) -> NDArray[np.bool_]:
    """Return the cells that have one value of a sensitive column only; shape (n_cells,)."""
    values = label_codes(release.columns[bound.column])
    n_values = int(values.max(initial=0)) + 1
    different = np.bincount(np.unique(cell * n_values + values) // n_values, minlength=len(sizes))
    one: NDArray[np.bool_] = different == 1
    return one


def _above_c(release: Release, bound: Bound, cell: Ints, sizes: Ints) -> NDArray[np.bool_]:
    """In which cells a protected value is more frequent than C; shape (n_cells,)."""
    column = release.columns[bound.column]
    above = np.zeros(len(sizes), dtype=bool)
    criterion = Confidence(bound.column, 0, (0,), bound.confidence)
    (held,) = criterion.tallies
    for value in sorted(bound.values):
        holds = np.array([label == value for label in column.labels], dtype=np.int64)[column.codes]
        above |= ~met_by_group(criterion, {RECORDS: sizes, held: tally(cell, holds, len(sizes))})
    return above
