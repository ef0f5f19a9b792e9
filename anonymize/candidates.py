"""The candidates of a run: which nodes are any, and in which order they come (DESIGN §3).

All that a node's score depends on is its *profile*: class counts per child that its taxonomy fixes, or per
grid cell of an interval. A single holder reads profiles off its table; joint runs add them up.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonymize.cut import Candidate, child_counts, interval_children
from anonymize.partition import GeneralizedTable, Refinement
from anonymize.score import Goal, best_split, impurity
from anonymize.table import Ints, QidColumn, Schema
from anonymize.taxonomy import Node


@dataclass(frozen=True)
class Proposal:
    """A candidate with its InfoGain, gain / size in units of 2**-20 bits; size is |T[v]|."""

    candidate: Candidate
    gain: int
    size: int


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


def propose(number: int, column: QidColumn, node: Node, counts: Ints, goal: Goal) -> Proposal | None:
    """Return the candidate that specializes a node of column ``number``, or None where it is none.

    counts: the node's profile. None for an empty node, a leaf, a node with fewer than two children, and an
    interval without a grid point that has records on both sides.
    """
    size = int(counts.sum())
    if size == 0 or len(counts) < 2:
        return None
    if column.is_numeric:
        split = best_split(counts, goal)
        if split is None:
            return None
        children: tuple[Node, ...] = interval_children(node, split)
        counts = np.add.reduceat(counts, [0, split], axis=0)
    else:
        children = column.children(node)
    gain = int(impurity(counts.sum(axis=0)) - impurity(counts).sum())
    return Proposal(Candidate(number, node, children), gain, size)


class GroupSizes:
    """Σ |T[qid_v]|² over the leaf partitions that hold v, for every node v of the cut ([T] Eq. 3.4)."""

    def __init__(self, schema: Schema, table: GeneralizedTable) -> None:
        self._squares = [np.zeros(column.n_leaves, dtype=np.int64) for column in schema.qid]
        self._count(table, np.arange(table.n_partitions), 1)

    def score(self, candidate: Candidate) -> int:
        return self.score_of(candidate.column, candidate.node.first)

    def score_of(self, column: int, first: int) -> int:
        """The sum for the node of a column that begins at leaf ``first``."""
        return int(self._squares[column][first])

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> None:
        """Account for a specialization: only partitions that it refined count differently."""
        after = refinement.table
        old = np.unique(before.partition[refinement.entries])
        new = np.unique(after.partition[refinement.targets[refinement.targets >= 0]])
        self._count(before, old, -1)
        self._count(after, new, 1)

    def _count(self, table: GeneralizedTable, partitions: Ints, sign: int) -> None:
        squares = sign * table.sizes()[partitions] ** 2
        for sums, nodes in zip(self._squares, table.nodes, strict=True):
            np.add.at(sums, nodes[partitions], squares)


class CandidatePool:
    """The candidates that were neither applied nor discarded yet, best first.

    Goal classification: candidates with gain above 0, greatest InfoGain first; their scores never change.
    Goal general: all, greatest Σ |T[qid_v]|² first; these move with every specialization. Ties go to the
    earlier column, then to the earlier node.
    """

    def __init__(self, goal: Goal) -> None:
        self._goal: Goal = goal
        self._by_gain: list[tuple[Fraction, tuple[int, int], Proposal]] = []
        self._all: list[Proposal] = []

    def add(self, proposal: Proposal) -> None:
        if self._goal == "general":
            self._all.append(proposal)
        elif proposal.gain > 0:
            rank = -Fraction(proposal.gain, proposal.size)
            heapq.heappush(self._by_gain, (rank, proposal.candidate.order, proposal))

    def best(self, sizes: GroupSizes | None) -> Proposal | None:
        """The best candidate, which stays; ``sizes`` are needed for goal general."""
        if self._goal == "classification":
            return self._by_gain[0][2] if self._by_gain else None
        assert sizes is not None
        ranked = ((-sizes.score(p.candidate), p.candidate.order, p) for p in self._all)
        return min(ranked, default=(0, (0, 0), None), key=lambda entry: entry[:2])[2]

    def pop(self, sizes: GroupSizes | None) -> Candidate | None:
        """Take out the best candidate."""
        best = self.best(sizes)
        if best is None:
            return None
        if self._goal == "classification":
            heapq.heappop(self._by_gain)
        else:
            self._all.remove(best)
        return best.candidate
