"""An independent check of what a top-down release loses: the leaves that each label of a cut covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.taxonomy import Taxonomy

Run = tuple[int, int]
"""Leaves [first, last)."""


def widths_of(column: QidColumn, labels: Sequence[str]) -> dict[str, int]:
    """By label of a cut the leaves that it covers. What rests of a node has those that no other label has.

    Of a column whose labels are told apart. Raises ValueError for labels that are no cut: they do not cover each leaf
    once.
    """
    runs, rests = _read(column, labels)
    times = np.zeros(column.n_leaves, dtype=np.int64)
    widths = {}
    for label, (first, last) in runs:
        times[first:last] += 1
        widths[label] = last - first
    for label, (first, last) in sorted(rests, key=lambda rest: rest[1][1] - rest[1][0]):
        left = times[first:last] == 0
        times[first:last] += left
        widths[label] = int(left.sum())
    if (times != 1).any() or 0 in widths.values() or len(widths) < len(labels):
        raise ValueError("labels that are no cut")
    return widths


def left_by(column: QidColumn, steps: Sequence[tuple[str, Sequence[str]]]) -> frozenset[str]:
    """The labels that specializations leave of a column, each a label and those of its children.

    Of a column whose labels are told apart, and one step or more. Raises ValueError for a label that nothing before
    led to, and for children that do not part its leaves among them.
    """
    held = {steps[0][0]: np.arange(column.n_leaves)}
    if _read(column, list(held)) != ([(steps[0][0], (0, column.n_leaves))], []):
        raise ValueError("the first does not have all leaves")
    for value, children in steps:
        if value not in held:
            raise ValueError("nothing led to it")
        left = held.pop(value)
        nodes, rests = _read(column, children)
        for child, (first, last) in (*nodes, *rests):
            own = left[(left >= first) & (left < last)]
            left = left[(left < first) | (left >= last)]
            if child in held or not len(own) or ((child, (first, last)) in nodes and len(own) < last - first):
                raise ValueError("no part of it")
            held[child] = own
        if len(left) or len(nodes) + len(rests) != len(children) or len(rests) > 1:
            raise ValueError("parts that are not the whole")
    return frozenset(held)


def are_told_apart(column: QidColumn) -> bool:
    """Return True if no two nodes, or what rests of them, print alike."""
    values = column.values
    return not isinstance(values, Taxonomy) or all(len(own) == 1 for own in _nodes(column, values).values())


def _read(column: QidColumn, labels: Sequence[str]) -> tuple[list[tuple[str, Run]], list[tuple[str, Run]]]:
    """Labels of nodes, and of what rests of nodes, each with the leaves of its node."""
    values = column.values
    if not isinstance(values, Taxonomy):
        found = [(label, values.interval(label)) for label in labels]
        return [(label, (node.first, node.last)) for label, node in found if node is not None], []
    read: tuple[list[tuple[str, Run]], list[tuple[str, Run]]] = [], []
    of_nodes = _nodes(column, values)
    for label in labels:
        for is_rest, run in of_nodes.get(label, ()):
            read[is_rest].append((label, run))
    return read


def _nodes(column: QidColumn, values: Taxonomy) -> dict[str, list[tuple[bool, Run]]]:
    """By label the nodes that print so: whether it says what rests of one, and the leaves of the whole node."""
    of_nodes: dict[str, list[tuple[bool, Run]]] = {}
    for node, printed in zip(values.nodes, values.printed, strict=True):
        of_nodes.setdefault(printed, []).append((False, (node.first, node.last)))
        if column.leaves_one_by_one(node):
            rest = column.rest.format(printed)
            of_nodes.setdefault(rest, []).append((True, (node.first, node.last)))
    return of_nodes


def loss_of(column: QidColumn, widths: Mapping[str, int], release: Release) -> float:
    """The average share of a column's leaves, beyond one, that a value covers: 0 of a column of one leaf."""
    if column.n_leaves == 1:
        return 0.0
    published = release.columns[column.name]
    beyond = np.array([widths[label] - 1 for label in published.labels], dtype=np.float64)
    return float(np.average(beyond[published.codes], weights=release.counts) / (column.n_leaves - 1))
