"""Taxonomies without the nodes below a depth: a coarser domain for the same raw values."""

from __future__ import annotations

from dataclasses import dataclass

from anonymize.errors import SchemaError
from anonymize.taxonomy import Node, Taxonomy, require_different_labels


@dataclass(frozen=True)
class ShallowTaxonomy(Taxonomy):
    """Taxonomy whose leaves are nodes of a deeper taxonomy. A raw value counts as the leaf above the value.

    deeper:  the taxonomy with all nodes; labels are the same in both.
    of:      the number of the leaf above each value of the deeper taxonomy, in leaf order.
    """

    deeper: Taxonomy
    of: tuple[int, ...]

    def leaf_index(self) -> dict[str, int]:
        """Map each value of the deeper taxonomy to the number of the leaf above the value."""
        return dict(zip(self.deeper.leaves, self.of, strict=True))


def shallow(taxonomy: Taxonomy, level: int, column: str) -> ShallowTaxonomy:
    """Return a taxonomy without the nodes more than ``level`` steps below the root. A higher value stays a leaf.

    Raises SchemaError if no node is that deep, and if two of the new leaves have the same label.
    """
    depths = depths_of(taxonomy)
    if level > max(depths):
        raise SchemaError(
            "taxonomy-invalid",
            f"column {column}: `level: {level}` is below all leaves of the taxonomy; the deepest leaves are "
            f"{max(depths)} below the root",
            column=column,
            remedy="take a smaller `level`; without `level`, single values can be published",
        )
    kept = [place for place, depth in enumerate(depths) if depth <= level]
    renumbered = {place: number for number, place in enumerate(kept)}
    children = tuple(
        tuple(renumbered[child] for child in taxonomy.children[place] if child in renumbered)
        for place in kept
    )
    bottom = [place for place, below in zip(kept, children, strict=True) if not below]
    of = tuple(leaf for leaf, place in enumerate(bottom) for _ in range(taxonomy.nodes[place].n_leaves))
    ranges = [(of[node.first], of[node.last - 1] + 1) for node in (taxonomy.nodes[place] for place in kept)]
    nodes = tuple(Node(first, last, place) for place, (first, last) in enumerate(ranges))
    leaves = tuple(taxonomy.printed[place] for place in bottom)
    require_different_labels(column, leaves)
    return ShallowTaxonomy(
        leaves, tuple(taxonomy.printed[place] for place in kept), nodes, children, taxonomy, of
    )


def depths_of(taxonomy: Taxonomy) -> list[int]:
    """Return the number of steps from the root to each node. A node stands before its children."""
    depths = [0] * len(taxonomy.nodes)
    for place, children in enumerate(taxonomy.children):
        for child in children:
            depths[child] = depths[place] + 1
    return depths
