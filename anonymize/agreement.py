"""Agreement of two clusterings of the same records ([CLU] 4.4): exact, from the contingency table alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonymize.table import Ints


@dataclass(frozen=True)
class Agreement:
    """Comparison of two clusterings.

    f_measure:    Σ_i |C_i|/n · max_j F(C_i, K_j), F(C_i, K_j) = 2 n_ij / (|C_i| + |K_j|): how well the second
                  clustering contains each cluster of the first. 1: completely.
    match_point:  share of the ordered pairs of records, pairs of a record with itself included, that are together in
                  both clusterings or in neither; rises with the number of clusters.
    adjusted:     adjusted Rand index: the same over unordered pairs of different records, less the chance value; 0 by
                  chance, 1 for equal clusterings.
    """

    f_measure: Fraction
    match_point: Fraction
    adjusted: Fraction


def contingency(first: Ints, second: Ints, shape: tuple[int, int]) -> Ints:
    """Count the records in each pair of clusters: int64, of ``shape``. first, second: int64, shape (n,)."""
    counts = np.bincount(np.ravel_multi_index((first, second), shape), minlength=shape[0] * shape[1])
    return counts.astype(np.int64).reshape(shape)


def agreement(counts: Ints) -> Agreement:
    """Compare two clusterings by their contingency table. Raises ValueError for a table without records."""
    table = [[int(n) for n in row] for row in counts]
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    n = sum(rows)
    if n == 0:
        raise ValueError("there are no records to compare")
    together = sum(cell**2 for row in table for cell in row)
    in_first, in_second = sum(row**2 for row in rows), sum(column**2 for column in columns)
    return Agreement(
        _f_measure(table, rows, columns),
        Fraction(n * n + 2 * together - in_first - in_second, n * n),
        _adjusted(n, together, in_first, in_second),
    )


def _f_measure(table: list[list[int]], rows: list[int], columns: list[int]) -> Fraction:
    best = (
        row * max(Fraction(2 * cell, row + column) for cell, column in zip(cells, columns, strict=True))
        for cells, row in zip(table, rows, strict=True)
        if row
    )
    return sum(best, Fraction(0)) / sum(rows)


def _adjusted(n: int, together: int, in_first: int, in_second: int) -> Fraction:
    """Compute the index from sums of squares. A sum less the n records is twice the number of pairs together."""
    both, first, second, pairs = together - n, in_first - n, in_second - n, n * (n - 1)
    if first + second in (0, 2 * pairs):  # all apart in both, or all together
        return Fraction(1)
    by_chance = Fraction(first * second, pairs)
    return (both - by_chance) / (Fraction(first + second, 2) - by_chance)
