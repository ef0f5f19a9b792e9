"""The candidates of a run: how nodes can be specialized, and in which order they come (semantics §3.5, §10.10).

A node of the cut has *prospects*: ways to specialize it that may become candidates. The children of a prospect are
fixed, or they are one of several options, of which the counts decide. All that a prospect's score depends on is its
*profile*: class counts per child that is fixed, or per part that options are made of. A single holder reads profiles
off its table; joint runs add them up.
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
    """One way to specialize a node of a column, by its number in the schema."""

    @property
    def column(self) -> int: ...

    @property
    def node(self) -> Node: ...

    @property
    def n_options(self) -> int:
        """Return the number of options; 0 where the children are fixed."""
        ...

    @property
    def parts(self) -> tuple[Node, ...]:
        """Return the parts that counts are given for: children that are fixed, or the parts that options are
        made of.
        """
        ...

    def profile(self, leaf_counts: Ints) -> Ints:
        """The class counts that decide, from those of the column's leaves: int64, shape (n_parts, n_classes)."""
        ...

    def lefts(self, parts: NDArray[N]) -> NDArray[N]:
        """Return the counts of the first child of every option, from those of every part: shape (n_options,
        ...).
        """
        ...

    def specialized(self, option: int) -> Candidate:
        """The candidate; options count from 1, and are of no meaning where the children are fixed."""
        ...

    def admits(self, candidate: Candidate) -> bool:
        """Return True if the prospect may become this specialization of the cut."""
        ...


@dataclass(frozen=True)
class _OfChildren:
    """A node of a taxonomy whose counts are those of its children."""

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
    """A node of a taxonomy that is replaced by all its children, or by one of them and the rest."""

    n_options: int = field(default=0, init=False)

    def lefts(self, parts: NDArray[N]) -> NDArray[N]:
        return parts[:0]

    def specialized(self, option: int) -> Candidate:
        return Candidate(self.column, self.node, self.children)

    def admits(self, candidate: Candidate) -> bool:
        return candidate == self.specialized(0)


@dataclass(frozen=True)
class Split:
    """An interval that is split at a grid point; its parts are the cells, option i leaves i of them."""

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

    def admits(self, candidate: Candidate) -> bool:
        return (self.column, self.node) == (candidate.column, candidate.node)


@dataclass(frozen=True)
class AnyChild(_OfChildren):
    """A node of a taxonomy that one of its children leaves; its parts are the children, option i takes out the ith.

    rests:  what each of them would leave.
    """

    rests: tuple[Node, ...]

    @property
    def n_options(self) -> int:
        return len(self.children)

    def lefts(self, parts: NDArray[N]) -> NDArray[N]:
        return parts

    def specialized(self, option: int) -> Candidate:
        return Candidate(self.column, self.node, (self.children[option - 1], self.rests[option - 1]))

    def admits(self, candidate: Candidate) -> bool:
        return (self.column, self.node) == (candidate.column, candidate.node)


def prospects(number: int, column: QidColumn, node: Node, *, each_child: bool) -> tuple[Prospect, ...]:
    """The ways to specialize a node of column ``number``; none for a leaf and for one cell.

    each_child:  where children leave a node one by one, whether each of them is a way of its own; else one of them
                 is chosen by its counts.
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
    """Return the number of children that any specialization of a node makes; the node can be specialized."""
    return 2 if column.is_numeric or column.leaves_one_by_one(node) else len(column.children(node))


def specialization(number: int, column: QidColumn, node: Node, n_left: int) -> Candidate:
    """A node of column ``number`` with all its children; an interval is split after its first ``n_left`` cells."""
    children = interval_children(node, n_left) if column.is_numeric else column.children(node)
    return Candidate(number, node, children)


def marked(number: int, column: QidColumn, node: Node, mark: int) -> Candidate | None:
    """The specialization of a node of column ``number`` that has a :attr:`Candidate.mark`; None if there is none."""
    if column.is_numeric:
        inside = node.first < mark < node.last
        return specialization(number, column, node, mark - node.first) if inside else None
    every = (way.specialized(0) for way in prospects(number, column, node, each_child=True))
    return next((candidate for candidate in every if candidate.mark == mark), None)


class Prospects:
    """The prospects of a run, but for those that were discarded.

    A child that could not leave a node cannot leave its rest either, nor be separated from one last other child
    (semantics §10.10).
    """

    def __init__(self, schema: Schema, *, each_child: bool) -> None:
        self._columns = schema.qid
        self._each_child = each_child
        self._staying: set[tuple[int, Node]] = set()

    def of(self, number: int, node: Node) -> list[Prospect]:
        """The ways to specialize a node of column ``number`` that may still be valid."""
        found = prospects(number, self._columns[number], node, each_child=self._each_child)
        return [prospect for prospect in found if not self._is_discarded(prospect)]

    def discard(self, candidate: Candidate) -> None:
        """Take note that a candidate is not valid."""
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
    """A candidate with its InfoGain, gain / size in units of 2**-20 bits; size is |T[v]|.

    counts:  class counts of its children: int64, shape (n_children, n_classes).
    option:  of its prospect.
    """

    candidate: Candidate
    gain: int
    size: int
    counts: Ints = field(repr=False, compare=False)
    option: int = field(default=0, compare=False)


def propose(prospect: Prospect, counts: Ints, merit: Merit) -> Proposal | None:
    """Return the candidate that a prospect comes to, None if it is none.

    counts: its profile. merit: of options. None for an empty node, and where no option has records in both children.
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
