"""Integer scores of semantics §3.4, vectorised.

F(x) ≈ 2**20 · x · log2 x in integers, the InfoGain numerator made from it, and the best split point of an
interval. ``crypto.circuits`` computes the same integers; the tests compare the two.
Source: [T] 3.2.2, Eq. 3.2 (InfoGain) and Eq. 3.4 (general analysis).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.cut import Candidate, child_counts
from anonymize.table import Ints

Merit: TypeAlias = Callable[[Ints, Ints], Ints]
"""Function from the class counts of both sides, (n, n_classes) each, to the merits of the splits, (n,)."""

FRACTION_BITS = 20
_SEGMENT_BITS = 9
_ONE = 1 << 30
LOG_TABLE: Ints = np.array(
    [round(2**FRACTION_BITS * math.log2(1 + j / 2**_SEGMENT_BITS)) for j in range(2**_SEGMENT_BITS + 1)],
    dtype=np.int64,
)


_TABLED = 1 << 16
"""Arguments below this number are looked up. Most counts of records are."""


def f_score(x: NDArray[np.integer]) -> Ints:
    """Return F(x) for 0 <= x < 2**31, element-wise: int64, same shape, below 2**56."""
    try:
        found: Ints = _table()[x]
    except IndexError:
        return _f_score(x)
    return found


@cache
def _table() -> Ints:
    """Return F(x) of all small x: int64, shape (_TABLED,)."""
    return _f_score(np.arange(_TABLED))


def _f_score(x: NDArray[np.integer]) -> Ints:
    x = x.astype(np.int64)
    safe = np.maximum(x, 1)
    k = np.frexp(safe.astype(np.float64))[1].astype(np.int64) - 1
    fraction = (safe << (30 - k)) - _ONE
    segment = fraction >> 21
    rest = (fraction >> 9) & 4095
    low = LOG_TABLE[segment]
    log = low + (((LOG_TABLE[segment + 1] - low) * rest) >> 12)
    return np.where(x < 2, 0, x * ((k << FRACTION_BITS) + log))


def impurity(class_counts: NDArray[np.integer]) -> Ints:
    """Return F(sum) − Σ_cls F(count) along the last axis: 2**20 · n · entropy, up to rounding."""
    pure: Ints = f_score(class_counts.sum(axis=-1)) - f_score(class_counts).sum(axis=-1)
    return pure


def best_option(left: Ints, total: Ints, merit: Merit) -> int | None:
    """Return the number of the best way to split a node's records in two, or None.

    left: class counts of the first side of each option, shape (n_options, n_classes); total: of the node,
    (n_classes,). Only options with records on both sides count. The greatest merit wins; among equal merits, the
    first option.
    """
    right = total - left
    two_sided = np.flatnonzero((left.sum(axis=1) > 0) & (right.sum(axis=1) > 0))
    if two_sided.size == 0:
        return None
    return int(two_sided[np.argmax(merit(left[two_sided], right[two_sided]))])


def information_gain(candidate: Candidate, class_counts: Ints) -> tuple[int, int]:
    """Return the gain of an applied specialization (integers of semantics §3.4), and |T[v]|.

    InfoGain ([T] Eq. 3.2) in bits per record is gain / (2**20 · |T[v]|).
    """
    counts = child_counts(candidate.children, class_counts)
    total = counts.sum(axis=0)
    return int(impurity(total) - impurity(counts).sum()), int(total.sum())


def bits_per_record(gain: int, size: int) -> float:
    """Return InfoGain from the result of :func:`information_gain`."""
    return gain / (size << FRACTION_BITS) if size else 0.0
