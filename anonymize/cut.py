"""The current generalization: one cut per quasi-identifier column, and the candidates to refine it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonymize.table import Ints, Schema
from anonymize.taxonomy import Node


@dataclass(frozen=True, slots=True)
class Candidate:
    """A specialization ``node`` → ``children`` of one column (its number in the schema).

    The children cover the leaves of the node from left to right.
    """

    column: int
    node: Node
    children: tuple[Node, ...]

    @property
    def order(self) -> tuple[int, int]:
        """Ties go to the smaller: column order in the job, then path or interval order."""
        return self.column, self.node.first


@dataclass(frozen=True, slots=True)
class Cut:
    """Per column the nodes that cover its leaves, from left to right."""

    nodes: tuple[tuple[Node, ...], ...]

    def specialized(self, candidate: Candidate) -> Cut:
        """Return the cut with the candidate's node replaced by its children."""
        column = self.nodes[candidate.column]
        i = column.index(candidate.node)
        refined = (*column[:i], *candidate.children, *column[i + 1 :])
        return Cut((*self.nodes[: candidate.column], refined, *self.nodes[candidate.column + 1 :]))

    def is_refined(self, column: int) -> bool:
        return len(self.nodes[column]) > 1

    def positions(self, column: int) -> Ints:
        """Map each leaf of a column to the position of its node in the cut: int64, shape (n_leaves,)."""
        nodes = self.nodes[column]
        return np.repeat(np.arange(len(nodes)), [node.last - node.first for node in nodes])


def top(schema: Schema) -> Cut:
    """The fully generalized cut: the root of every column."""
    return Cut(tuple((column.root,) for column in schema.qid))


def child_counts(children: tuple[Node, ...], leaf_counts: Ints) -> Ints:
    """Sum rows of ``leaf_counts`` (n_leaves, ...) by child: shape (n_children, ...)."""
    starts = [child.first for child in children]
    return np.add.reduceat(leaf_counts[: children[-1].last], starts, axis=0)


def interval_children(node: Node, n_left: int) -> tuple[Node, Node]:
    """Split an interval after its first ``n_left`` cells."""
    return Node(node.first, node.first + n_left), Node(node.first + n_left, node.last)
