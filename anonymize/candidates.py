"""Candidates of a run: ways to specialize nodes, in order (semantics §3.5, §10.10).

A node of the cut has *prospects*: specializations that may become candidates. A prospect has fixed children, or the
counts decide between options. Its score depends only on its *profile*: class counts per fixed child, or per part of
the options. A single holder reads profiles off its table; joint runs add profiles up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.cut import Candidate, child_counts, interval_children
from anonymize.score import Merit, best_option, impurity
from anonymize.table import Ints, QidColumn, Schema
from anonymize.taxonomy import Node

N = TypeVar("N", bound=np.generic)


class Prospect(Protocol):
    """Way to specialize a node of a column. ``column`` is the column's number in the schema."""

    @property
    def column(self) -> int: ...

    @property
    def node(self) -> Node: ...

    @property
    def n_options(self) -> int:
        """Number of options; 0 for fixed children."""
        ...

    @property
    def parts(self) -> tuple[Node, ...]:
        """Fixed children or, with options, the parts that form the options. The profile has counts per part."""
        ...

    def profile(self, leaf_counts: Ints) -> Ints:
        """Return the deciding class counts, from counts by leaf of the column: int64, shape (n_parts, n_classes)."""
        ...

    def lefts(self, parts: NDArray[N]) -> NDArray[N]:
        """Return the counts of every option's first child, from the counts of the parts: shape (n_options, ...)."""
        ...

    def specialized(self, option: int) -> Candidate:
        """Return the candidate. Options count from 1 and are ignored for fixed children."""
        ...

    @property
    def finest(self) -> Candidate | None:
        """Candidate with a child for each part; None if the last part may be the first child of an option.

        The counts of all its children but the last give the counts of the first child of every option.
        """
        ...

    def admits(self, candidate: Candidate) -> bool:
        """Return True if the prospect may become the given specialization of the cut."""
        ...


@dataclass(frozen=True)
class _OfChildren:
    """Node of a taxonomy with the counts of its children."""

    column: int
    node: Node
    children: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.children

    def profile(self, leaf_counts: Ints) -> Ints:
        return child_counts(self.children, leaf_counts)


@dataclass(frozen=True)
class Fixed(_OfChildren):
    """Node of a taxonomy that is replaced by all its children, or by a child and the rest."""

    n_options: int = field(default=0, init=False)

    def lefts(self, parts: NDArray[N]) -> NDArray[N]:
        return parts[:0]

    def specialized(self, option: int) -> Candidate:
        return Candidate(self.column, self.node, self.children)

    @property
    def finest(self) -> Candidate:
        return self.specialized(0)

    def admits(self, candidate: Candidate) -> bool:
        return candidate == self.specialized(0)


@dataclass(frozen=True)
class Split:
    """Interval that is split at a grid point. The cells are the parts; option i leaves i cells on the left."""

    column: int
    node: Node

    @property
    def n_options(self) -> int:
        return self.node.last - self.node.first - 1

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(Node(first, first + 1) for first in range(self.node.first, self.node.last))

    def profile(self, leaf_counts: Ints) -> Ints:
        return leaf_counts[self.node.first : self.node.last]

    def lefts(self, parts: NDArray[N]) -> NDArray[N]:
        return np.cumsum(parts, axis=0, dtype=parts.dtype)[:-1]

    def specialized(self, option: int) -> Candidate:
        return Candidate(self.column, self.node, interval_children(self.node, option))

    @property
    def finest(self) -> Candidate:
        return Candidate(self.column, self.node, self.parts)

    def admits(self, candidate: Candidate) -> bool:
        return (self.column, self.node) == (candidate.column, candidate.node)


@dataclass(frozen=True)
class AnyChild(_OfChildren):
    """Node of a taxonomy that loses a child. The children are the parts; option i takes out child i.

    rests:  rest of the node after each child.
    """

    rests: tuple[Node, ...]

    @property
    def n_options(self) -> int:
        return len(self.children)

    def lefts(self, parts: NDArray[N]) -> NDArray[N]:
        return parts

    def specialized(self, option: int) -> Candidate:
        return Candidate(self.column, self.node, (self.children[option - 1], self.rests[option - 1]))

    @property
    def finest(self) -> None:
        return None

    def admits(self, candidate: Candidate) -> bool:
        return (self.column, self.node) == (candidate.column, candidate.node)


def prospects(number: int, column: QidColumn, node: Node, *, each_child: bool) -> tuple[Prospect, ...]:
    """Return the ways to specialize a node of column ``number``: empty for a leaf and for a single cell.

    each_child:  if children leave the node separately, make a prospect of each child; otherwise the counts choose the
                 child.
    """
    if profile_length(column, node) < 2:
        return ()
    if column.is_numeric:
        return (Split(number, node),)
    if not column.leaves_one_by_one(node):
        return (Fixed(number, node, column.children(node)),)
    children = column.children(node)
    rests = tuple(column.rest_of(node, child) for child in children)
    if not each_child:
        return (AnyChild(number, node, children, rests),)
    return tuple(Fixed(number, node, pair) for pair in zip(children, rests, strict=True))


def profile_length(column: QidColumn, node: Node) -> int:
    """Number of cells or children of a node; below 2 the node is no candidate, whatever the data."""
    return node.last - node.first if column.is_numeric else len(column.children(node))


def n_children(column: QidColumn, node: Node) -> int:
    """Return the number of children in any specialization of a node. The node can be specialized."""
    return 2 if column.is_numeric or column.leaves_one_by_one(node) else len(column.children(node))


def specialization(number: int, column: QidColumn, node: Node, n_left: int) -> Candidate:
    """Return the candidate with all children of a node. An interval is split after ``n_left`` cells."""
    children = interval_children(node, n_left) if column.is_numeric else column.children(node)
    return Candidate(number, node, children)


def marked(number: int, column: QidColumn, node: Node, mark: int) -> Candidate | None:
    """Return the specialization of a node of column ``number`` with this :attr:`Candidate.mark`, or None."""
    if column.is_numeric:
        inside = node.first < mark < node.last
        return specialization(number, column, node, mark - node.first) if inside else None
    every = (way.specialized(0) for way in prospects(number, column, node, each_child=True))
    return next((candidate for candidate in every if candidate.mark == mark), None)


class Prospects:
    """Prospects of a run without the discarded prospects.

    If a child could not leave a node, the child cannot leave the rest or be separated from a last sibling (semantics
    §10.10).
    """

    def __init__(self, schema: Schema, *, each_child: bool) -> None:
        self._columns = schema.qid
        self._each_child = each_child
        self._staying: set[tuple[int, Node]] = set()

    def of(self, number: int, node: Node) -> list[Prospect]:
        """Return the ways to specialize a node of column ``number`` that may still be valid."""
        found = prospects(number, self._columns[number], node, each_child=self._each_child)
        return [prospect for prospect in found if not self._is_discarded(prospect)]

    def discard(self, candidate: Candidate) -> None:
        """Record that a candidate is not valid."""
        if candidate.taken_out is not None:
            self._staying.add((candidate.column, candidate.taken_out))

    def _is_discarded(self, prospect: Prospect) -> bool:
        if not self._staying or prospect.n_options:
            return False
        candidate = prospect.specialized(0)
        leaving = candidate.children if candidate.taken_out is None else (candidate.taken_out,)
        return any((prospect.column, child) in self._staying for child in leaving)


@dataclass(frozen=True)
class Proposal:
    """Candidate with InfoGain gain / size in units of 2**-20 bits; size is |T[v]|.

    counts:  class counts of the children: int64, shape (n_children, n_classes).
    option:  number of the prospect's option.
    """

    candidate: Candidate
    gain: int
    size: int
    counts: Ints = field(repr=False, compare=False)
    option: int = field(default=0, compare=False)


def propose(prospect: Prospect, counts: Ints, merit: Merit) -> Proposal | None:
    """Return the candidate of a prospect, or None.

    counts: the profile. merit: merit of an option. None: the node is empty, or no option has records in both
    children.
    """
    total = counts.sum(axis=0)
    size = int(total.sum())
    if size == 0:
        return None
    option = 0
    if prospect.n_options:
        lefts = prospect.lefts(counts)
        best = best_option(lefts, total, merit)
        if best is None:
            return None
        option, left = best + 1, lefts[best]
        counts = np.stack([left, total - left])
    gain = int(impurity(total) - impurity(counts).sum())
    return Proposal(prospect.specialized(option), gain, size, counts, option)
