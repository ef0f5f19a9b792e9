"""Value hierarchies of categorical columns (semantics §3.1).

A node is its path from the root. Leaves are numbered depth first in file order, so every node covers a contiguous
range. A :class:`Node` is this range and the node's place in path order. The remainder of a node after children were
taken out separately (semantics §10.10) is a node, too: its *rest*.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import SchemaError

MISSING = "?"
MAX_DEPTH = 100
MAX_NODES = 1 << 20
SEPARATOR = ";"
_SUPPRESSED = "*"
"""Usual root, and the published text of suppressed values."""
_OTHER_SEPARATORS = ",\t|"
_MOST_LOOKED_AT = 1000
"""Lines read behind two different roots, to tell a header from a wrong line."""
_MOST_SHOWN = 60
"""Characters of a label in an error."""
_FORM = "write a line for each value: leaf;parent;...;root"

Nested: TypeAlias = Mapping[str, "Nested"] | Sequence[str]


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """Leaves [first, last) of a column, without the leaves of ``without``, as a value of a cut.

    first, last:  range of the node's leaves; ``first`` identifies the node within a cut.
    place:        position in path order; 0 for intervals.
    without:      children taken out, in path order; two or more children remain.
    """

    first: int
    last: int
    place: int = 0
    without: tuple[Node, ...] = ()

    @property
    def leaves(self) -> NDArray[np.int64]:
        """Numbers of the node's leaves, ascending: shape (n_leaves,)."""
        leaves = np.arange(self.first, self.last)
        for child in self.without:
            leaves = leaves[(leaves < child.first) | (leaves >= child.last)]
        return leaves

    @property
    def n_leaves(self) -> int:
        inside = (min(self.last, c.last) - max(self.first, c.first) for c in self.without)
        return self.last - self.first - sum(n for n in inside if n > 0)


class _Path(NamedTuple):
    """Labels from the root down to a value. line: line of the file, None in an inline tree."""

    labels: Sequence[str]
    line: int | None = None


@dataclass(slots=True)
class _Branch:
    """Node of the tree in the lines. below: children by label, in order of appearance; None at a value."""

    label: str
    below: dict[str, _Branch] | None = None


@dataclass(frozen=True, slots=True)
class _Tree:
    """Node under construction."""

    label: str
    children: tuple[_Tree, ...] = ()


@dataclass(frozen=True)
class Taxonomy:
    """Value hierarchy: nodes in path order with their printed labels and children.

    leaves:    the values, in leaf order.
    printed:   published label of each node; an inner node ends in ``*`` while another node has the label, in NFC.
    nodes:     all nodes; ``nodes[0]`` is the root.
    children:  places of each node's children.
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
        """Return the children of a node in the hierarchy, in path order; empty for a leaf."""
        return tuple(self.nodes[place] for place in self.children[node.place])

    def narrowed(self, node: Node) -> Node:
        """Follow only children: return the first node from here down that has no child or several children.

        All nodes on the way have the same leaves. The lowest node has the most informative label and costs nothing.
        """
        return self._narrowed[node.place]

    @cached_property
    def _narrowed(self) -> tuple[Node, ...]:
        """Narrowed nodes by place; a node stands before its children."""
        found = list(self.nodes)
        for place in reversed(range(len(found))):
            if len(children := self.children[place]) == 1:
                found[place] = found[children[0]]
        return tuple(found)

    def parts(self, node: Node) -> tuple[Node, ...]:
        """Return the narrowed nodes into which a node of a cut is separated; empty for a leaf."""
        narrowed = self._narrowed
        found = tuple(narrowed[place] for place in self.children[node.place])
        return tuple(child for child in found if child not in node.without) if node.without else found

    def rest(self, node: Node, child: Node) -> Node:
        """Return the rest of a node after the removal of a further part; at least two parts remain."""
        others = [other for other in self.parts(node) if other != child]
        return Node(others[0].first, others[-1].last, node.place, tuple(sorted((*node.without, child))))

    def leaf_index(self) -> dict[str, int]:
        """Map each value to its leaf number."""
        return {value: i for i, value in enumerate(self.leaves)}


def from_arx_csv(text: str, column: str, *, missing_leaf: bool) -> Taxonomy:
    """Read ARX's hierarchy format: a line ``leaf;parent;...;root`` per value.

    Blanks around labels, lines without labels and separators behind the root do not count.

    missing_leaf:  add a leaf ``?`` directly below the root unless the taxonomy has it.

    Raises SchemaError with the line if the file is empty or not CSV, has another separator, an empty level or lines
    with different roots, if a value stands on two lines or is also a group, and for more than ``MAX_DEPTH`` levels or
    ``MAX_NODES`` nodes.
    """
    lines = lines_of(text)
    _refuse_other_separator(lines, column)
    return _from_paths(_paths_of_lines(lines, column), column, missing_leaf)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text. Of the signs that end a line in Unicode, only those of text files end a line."""
    return [line.rstrip("\n") for line in io.StringIO(text, newline=None)]


def _refuse_other_separator(lines: Sequence[str], column: str) -> None:
    """Refuse a file of several lines if its first line has a separator other than ``SEPARATOR``."""
    used = list(islice(((n, line) for n, line in enumerate(lines, 1) if line.strip()), 2))
    if len(used) < 2 or SEPARATOR in used[0][1]:
        return
    at, first = used[0]
    found = max(_OTHER_SEPARATORS, key=first.count)
    if found in first:
        looks = "tab" if found == "\t" else repr(found)
        raise _malformed(
            column,
            f"has no {SEPARATOR!r} between labels: the file looks {looks}-separated",
            f"separate the labels by {SEPARATOR!r}: value;group;...;root",
            at,
        )


def _paths_of_lines(lines: Sequence[str], column: str) -> Iterator[_Path]:
    """Yield the path of every value. Raises SchemaError."""
    reader, begins = csv.reader(lines, delimiter=SEPARATOR), 1
    try:
        for cells in reader:
            line, begins = begins, reader.line_num + 1
            labels = [cell.strip() for cell in cells]
            while labels and not labels[-1]:
                labels.pop()
            if labels:
                _check_line(labels, line, reader.line_num, column)
                yield _Path(labels[::-1], line)
    except csv.Error as error:
        raise _malformed(column, f"is no CSV: {error}", _FORM, begins) from error


def _check_line(labels: Sequence[str], line: int, last: int, column: str) -> None:
    """Refuse an empty level, and a label over several lines. last: the row's last line."""
    if last > line:
        raise _malformed(
            column,
            'has a quote (") that does not end on the line',
            'end the quote, or write a quote inside a quoted label twice ("")',
            line,
        )
    if "" not in labels:
        return
    level = labels.index("") + 1
    if level == 1:
        raise _malformed(
            column, "has no value (level 1 is empty)", f"write the value, {MISSING} for missing cells", line
        )
    raise _malformed(
        column,
        f"has an empty label (level {level} is empty)",
        "write the group, or leave the level out: value;root puts the value right below the root",
        line,
    )


def from_nested(tree: Nested, column: str, *, missing_leaf: bool) -> Taxonomy:
    """Read nested mappings with a list of values at the last level: ``{Any: {White-collar: [Lawyer]}}``.

    Raises SchemaError as :func:`from_arx_csv`, and for no root or several roots.
    """
    if not isinstance(tree, Mapping) or len(tree) != 1:
        raise _malformed(
            column,
            "has no single root",
            "write a mapping with a single key, the root, e.g. {Any: {White-collar: [Lawyer, Doctor]}}",
        )
    return _from_paths(_paths(tree, (), column), column, missing_leaf)


def _paths(tree: Nested, above: tuple[str, ...], column: str) -> Iterator[_Path]:
    """Yield the path of every value below ``above``."""
    if len(above) > MAX_DEPTH:
        raise _too_deep(column)
    if isinstance(tree, str) or not isinstance(tree, Mapping | Sequence):
        raise _malformed(column, "has a single value where a list of values is meant", "write it as [value]")
    if not tree:
        raise _malformed(column, f"has a group {above[-1]!r} without values", "remove the group")
    if isinstance(tree, Mapping):
        for label, below in tree.items():
            yield from _paths(below, (*above, _named(str(label), column)), column)
        return
    for leaf in tree:
        if not isinstance(leaf, str):
            raise _malformed(
                column, "mixes groups and values in the same list", "put the values into a separate group"
            )
        yield _Path((*above, _named(leaf, column)))


def _named(label: str, column: str) -> str:
    """Return a label without the blanks around it. Raises SchemaError for an empty label."""
    if not (found := label.strip()):
        raise _malformed(column, "has an empty label", f"write a label, {MISSING} for missing cells")
    return found


def _malformed(column: str, what: str, remedy: str, line: int | None = None) -> SchemaError:
    return _wrong("taxonomy-invalid", column, what, remedy, line)


def _wrong(error_id: str, column: str, what: str, remedy: str, line: int | None) -> SchemaError:
    where = "" if line is None else f"line {line}: "
    message = f"{where}the taxonomy of column {column} {what}"
    return SchemaError(error_id, message, column=column, remedy=remedy, line=line)


def _quoted(label: str) -> str:
    """Return a label in quotes; of a long label the beginning."""
    return repr(label) if len(label) <= _MOST_SHOWN else f"{label[:_MOST_SHOWN]!r}..."


def _too_deep(column: str, line: int | None = None) -> SchemaError:
    remedy = "leave out levels that separate no values"
    return _malformed(column, f"has more than {MAX_DEPTH} levels", remedy, line)


def _from_paths(paths: Iterator[_Path], column: str, missing_leaf: bool) -> Taxonomy:
    root, values = _grown(paths, column)
    if _SUPPRESSED in values and len(values) > 1:
        what = f"has a value {_SUPPRESSED!r}, which means a suppressed value"
        raise _malformed(column, what, "rename the value, also in the table", values[_SUPPRESSED])
    tree = _collapsed(root)
    if missing_leaf and MISSING not in values:
        tree = _Tree(tree.label, (*(tree.children or (_Tree(tree.label),)), _Tree(MISSING)))
    return _numbered(tree)


def _grown(paths: Iterator[_Path], column: str) -> tuple[_Branch, Mapping[str, int | None]]:
    """Return the tree of all paths, each prefix once, and the values with their lines.

    Raises SchemaError for several roots, a repeated value, a value that is also a group, too many levels or too many
    nodes.
    """
    root, values, n_nodes = None, dict[str, int | None](), 0
    first = _Path(())
    for path in paths:
        labels, line = path
        if len(labels) > MAX_DEPTH + 1:
            raise _too_deep(column, line)
        if is_new := root is None:
            root, first = _Branch(labels[0]), path
            n_nodes += 1
        elif root.label != labels[0]:
            raise _several_roots(first, path, paths, len(values), column)
        _add_value(path, values, column)
        node = root
        for label in labels[1:]:
            if node.below is None:
                if not is_new:
                    raise _value_and_group(node.label, column, line)
                node.below = {}
            below = node.below.get(label)
            if is_new := below is None:
                below = node.below[label] = _Branch(label)
                n_nodes += 1
            node = below
        if not is_new:
            raise _value_and_group(node.label, column, line)
        if n_nodes > MAX_NODES:
            raise _malformed(column, f"has more than {MAX_NODES} nodes", "publish coarser values", line)
    if root is None:
        raise _malformed(column, "is empty", _FORM)
    return root, values


def _several_roots(
    first: _Path, other: _Path, later: Iterator[_Path], n_before: int, column: str
) -> SchemaError:
    """Return the error of a line with another root than the ``n_before`` lines before it; ``first`` is the first of
    them.

    If all lines from the second on agree, the first line is wrong, perhaps a header.
    """
    wrong, right, rest = other, first, "the first line" if n_before > 1 else f"line {first.line}"
    if n_before == 1 and {p.labels[0] for p in islice(later, _MOST_LOOKED_AT)} == {other.labels[0]}:
        wrong, right, rest = first, other, "the other lines"
    return _malformed(
        column,
        f"has more than one root: line {wrong.line} ends with {_quoted(wrong.labels[0])}, {rest} with "
        f"{_quoted(right.labels[0])}",
        "end every line with the same root, e.g. *; remove a header (a first line with names of columns)",
        wrong.line,
    )


def _add_value(path: _Path, values: dict[str, int | None], column: str) -> None:
    value, line = path.labels[-1], path.line
    if value in values:
        before = "" if line is None else f" (lines {values[value]} and {line})"
        what = f"gives the value {_quoted(value)} two parents or lists it twice{before}"
        raise _wrong("taxonomy-two-parents", column, what, "keep a single line for each value", line)
    values[value] = line


def _value_and_group(label: str, column: str, line: int | None) -> SchemaError:
    return _malformed(
        column,
        f"uses {_quoted(label)} as a value and as a group",
        "repeat the label a level higher: value;value;...;root",
        line,
    )


def _collapsed(branch: _Branch) -> _Tree:
    """Join every inner node with its only child if both have the same label. Join no other nodes."""
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
    times = Counter(map(_compared, labels))
    printed = tuple(
        _distinct(label, times) if below else label for label, below in zip(labels, children, strict=True)
    )
    return Taxonomy(tuple(leaves), printed, tuple(nodes), tuple(children))


def _distinct(label: str, times: Mapping[str, int]) -> str:
    """Return the printed label of an inner node. times: the number of nodes with each label, in NFC."""
    if times[_compared(label)] == 1:
        return label
    found = f"{label}*"
    while times[_compared(found)]:
        found += "*"
    return found


def _compared(label: str) -> str:
    return unicodedata.normalize("NFC", label)


def require_different_labels(column: str, labels: Sequence[str]) -> None:
    """Raise SchemaError if two groups at a level of a taxonomy have the same label."""
    for label, times in Counter(labels).items():
        if times > 1:
            raise SchemaError(
                "taxonomy-invalid",
                f"column {column}: at this `level` two groups of the taxonomy have the label {label!r}",
                column=column,
                remedy="rename one of the groups, or choose a different `level`",
            )
