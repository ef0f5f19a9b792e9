"""Value hierarchies of categorical columns (semantics §3.1).

A node is its path from the root. Leaves are numbered depth first in file order, so that every node covers
a contiguous range of them; a :class:`Node` is that range and the node's place in path order. What is left of a node
when children were taken out of it one by one (semantics §10.10) is a node, too: its *rest*.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import SchemaError

MISSING = "?"
MAX_DEPTH = 100
MAX_NODES = 1 << 20
SEPARATOR = ";"

Nested: TypeAlias = Mapping[str, "Nested"] | Sequence[str]


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """The leaves [first, last) of one column, but for those of ``without``, as one value of a cut.

    first, last:  of its own leaves; the first one identifies it within a cut.
    place:        position in path order, which tells a node from its only child; 0 for intervals.
    without:      children taken out, in path order; of the others there are two or more.
    """

    first: int
    last: int
    place: int = 0
    without: tuple[Node, ...] = ()

    @property
    def leaves(self) -> NDArray[np.int64]:
        """Ascending, shape (n_leaves,)."""
        leaves = np.arange(self.first, self.last)
        for child in self.without:
            leaves = leaves[(leaves < child.first) | (leaves >= child.last)]
        return leaves

    @property
    def n_leaves(self) -> int:
        inside = (min(self.last, c.last) - max(self.first, c.first) for c in self.without)
        return self.last - self.first - sum(n for n in inside if n > 0)


@dataclass(slots=True)
class _Branch:
    """A node of the tree as its lines give it. below: by label, in order of first appearance; None at a value."""

    label: str
    below: dict[str, _Branch] | None = None


@dataclass(frozen=True, slots=True)
class _Tree:
    """A node under construction."""

    label: str
    children: tuple[_Tree, ...] = ()


@dataclass(frozen=True)
class Taxonomy:
    """A value hierarchy: nodes in path order with their printed labels and children.

    leaves:    the values, in leaf order.
    printed:   label of each node as published; an inner node whose label another node bears ends in ``*``.
    nodes:     every node; ``nodes[0]`` is the root.
    children:  per node the places of its children.
    """

    leaves: tuple[str, ...]
    printed: tuple[str, ...]
    nodes: tuple[Node, ...]
    children: tuple[tuple[int, ...], ...]

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def label(self, node: Node) -> str:
        return self.printed[node.place]

    def child_nodes(self, node: Node) -> tuple[Node, ...]:
        """The children of a node that were not taken out."""
        children = tuple(self.nodes[place] for place in self.children[node.place])
        return tuple(c for c in children if c not in node.without) if node.without else children

    def rest(self, node: Node, child: Node) -> Node:
        """What is left of a node without one more of its children; two others or more remain."""
        others = [other for other in self.child_nodes(node) if other != child]
        return Node(others[0].first, others[-1].last, node.place, tuple(sorted((*node.without, child))))

    def leaf_index(self) -> dict[str, int]:
        """Map each value to its leaf number."""
        return {value: i for i, value in enumerate(self.leaves)}


def from_arx_csv(text: str, column: str, *, missing_leaf: bool) -> Taxonomy:
    """Read ARX's hierarchy format: one line ``leaf;parent;...;root`` per value.

    missing_leaf:  add a leaf ``?`` directly below the root unless the taxonomy has one.

    Raises SchemaError if the file is empty or no CSV, the lines have different roots, a value stands on two
    lines, or a value is also a group of others, and for more than ``MAX_DEPTH`` levels or ``MAX_NODES`` nodes.
    """
    try:
        lines = csv.reader(text.splitlines(), delimiter=SEPARATOR)
        return _from_paths((line[::-1] for line in lines if any(line)), column, missing_leaf)
    except csv.Error as error:
        raise _malformed(
            column, f"is no CSV: {error}", "write one line per value: leaf;parent;...;root"
        ) from error


def from_nested(tree: Nested, column: str, *, missing_leaf: bool) -> Taxonomy:
    """Read nested mappings whose last level is a list of values: ``{Any: {White-collar: [Lawyer]}}``.

    Raises SchemaError as :func:`from_arx_csv`, and if there is not exactly one root.
    """
    if not isinstance(tree, Mapping) or len(tree) != 1:
        raise _malformed(
            column,
            "has no single root",
            "write one mapping with one key, the root, e.g. {Any: {White-collar: [Lawyer, Doctor]}}",
        )
    return _from_paths(_paths(tree, (), column), column, missing_leaf)


def _paths(tree: Nested, above: tuple[str, ...], column: str) -> Iterable[tuple[str, ...]]:
    """Yield the path of every value below ``above``."""
    if len(above) > MAX_DEPTH:
        raise _too_deep(column)
    if isinstance(tree, str) or not isinstance(tree, Mapping | Sequence):
        raise _malformed(column, "has a single value where a list of values is meant", "write it as [value]")
    if not tree:
        raise _malformed(column, f"has a group {above[-1]!r} without values", "remove the group")
    if isinstance(tree, Mapping):
        for label, below in tree.items():
            yield from _paths(below, (*above, str(label)), column)
        return
    for leaf in tree:
        if not isinstance(leaf, str):
            raise _malformed(
                column, "mixes groups and values in one list", "give the values a group of their own"
            )
        yield (*above, leaf)


def _malformed(column: str, what: str, remedy: str) -> SchemaError:
    return SchemaError(
        "taxonomy-invalid", f"the taxonomy of column {column} {what}", column=column, remedy=remedy
    )


def _too_deep(column: str) -> SchemaError:
    return _malformed(column, f"has more than {MAX_DEPTH} levels", "leave out levels that tell nothing apart")


def _from_paths(paths: Iterable[Sequence[str]], column: str, missing_leaf: bool) -> Taxonomy:
    """``paths``: of each value, the labels from the root down to it."""
    root, values = _grown(paths, column)
    tree = _collapsed(root)
    if missing_leaf and MISSING not in values:
        tree = _Tree(tree.label, (*(tree.children or (_Tree(tree.label),)), _Tree(MISSING)))
    return _numbered(tree)


def _grown(paths: Iterable[Sequence[str]], column: str) -> tuple[_Branch, set[str]]:
    """The tree of all paths, each prefix once, and the values.

    One root, every value once, no value that is also a group, a bounded depth and a bounded number of nodes.
    """
    root, values, n_nodes = None, set[str](), 0
    for path in paths:
        if len(path) > MAX_DEPTH + 1:
            raise _too_deep(column)
        _add_value(path[-1], values, column)
        if is_new := root is None:
            root = _Branch(path[0])
            n_nodes += 1
        elif root.label != path[0]:
            raise _malformed(column, "has more than one root", "end every line with the same root, e.g. *")
        node = root
        for label in path[1:]:
            if node.below is None:
                if not is_new:
                    raise _value_and_group(node.label, column)
                node.below = {}
            below = node.below.get(label)
            if is_new := below is None:
                below = node.below[label] = _Branch(label)
                n_nodes += 1
            node = below
        if not is_new:
            raise _value_and_group(node.label, column)
        if n_nodes > MAX_NODES:
            raise _malformed(column, f"has more than {MAX_NODES} nodes", "publish coarser values")
    if root is None:
        raise _malformed(column, "is empty", "write one line per value: leaf;parent;...;root")
    return root, values


def _add_value(value: str, values: set[str], column: str) -> None:
    if value in values:
        raise SchemaError(
            "taxonomy-two-parents",
            f"the taxonomy of column {column} gives the value {value!r} two parents or lists it twice",
            column=column,
            remedy="keep one line per value",
        )
    values.add(value)


def _value_and_group(label: str, column: str) -> SchemaError:
    return _malformed(
        column,
        f"uses {label!r} as a value and as a group",
        "repeat the label one level up: value;value;...;root",
    )


def _collapsed(branch: _Branch) -> _Tree:
    """Join every inner node with its only child where that bears the same label; nothing else."""
    children = tuple(_collapsed(below) for below in (branch.below or {}).values())
    if len(children) == 1 and children[0].label == branch.label:
        return children[0]
    return _Tree(branch.label, children)


def _numbered(tree: _Tree) -> Taxonomy:
    """Number nodes in path order and leaves from left to right."""
    labels: list[str] = []
    nodes: list[Node] = []
    children: list[tuple[int, ...]] = []
    leaves: list[str] = []

    def visit(node: _Tree) -> int:
        place, first = len(nodes), len(leaves)
        labels.append(node.label)
        nodes.append(Node(first, first, place))
        children.append(())
        if not node.children:
            leaves.append(node.label)
        children[place] = tuple(visit(child) for child in node.children)
        nodes[place] = Node(first, len(leaves), place)
        return place

    visit(tree)
    times = Counter(labels)
    printed = tuple(
        f"{label}*" if below and times[label] > 1 else label
        for label, below in zip(labels, children, strict=True)
    )
    return Taxonomy(tuple(leaves), printed, tuple(nodes), tuple(children))
