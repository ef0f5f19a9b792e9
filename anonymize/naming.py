"""Names of nodes with all records in a single child (semantics §10.10).

If children leave a node separately, a child leaves only if the rest has records, too. So the last value stays hidden,
although no record may have another value. When no candidate is left, the node is replaced by the child and an empty
rest. This changes no group and needs no test.
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
    """Node with records, and the place of the child that has all of them."""

    candidate: Candidate
    place: int

    @property
    def child(self) -> Node:
        return self.candidate.children[self.place]

    def counts(self, totals: Ints) -> Ints:
        """Return records per (refined entry, child), from entries' totals: int64, shape (n_entries, n_children)."""
        counts = np.zeros((len(totals), len(self.candidate.children)), dtype=np.int64)
        counts[:, self.place] = totals
        return counts


@dataclass(frozen=True)
class Unnamed:
    """Node of the cut with records. A single child may have all of them.

    ways:  result for each child if the child has all records.
    """

    column: int
    node: Node
    children: tuple[Node, ...]
    ways: tuple[Named, ...]

    def sizes(self, leaf_counts: Ints) -> Ints:
        """Count the records of the children, from class counts of the column's leaves: int64, shape (n_children,)."""
        sizes: Ints = child_counts(self.children, leaf_counts).sum(axis=1)
        return sizes


class Naming:
    """Nodes that were not examined yet. The records of a node do not change while the node is in the cut."""

    def __init__(self, schema: Schema) -> None:
        self._columns = schema.qid
        self._asked: set[tuple[int, Node]] = set()

    def due(self, cut: Cut, size: Callable[[int, Node], int]) -> list[Unnamed]:
        """Return the nodes not examined yet, by column and path order, from public state alone.

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
    """Return the place of the child with all records of its node; None if several children have records."""
    occupied = np.flatnonzero(sizes)
    return int(occupied[0]) if len(occupied) == 1 else None


def named_by(unnamed: Sequence[Unnamed], places: Sequence[int | None]) -> list[Named]:
    """Return the resulting names. places: the place of the child with all records of each node, or None."""
    return [each.ways[place] for each, place in zip(unnamed, places, strict=True) if place is not None]
