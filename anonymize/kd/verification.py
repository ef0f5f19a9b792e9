"""An independent check of a kd release, from its labels alone: each says a box, and each group meets what was asked.

It shares no code with what made the release. What the groups must meet is defined in
:mod:`anonymize.lkc.verification`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anonymize.grid import Grid
from anonymize.lkc.verification import Claim, Finding, verify_finest
from anonymize.release import Release
from anonymize.taxonomy import Node, Taxonomy


def verify_kd(release: Release, values: Mapping[str, Taxonomy | Grid], claim: Claim) -> Finding | None:
    """Return the first thing that is not as it is claimed, or None.

    values:  by quasi-identifier what its labels speak of. A label that is no box is found as "label".
    """
    for name, own in values.items():
        is_box = box_test(own)
        if not all(is_box(label) for label in release.columns[name].labels):
            return Finding((name,), "label")
    return verify_finest(release, claim)


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
