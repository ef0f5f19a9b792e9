"""Rows of a table that break an order of two columns: 3 rows with a discharge before the admission. For the owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobs.data.arrow import pa
from jobs.data.streaming import Streamed

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class OrderedPair:
    """Rows with a value in both of two columns.

    below:  rows with the later column below the earlier one. above: rows with the later column above.
    """

    earlier: str
    later: str
    rows: int
    below: int
    above: int


def count_pairs(
    source: Streamed, pairs: Sequence[tuple[str, str]], read: Callable[[str, Sequence[str]], Numbers]
) -> list[OrderedPair]:
    """Count the rows of some pairs of columns in one pass. Raises DataError.

    read:  returns the numbers of the texts of a column, by its name: NaN for a text that is not compared.
    """
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    found = np.zeros((len(pairs), 3), dtype=np.int64)
    for batch in source.batches(names) if names else ():
        numbers = {
            name: _of_rows(column, name, read) for name, column in zip(names, batch.columns, strict=True)
        }
        for place, (earlier, later) in enumerate(pairs):
            one, other = numbers[earlier], numbers[later]
            both = ~(np.isnan(one) | np.isnan(other))
            found[place] += int(both.sum()), int((other < one).sum()), int((other > one).sum())
    return [OrderedPair(*pair, *counts) for pair, counts in zip(pairs, found.tolist(), strict=True)]


def _of_rows(column: pa.DictionaryArray, name: str, read: Callable[[str, Sequence[str]], Numbers]) -> Numbers:
    """Return the number of each row of a column."""
    texts = ["" if text is None else text for text in column.dictionary.to_pylist()]
    numbers = read(name, texts) if texts else np.zeros(0)
    places = column.indices.fill_null(len(texts)).to_numpy()
    found: Numbers = np.append(numbers, np.nan)[places]
    return found
