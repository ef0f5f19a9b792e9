"""Bins of columns, and expected counts of their pairs, from opened noisy counts.

All steps are post-processing in integers, with the same result at every party.

*Bins.* A bin should hold θ records, so that noise does not dominate. Neighbouring grid cells are merged from
the left. In a taxonomy, values below θ are merged inside their node; if still below θ, they go to the node
above.

*Expected counts.* Two columns are assumed independent given the class: e = P_ac · P_bc / P_c, rounded.
Privacy allows any integers; with these, a pair's score is the error of a model without the pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from anonymize.dp.noisy_table import norm_sub
from anonymize.synthetic.marginals import Axis, Marginal
from anonymize.synthetic.requirement import Design
from anonymize.table import Ints, QidColumn
from anonymize.taxonomy import Node, Taxonomy


def bins_of(number: int, column: QidColumn, noisy: Ints, theta: int, design: Design) -> Axis:
    """Return the bins of a column, numbered in the order of their first leaves.

    noisy:  records by leaf, int64, shape (n_leaves,).
    """
    counts = noisy.tolist()
    if isinstance(column.values, Taxonomy):
        return Axis(number, _numbered(_few_of_taxonomy(column.values, counts, theta, design.taxonomy_bins)))
    bins = _of_grid(counts[: column.values.n_cells], theta, design.grid_bins)
    return Axis(number, (*bins, *[bins[-1] + 1] * column.missing_cell))


def _of_grid(counts: Sequence[int], theta: int, most: int) -> list[int]:
    """Return the bin of each cell. Cells are merged until they hold θ and their share of the remaining records.

    A last remainder below θ goes to the last bin.
    """
    ends, held, rest = list[int](), 0, sum(counts)
    for cell, count in enumerate(counts, 1):
        held += count
        left = most - len(ends)
        if held >= theta and held * left >= rest and left > 1:
            ends.append(cell)
            rest, held = rest - held, 0
    if ends and held < theta:
        ends.pop()
    return [sum(cell >= end for end in ends) for cell in range(len(counts))]


def _few_of_taxonomy(values: Taxonomy, counts: Sequence[int], theta: int, most: int) -> list[list[int]]:
    """Return the leaves of every bin, with a greater θ if there would be too many bins."""
    while len(bins := _of_taxonomy(values, counts, theta)) > most:
        theta += 1 + theta // 4
    return bins


def _of_taxonomy(values: Taxonomy, counts: Sequence[int], theta: int) -> list[list[int]]:
    bins: list[list[int]] = []

    def unplaced(node: Node) -> list[int]:
        """Put leaves below a node into bins, and return the leaves without a bin."""
        below = values.child_nodes(node)
        left = [leaf for child in below for leaf in unplaced(child)] if below else [node.first]
        if left and sum(counts[leaf] for leaf in left) >= theta:
            bins.append(left)
            return []
        return left

    if left := unplaced(values.root):
        bins.append(left)
    return bins


def _numbered(bins: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Return the bin of each leaf."""
    of_leaf = {leaf: place for place, leaves in enumerate(sorted(bins, key=min)) for leaf in leaves}
    return tuple(of_leaf[leaf] for leaf in range(len(of_leaf)))


def class_totals(noisy: Sequence[Ints]) -> Ints:
    """Return the non-negative records of every class, the inverse-variance mean over tables: int64, shape
    (n_classes,).

    noisy:  of equal noise, each of shape (n, n_classes): a sum over n cells has n times a cell's variance.
    """
    weights = [Fraction(1, len(table)) for table in noisy]
    sums = [[int(total) for total in table.sum(axis=0)] for table in noisy]
    found = [sum(w * s for w, s in zip(weights, each, strict=True)) for each in zip(*sums, strict=True)]
    return np.array([max(0, round(total / sum(weights))) for total in found], dtype=np.int64)


def margin(noisy: Ints, totals: Ints) -> Ints:
    """Return a column's non-negative records by bin and class, with the given class totals: int64, shape of
    ``noisy``.

    The difference to the totals is shared equally among bins, which have equal noise; then Norm-Sub.
    """
    n_bins = len(noisy)
    missing = totals - noisy.sum(axis=0)
    shares = missing // n_bins + (np.arange(n_bins)[:, None] < missing % n_bins)
    return np.stack([norm_sub(counts) for counts in (noisy + shares).T], axis=1)


def expected(one: Ints, other: Ints, totals: Ints) -> Ints:
    """Cross the margins of two columns: int64, shape (n_bins, n_bins of the other, n_classes)."""
    products = one[:, None, :] * other[None, :, :]
    return (products + totals // 2) // np.maximum(totals, 1)


def penalty(pair: Marginal, rate: Fraction) -> int:
    """Return the approximate effect of noise with this rate on a score: the cells times 1 / rate.

    So pairs with many cells must differ more from the expected counts to be worth a measurement.
    """
    return int(pair.size / rate)
