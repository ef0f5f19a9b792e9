"""What pairs of columns are expected to look like from the columns alone: public, in integers, alike at every party.

Given the class two columns are taken to be independent: e = P_ac · P_bc / P_c, rounded. Any integers will do for
privacy; with these a pair scores by what a model without it would miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonymize.dp.noisy_table import norm_sub
from anonymize.synthetic.marginals import Marginal
from anonymize.table import Ints


def class_totals(noisy: Sequence[Ints]) -> Ints:
    """Records of every class, the inverse-variance mean over tables, not negative: int64, shape (n_classes,).

    noisy:  of equal noise, each of shape (n, n_classes): a sum over n cells has n times a cell's variance.
    """
    weights = [Fraction(1, len(table)) for table in noisy]
    sums = [[int(total) for total in table.sum(axis=0)] for table in noisy]
    found = [sum(w * s for w, s in zip(weights, each, strict=True)) for each in zip(*sums, strict=True)]
    return np.array([max(0, round(total / sum(weights))) for total in found], dtype=np.int64)


def margin(noisy: Ints, totals: Ints) -> Ints:
    """A column's records by bin and class, not negative, of the given class totals: int64, shape of ``noisy``.

    What is missing to the totals is shared equally among bins, which have equal noise; then Norm-Sub.
    """
    n_bins = len(noisy)
    missing = totals - noisy.sum(axis=0)
    shares = missing // n_bins + (np.arange(n_bins)[:, None] < missing % n_bins)
    return np.stack([norm_sub(counts) for counts in (noisy + shares).T], axis=1)


def expected(one: Ints, other: Ints, totals: Ints) -> Ints:
    """One column's margin crossed with another's: int64, shape (n_bins, n_bins of the other, n_classes)."""
    products = one[:, None, :] * other[None, :, :]
    return (products + totals // 2) // np.maximum(totals, 1)


def penalty(pair: Marginal, rate: Fraction) -> int:
    """About what noise of this rate would add to a score if it were in the counts: the cells times 1 / rate.

    So pairs of many cells must be further from what is expected to be worth measuring.
    """
    return int(pair.size / rate)
