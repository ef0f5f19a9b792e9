"""Columns whose different numbers stay apart in pass 1. The grid cell of each number is found afterwards.

The spelling of a number is not kept: blanks, a plus sign or a redundant zero can identify the writer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import DataError
from anonymize.grid import Grid
from anonymize.release import LabelledColumn, narrowed
from anonymize.table import Codes, Ints
from jobs.data.coders import CodedColumn, Coder, ColumnPass, Numeric, canonical
from jobs.data.coding import Coded, Coding


def keeping(coding: Coding, names: Collection[str]) -> Coding:
    """Return a coding with codes for the different numbers of some numeric columns."""
    return replace(coding, coders={n: _Kept(c) if n in names else c for n, c in coding.coders.items()})


def coded_with_numbers(
    coded: Coded, coding: Coding, names: Collection[str]
) -> tuple[Coded, dict[str, LabelledColumn]]:
    """Return the result of pass 1 in the codes of the job, and the numbers of each named column, by row.

    Rows that differ only in a number stay apart.

    coded:  the result of pass 1 with the coding of :func:`keeping`.
    coding: the coding without kept numbers.
    """
    columns, numbers = dict(coded.columns), {}
    for name in names:
        column = columns[name]
        numbers[name] = narrowed(column.domain, column.codes)
        columns[name] = CodedColumn(coding.coders[name].begin().codes(column.domain)[column.codes])
    return replace(coded, columns=columns), numbers


@dataclass(frozen=True)
class _Kept:
    """Numeric column whose numbers stay apart. Codes number the numbers by their printed form."""

    cells: Coder

    @property
    def of_numbers(self) -> bool:
        return self.cells.of_numbers

    def begin(self) -> _Numbers:
        return _Numbers(self.cells.begin(), self.cells.grid if isinstance(self.cells, Numeric) else None)

    def lists(self, text: str) -> bool:
        return self.cells.lists(text)

    def refused(self, name: str, value: str, place: str) -> DataError:
        return self.cells.refused(name, value, place)


@dataclass
class _Numbers:
    cells: ColumnPass
    grid: Grid | None
    index: dict[str, int] = field(default_factory=dict, repr=False)

    def codes(self, values: Sequence[str]) -> Ints:
        cells = self.cells.codes(values)
        places = np.flatnonzero(cells >= 0).tolist()
        for place, number in zip(
            places, canonical([values[place] for place in places], self.grid), strict=True
        ):
            cells[place] = self.index.setdefault(number, len(self.index))
        return cells

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return self.cells.outside(values)

    def finished(self, codes: Codes) -> CodedColumn:
        return CodedColumn(codes, tuple(self.index))
