"""Widths of grids with cells scored inside a circuit."""

from __future__ import annotations

from anonymize.errors import SchemaError
from anonymize.table import Schema

MAX_GRID_CELLS = 1 << 12
"""Most grid cells of a column, all scored at once. Measured with two classes and widths for 2^31 records: 100 MB at
each of the pair and 2 GB of traffic for this number, in proportion to cells and class values.
"""


def check_grids(schema: Schema) -> None:
    """Refuse grids that would take gigabytes to score. Raises SchemaError."""
    refuse_wide_grids(
        schema,
        MAX_GRID_CELLS,
        "that a sealed horizontal job can score inside a circuit",
        remedy="choose a larger `step` or fewer `cuts`; LKC with three parties or more: `disclosure: leader`",
    )


def refuse_wide_grids(schema: Schema, most: int, what_for: str, *, remedy: str) -> None:
    """Raise SchemaError for a grid of more than ``most`` cells; ``what_for``: purpose of the limit, in words."""
    for column in schema.qid:
        if column.is_numeric and column.n_leaves > most:
            raise SchemaError(
                "domain-too-large",
                f"the grid of column {column.name} has {column.n_leaves} cells, more than the {most} {what_for}",
                column=column.name,
                remedy=remedy,
            )
