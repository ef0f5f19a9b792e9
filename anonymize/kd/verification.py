"""An independent check of the labels of a kd release: each says a box.

It shares no code with what made the release. What the groups must meet is checked by
:mod:`anonymize.lkc.verification`, as of every release.
"""

from __future__ import annotations

from collections.abc import Callable

from anonymize.grid import Grid
from anonymize.taxonomy import Node, Taxonomy


def box_test(values: Taxonomy | Grid) -> Callable[[str], bool]:
    """What tells whether a label is an interval of a grid, a node, or neighbouring children of one in file order."""
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
    """What finds the leaves [first, last) of a label of a box; None where the label is that of several boxes."""
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


def _families(taxonomy: Taxonomy) -> dict[str, list[list[str]]]:
    """By printed label of a child the families that it is in: all children of a node, in file order."""
    found: dict[str, list[list[str]]] = {}
    for node in taxonomy.nodes:
        family = [_deepest(taxonomy, child) for child in taxonomy.child_nodes(node)]
        for label in family:
            found.setdefault(label, []).append(family)
    return found


def _deepest(taxonomy: Taxonomy, node: Node) -> str:
    """The label of the node below which nothing is left out: that of the last in a row of only children."""
    while len(children := taxonomy.child_nodes(node)) == 1:
        (node,) = children
    return taxonomy.label(node)
