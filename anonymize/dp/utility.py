"""Utility functions of DiffGen, in integers, with their sensitivities to a record ([T] 6.3.2).

``max``       Max(D, v) = Σ over child partitions of the greatest class count ([T] Eq. 6.4). A record changes
              it by at most 1, and adding a record never lowers it: it is *monotone*, which halves the noise.
``infogain``  n·InfoGain(D, v), the integer gain of semantics §3.4 (2**-20 bits times records), at least 0.
[T] takes
              the normalized gain with sensitivity log2|C|. Its noise is many times the score ≤ 1, so the
              choice
              ignores the data. The unnormalized gain, as in Friedman and Schuster (KDD 2010), does not.

The functions take the class counts of disjoint parts of the records, with empty parts: the existence of a score does
not depend on data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from anonymize.score import f_score, impurity
from anonymize.table import Ints

UtilityName: TypeAlias = Literal["max", "infogain"]
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Utility:
    """Utility function.

    merit:        value of parts with given class counts: (..., n_classes) → (...), summed over parts.
    base:         added to the parts' merits, from the class counts of all: (n_classes,) → integer.
    sensitivity:  largest change of the score by a record added or removed, an integer.
    monotone:     True if adding a record never lowers a score.
    """

    merit: Callable[[Ints], Ints]
    base: Callable[[Ints], int]
    sensitivity: int
    monotone: bool

    def rate(self, epsilon: Fraction) -> Fraction:
        """Return the noise rate that makes report noisy max ε-DP: ε/Δ if monotone, else ε/2Δ (semantics §8.2)."""
        return epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def score(self, parts: Ints) -> int:
        """Return the score of a specialization into parts with these class counts, shape (n_parts, n_classes)."""
        return self._total(self.base(parts.sum(axis=0)), self.merit(parts).sum())

    def split_scores(self, cells: Ints) -> list[int]:
        """Return the score of every grid point of an interval, from class counts per cell, (n_cells, n_classes)."""
        total = cells.sum(axis=0)
        left = cells.cumsum(axis=0)[:-1]
        base, merits = self.base(total), self.merit(left) + self.merit(total - left)
        return [self._total(base, merit) for merit in merits]

    @staticmethod
    def _total(base: int, merit: np.int64) -> int:
        return max(0, base + int(merit))


def utility(name: UtilityName, max_rows: int) -> Utility:
    """Return the utility with a name for tables of at most ``max_rows`` records."""
    if name == "max":
        return Utility(lambda counts: counts.max(axis=-1), lambda _: 0, 1, monotone=True)
    return Utility(
        lambda counts: -impurity(counts),
        lambda counts: int(impurity(counts)),
        gain_sensitivity(max_rows),
        monotone=False,
    )


@lru_cache(maxsize=8)
def gain_sensitivity(max_rows: int) -> int:
    """Return the largest change of the integer gain by a record, in tables of at most ``max_rows`` records.

    With d(x) = F(x + 1) − F(x), a record of class j in child c changes the gain by

        d(n) − d(n_j) − d(n_c) + d(n_cj),   n ≥ n_j, n_c ≥ n_cj ≥ 0,  n < max_rows.

    If d were nondecreasing, [d(n) − d(n_c)] and [d(n_j) − d(n_cj)] would each lie in [0, max d − min d], and
    so would the absolute value of their difference: about log2(N + 1) + 1/ln 2 bits. F is piecewise linear
    and rounded, so d falls in places, by ``drop`` at most. Each bracket is at least −drop, which adds
    ``drop`` once. The drop is the weight of the last digit of the logarithm, N · 2**-20 bits, up to twice:
    1.4 of 23.3 for a million rows.
    """
    greatest = least = drop = 0
    for start in range(0, max_rows, _CHUNK):
        increments = np.diff(f_score(np.arange(start, min(start + _CHUNK, max_rows) + 1, dtype=np.int64)))
        ceiling = np.maximum.accumulate(np.maximum(increments, greatest))
        drop = max(drop, int((ceiling - increments).max()))
        greatest, least = int(ceiling[-1]), min(least, int(increments.min()))
    return max(1, greatest - least + drop)
