"""Independent check of a kd release: each label is a box, and cuts of the whole domain make all boxes.

The check shares no code with the makers of the release. :mod:`anonymize.verification.tables` checks the requirement
on the groups, as for every release.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anonymize.grid import Grid
from anonymize.taxonomy import Node, Taxonomy


def box_test(values: Taxonomy | Grid) -> Callable[[str], bool]:
    """Return a test of labels: an interval of a grid, a node, or neighbouring children of a node in file order."""
    if isinstance(values, Grid):
        return lambda label: values.interval(label) is not None
    nodes, families = frozenset(values.printed), _families(values)

    def is_box(label: str) -> bool:
        siblings = label.split("|")
        return label in nodes or any(
            siblings == family[start : start + len(siblings)]
            for family in families.get(siblings[0], ())
            for start in range(len(family))
        )

    return is_box


def run_of(values: Taxonomy | Grid) -> Callable[[str], tuple[int, int] | None]:
    """Return a function from a box label to the leaves [first, last); None if several boxes have the label."""
    if isinstance(values, Grid):
        return lambda label: None if (node := values.interval(label)) is None else (node.first, node.last)
    runs: dict[str, set[tuple[int, int]]] = {}
    places: dict[str, list[tuple[tuple[Node, ...], list[str], int]]] = {}
    for node, label in zip(values.nodes, values.printed, strict=True):
        runs.setdefault(label, set()).add((node.first, node.last))
        children = tuple(values.child_nodes(node))
        family = [_deepest(values, child) for child in children]
        for place, own in enumerate(family):
            places.setdefault(own, []).append((children, family, place))

    def run(label: str) -> tuple[int, int] | None:
        siblings = label.split("|")
        found = set(runs.get(label, ()))
        for children, family, start in places.get(siblings[0], ()):
            if len(siblings) > 1 and family[start : start + len(siblings)] == siblings:
                found.add((children[start].first, children[start + len(siblings) - 1].last))
        return found.pop() if len(found) == 1 else None

    return run


Leaves = NDArray[np.int64]


def are_cut_from(first: Leaves, last: Leaves, n_leaves: Leaves, *, whole: bool) -> bool:
    """Return True if successive cuts, each of a part between two leaves of a column, make these boxes.

    Then no two boxes have a common combination of leaves. The order of several possible cuts does not matter: each
    cut leaves the other cuts possible in both parts.

    first, last:  runs of leaves [first, last) of the boxes: shape (n_columns, n_boxes).
    n_leaves:     of the columns. whole: True if no part was left out, so every part is a box from end to end.
    """
    parts = [(np.arange(first.shape[1]), np.zeros_like(n_leaves), n_leaves)]
    while parts:
        boxes, low, high = parts.pop()
        own = first[:, boxes], last[:, boxes]
        if len(boxes) == 1:
            (begins,), (ends,) = own[0].T, own[1].T
            if whole and not (np.array_equal(begins, low) and np.array_equal(ends, high)):
                return False
            continue
        cut = _uncrossed(*own)
        if cut is None:
            return False
        column, at = cut
        is_left = own[1][column] <= at
        below, above = high.copy(), low.copy()
        below[column] = above[column] = at
        parts += [(boxes[is_left], low, below), (boxes[~is_left], above, high)]
    return True


def _uncrossed(first: Leaves, last: Leaves) -> tuple[int, int] | None:
    """Return a column and a leaf that no box crosses, with about equally many boxes on each side; or None."""
    n_boxes, found = first.shape[1], []
    for column, (begins, ends) in enumerate(zip(first, last, strict=True)):
        order = np.argsort(begins, kind="stable")
        places = 1 + np.flatnonzero(np.maximum.accumulate(ends[order])[:-1] <= begins[order][1:])
        if len(places):
            place = places[np.abs(2 * places - n_boxes).argmin()]
            found.append((abs(2 * int(place) - n_boxes), column, int(begins[order][place])))
    return min(found)[1:] if found else None


def _families(taxonomy: Taxonomy) -> dict[str, list[list[str]]]:
    """Return, by a child's printed label, its families: all children of a node, in file order."""
    found: dict[str, list[list[str]]] = {}
    for node in taxonomy.nodes:
        family = [_deepest(taxonomy, child) for child in taxonomy.child_nodes(node)]
        for label in family:
            found.setdefault(label, []).append(family)
    return found


def _deepest(taxonomy: Taxonomy, node: Node) -> str:
    """Return the label of the last node in the node's chain of only children."""
    while len(children := taxonomy.child_nodes(node)) == 1:
        (node,) = children
    return taxonomy.label(node)
