"""Names of nodes of which all records lie in one child (semantics §10.10).

Where children leave a node one by one, a child leaves only if the rest has records, too. So the last value is never
told apart, though all others may be values that do not occur. When no candidate is left, such a node is replaced by
that child and a rest without records. This changes no group, so nothing has to be tested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anonymize.cut import Candidate, Cut, child_counts
from anonymize.table import Ints, QidColumn, Schema
from anonymize.taxonomy import Node


@dataclass(frozen=True)
class Named:
    """A node with records, and the one of the candidate's children that has all of them, by its place."""

    candidate: Candidate
    place: int

    @property
    def child(self) -> Node:
        return self.candidate.children[self.place]

    def counts(self, totals: Ints) -> Ints:
        """Records per (refined entry, child), of those of the entries: int64, shape (n_entries, n_children)."""
        counts = np.zeros((len(totals), len(self.candidate.children)), dtype=np.int64)
        counts[:, self.place] = totals
        return counts


@dataclass(frozen=True)
class Unnamed:
    """A node of the cut with records, and its children, of which one may have all of them.

    ways:  for each of the children what follows if it has.
    """

    column: int
    node: Node
    children: tuple[Node, ...]
    ways: tuple[Named, ...]

    def sizes(self, leaf_counts: Ints) -> Ints:
        """Records of the children, from class counts of the column's leaves: int64, shape (n_children,)."""
        sizes: Ints = child_counts(self.children, leaf_counts).sum(axis=1)
        return sizes


class Naming:
    """Nodes that are still to be asked about: the records of a node stay the same as long as it is in the
    cut.
    """

    def __init__(self, schema: Schema) -> None:
        self._columns = schema.qid
        self._asked: set[tuple[int, Node]] = set()

    def due(self, cut: Cut, size: Callable[[int, Node], int]) -> list[Unnamed]:
        """The nodes that were not asked about yet, by column and path order; from public state alone.

        size:  records of a node of a column, by the column's number.
        """
        found = [
            _unnamed(number, column, node)
            for number, column in enumerate(self._columns)
            for node in sorted(cut.nodes[number], key=lambda node: node.place)
            if column.parts_by_child(node) and (number, node) not in self._asked and size(number, node)
        ]
        self._asked.update((each.column, each.node) for each in found)
        return found


def _unnamed(number: int, column: QidColumn, node: Node) -> Unnamed:
    children = column.children(node)
    if column.leaves_one_by_one(node):
        pairs = [(child, column.rest_of(node, child)) for child in children]
        ways = tuple(Named(Candidate(number, node, pair), 0) for pair in pairs)
    else:
        both = Candidate(number, node, children)
        ways = tuple(Named(both, place) for place in range(len(children)))
    return Unnamed(number, node, children, ways)


def all_in_one(sizes: Ints) -> int | None:
    """The place of the child that has all records of its node; None: two or more have some."""
    occupied = np.flatnonzero(sizes)
    return int(occupied[0]) if len(occupied) == 1 else None


def named_by(unnamed: Sequence[Unnamed], places: Sequence[int | None]) -> list[Named]:
    """Return the names that follow; places: of each node the child that has all its records, if one has."""
    return [each.ways[place] for each, place in zip(unnamed, places, strict=True) if place is not None]
