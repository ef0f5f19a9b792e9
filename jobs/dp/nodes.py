"""Nodes of a column by printed label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonymize.grid import Grid
from anonymize.table import QidColumn
from anonymize.taxonomy import Node
from jobs.errors import PartyError


def nodes_of(column: QidColumn, labels: Sequence[str]) -> Mapping[str, list[Node]]:
    """Return the nodes for each printed label. Raises PartyError for a label of no node."""
    if isinstance(column.values, Grid):
        intervals = {label: column.values.interval(label) for label in labels}
        found = {label: [] if node is None else [node] for label, node in intervals.items()}
    else:
        by_label: dict[str, list[Node]] = {}
        for node in column.values.nodes:
            by_label.setdefault(column.label(node), []).append(node)
        found = {label: by_label.get(label, []) for label in labels}
    if not all(found.values()):
        raise PartyError(
            "verification-failed",
            f"column {column.name} has a value that is not a node of the taxonomy or grid",
        )
    return found
