"""Current generalization: a cut per quasi-identifier column, and the candidates for its refinement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.table import Ints, Schema
from anonymize.taxonomy import Node

N = TypeVar("N", bound=np.generic)

Order: TypeAlias = tuple[int, int, int, int]
"""Place of a candidate among all; ties go to the smaller place."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Specialization ``node`` → ``children`` of a column (by its number in the schema).

    The children cover the leaves of the node, from left to right; or they are a child of the node and the rest.
    """

    column: int
    node: Node
    children: tuple[Node, ...]

    @property
    def taken_out(self) -> Node | None:
        """Child that leaves the rest behind; None if all children replace the whole node."""
        return self.children[0] if self.children and self.children[-1].without else None

    @property
    def mark(self) -> int:
        """Leaf that identifies a candidate of a node: first leaf of the child taken out, otherwise of the second
        child.
        """
        return self.children[1].first if self.taken_out is None else self.taken_out.first

    def is_beside(self, other: Candidate) -> bool:
        """Return True if both candidates specialize the same node."""
        return (self.column, self.node) == (other.column, other.node)

    @property
    def order(self) -> Order:
        """Column order in the job, path or interval order of the node, then file order of the child taken out."""
        child = self.taken_out
        return self.column, self.node.place, self.node.first, 0 if child is None else child.place


@dataclass(frozen=True, slots=True)
class Cut:
    """Nodes of each column that cover its leaves, in the order of the nodes' first leaves."""

    nodes: tuple[tuple[Node, ...], ...]

    def specialized(self, candidate: Candidate) -> Cut:
        """Return the cut with the candidate's children in place of the node."""
        column = self.nodes[candidate.column]
        i = column.index(candidate.node)
        refined = tuple(sorted((*column[:i], *candidate.children, *column[i + 1 :])))
        return Cut((*self.nodes[: candidate.column], refined, *self.nodes[candidate.column + 1 :]))

    def is_refined(self, column: int) -> bool:
        return len(self.nodes[column]) > 1

    def positions(self, column: int) -> Ints:
        """Map each leaf of a column to the position of its node in the cut: int64, shape (n_leaves,)."""
        nodes = self.nodes[column]
        positions = np.empty(sum(node.n_leaves for node in nodes), dtype=np.int64)
        positions[leaves_of(nodes)] = np.repeat(np.arange(len(nodes)), [node.n_leaves for node in nodes])
        return positions


def top(schema: Schema) -> Cut:
    """Return the fully generalized cut: the root of every column."""
    return Cut(tuple((column.root,) for column in schema.qid))


def leaves_of(nodes: Sequence[Node]) -> Ints:
    """Return the leaves of all nodes, node after node: int64, shape (n_leaves_in_all,)."""
    if _is_run(nodes):
        return np.arange(nodes[0].first, nodes[-1].last)
    return np.concatenate([node.leaves for node in nodes])


def _is_run(nodes: Sequence[Node]) -> bool:
    """Return True if the leaves of the nodes, node after node, form a range of numbers."""
    follow = all(one.last == other.first for one, other in pairwise(nodes))
    return follow and not any(node.without for node in nodes)


def child_counts(children: Sequence[Node], leaf_counts: NDArray[N], axis: int = 0) -> NDArray[N]:
    """Sum ``leaf_counts`` by node along an axis, n_leaves long: the same shape with n_children there.

    children:  one or more.
    """
    starts = np.cumsum([0, *(child.n_leaves for child in children)])[:-1]
    if _is_run(children):
        own = leaf_counts[(slice(None),) * axis + (slice(children[0].first, children[-1].last),)]
    else:
        own = leaf_counts.take(leaves_of(children), axis)
    summed: NDArray[N] = np.add.reduceat(own, starts, axis=axis, dtype=leaf_counts.dtype)
    return summed


def child_of_leaf(candidate: Candidate) -> Ints:
    """Return the child of each leaf in [first, last) of the node, -1 for leaves outside the node: int64."""
    node = candidate.node
    child = np.full(node.last - node.first, -1, dtype=np.int64)
    sizes = [child.n_leaves for child in candidate.children]
    child[leaves_of(candidate.children) - node.first] = np.repeat(np.arange(len(sizes)), sizes)
    return child


def interval_children(node: Node, n_left: int) -> tuple[Node, Node]:
    """Split an interval after its first ``n_left`` cells."""
    return Node(node.first, node.first + n_left), Node(node.first + n_left, node.last)
