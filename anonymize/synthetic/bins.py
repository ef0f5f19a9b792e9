"""Bins of columns, and what their pairs are expected to look like, from noisy counts that were opened.

All of it is post-processing, in integers, alike at every party.

*Bins.* A bin is to hold θ records, so that it is not mostly noise. Neighbouring grid cells are merged from the left.
Of a taxonomy, values below θ are merged inside their node, and what is still below θ goes one node up.

*Expected counts.* Given the class two columns are taken to be independent: e = P_ac · P_bc / P_c, rounded. Any
integers will do for privacy; with these a pair scores by what a model without it would miss.
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
    """The bins of a column, numbered in the order of their first leaves.

    noisy:  records by leaf, int64, shape (n_leaves,).
    """
    counts = noisy.tolist()
    if isinstance(column.values, Taxonomy):
        return Axis(number, _numbered(_few_of_taxonomy(column.values, counts, theta, design.taxonomy_bins)))
    bins = _of_grid(counts[: column.values.n_cells], theta, design.grid_bins)
    return Axis(number, (*bins, *[bins[-1] + 1] * column.missing_cell))


def _of_grid(counts: Sequence[int], theta: int, most: int) -> list[int]:
    """By cell its bin: cells are merged until they hold θ and their share of what is left.

    What is left in the end and holds less than θ goes to the last bin.
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
    """The leaves of every bin, for θ or, where that makes too many bins, for a greater one."""
    while len(bins := _of_taxonomy(values, counts, theta)) > most:
        theta += 1 + theta // 4
    return bins


def _of_taxonomy(values: Taxonomy, counts: Sequence[int], theta: int) -> list[list[int]]:
    bins: list[list[int]] = []

    def unplaced(node: Node) -> list[int]:
        """Put leaves below a node into bins, and return those that are in none yet."""
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
    """By leaf its bin."""
    of_leaf = {leaf: place for place, leaves in enumerate(sorted(bins, key=min)) for leaf in leaves}
    return tuple(of_leaf[leaf] for leaf in range(len(of_leaf)))


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
