"""Bins of columns, from noisy counts that were opened: post-processing, in integers, alike at every party.

A bin is to hold θ records, so that it is not mostly noise. Neighbouring grid cells are merged from the left. Of a
taxonomy, values below θ are merged inside their node, and what is still below θ goes one node up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anonymize.synthetic.marginals import Axis
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
