"""The candidates of a run: which nodes can be specialized, and in which order they come (semantics §3.5).

All that a node's score depends on is its *profile*: class counts per child that its taxonomy fixes, or per
grid cell of an interval. A single holder reads profiles off its table; joint runs add them up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anonymize.cut import Candidate, child_counts, interval_children
from anonymize.score import Merit, best_split, impurity
from anonymize.table import Ints, QidColumn
from anonymize.taxonomy import Node


@dataclass(frozen=True)
class Proposal:
    """A candidate with its InfoGain, gain / size in units of 2**-20 bits; size is |T[v]|.

    counts:  class counts of its children: int64, shape (n_children, n_classes).
    """

    candidate: Candidate
    gain: int
    size: int
    counts: Ints = field(repr=False, compare=False)


def specialization(number: int, column: QidColumn, node: Node, n_left: int) -> Candidate:
    """The specialization of a node of column ``number``; an interval is split after its first ``n_left`` cells."""
    children = interval_children(node, n_left) if column.is_numeric else column.children(node)
    return Candidate(number, node, children)


def profile_length(column: QidColumn, node: Node) -> int:
    """Number of rows of a node's profile; below 2 the node is no candidate, whatever the data."""
    return node.last - node.first if column.is_numeric else len(column.children(node))


def profile(column: QidColumn, node: Node, leaf_counts: Ints) -> Ints:
    """Class counts that decide a node's score, from those of the column's leaves (n_leaves, n_classes).

    int64, shape (profile_length, n_classes).
    """
    children = column.children(node)
    if column.is_numeric or not children:
        return leaf_counts[node.first : node.last]
    return child_counts(children, leaf_counts)


def propose(number: int, column: QidColumn, node: Node, counts: Ints, merit: Merit) -> Proposal | None:
    """Return the candidate that specializes a node of column ``number``, None if it is no candidate.

    counts: the node's profile. merit: of an interval's grid points. None for an empty node, a leaf, a node with
    fewer than two children, and an interval without a grid point that has records on both sides.
    """
    size = int(counts.sum())
    if size == 0 or len(counts) < 2:
        return None
    split = best_split(counts, merit) if column.is_numeric else 0
    if split is None:
        return None
    if column.is_numeric:
        counts = np.add.reduceat(counts, [0, split], axis=0)
    gain = int(impurity(counts.sum(axis=0)) - impurity(counts).sum())
    return Proposal(specialization(number, column, node, split), gain, size, counts)
