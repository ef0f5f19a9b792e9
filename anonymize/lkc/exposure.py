"""Exposure: information in the release for a vertical party about people known to it (semantics §4, §7).

The party knows the generalized record and the class of every matched person, and so the person's *cell*: the rows
that agree on all quasi-identifiers and the class. L does not bound this knowledge. The module counts, from the
released table alone, what the cell reveals about a person's other columns.
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
    """Records by the exposure of their cell. A cell is *homogeneous* if one of the three conditions holds.

    cells:        number of cells.
    alone:        records alone in their cell, with all columns known.
    one_value:    per sensitive column, records in cells with a single value.
    above_c:      per sensitive column, records in cells where a protected value is more frequent than C.
    homogeneous:  records in homogeneous cells.
    """

    cells: int
    alone: int
    one_value: dict[str, int]
    above_c: dict[str, int]
    homogeneous: int


def measure_exposure(release: Release, columns: Sequence[str], bounds: Sequence[Bound]) -> Exposure:
    """Count the records in homogeneous cells.

    columns:  the quasi-identifiers and the class. bounds: for each sensitive column, with its C.
    """
    codes = [label_codes(release.columns[name]) for name in columns]
    kinds, cell = np.unique(number_rows(codes, release.n_rows), return_inverse=True)
    sizes = tally(cell, release.counts, len(kinds))
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
    """Return the cells with a single value of a sensitive column; shape (n_cells,)."""
    values = label_codes(release.columns[bound.column])
    n_values = int(values.max(initial=0)) + 1
    different = np.bincount(np.unique(cell * n_values + values) // n_values, minlength=len(sizes))
    one: NDArray[np.bool_] = different == 1
    return one


def _above_c(release: Release, bound: Bound, cell: Ints, sizes: Ints) -> NDArray[np.bool_]:
    """Return the cells where a protected value is more frequent than C; shape (n_cells,)."""
    column = release.columns[bound.column]
    above = np.zeros(len(sizes), dtype=bool)
    criterion = Confidence(bound.column, 0, (0,), bound.confidence)
    (held,) = criterion.tallies
    for value in sorted(bound.values):
        holds = np.array([label == value for label in column.labels], dtype=np.int64)[column.codes]
        n_held = holds if release.counts is None else holds * release.counts
        above |= ~met_by_group(criterion, {RECORDS: sizes, held: tally(cell, n_held, len(sizes))})
    return above
