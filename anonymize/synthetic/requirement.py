"""Requirement of a job with `method: synthetic`, and the shares of its budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, isqrt

from anonymize.dates import DateGrid
from anonymize.dp.accounting import Budget
from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.table import QidColumn, Schema

MAX_GRID_CELLS = 256
"""Most cells of a numeric column. All are measured without the class; further cells would hold only noise."""

MAX_DIGITS = 15
"""Most digits of a drawn number, before and behind the point together: doubles distinguish all such numbers. With
more digits, a number just below an edge could be read as the edge, which belongs to the next cell or lies outside.
"""


@dataclass(frozen=True)
class Design:
    """Choices for all tables, made once, on training data alone (benchmarks/RESULTS.md).

    leaves:   share of ε for the columns by leaf.
    choice:   share of ε for the choice of pairs, if pairs are measured.
    pair:     budget of a pair's table as a multiple of the budget of a column by bin and class, from the remainder of
              ε.
    theta:    target of a bin, in scales of the noise of a leaf.
    grid_bins:      most bins of a numeric column, besides the bin of missing cells.
    taxonomy_bins:  most bins of a categorical column.
    within_classes, alone:  `auto` measures T pairs from (T + 1)² times this value of ε times the rows for each
                            column; ``alone`` without a class.
    """

    leaves: Fraction = Fraction(30, 100)
    choice: Fraction = Fraction(10, 100)
    pair: int = 2
    theta: Fraction = Fraction(2)
    grid_bins: int = 12
    taxonomy_bins: int = 32
    within_classes: int = 20
    alone: int = 2

    def bins(self, n_columns: int, n_edges: int) -> Fraction:
        """Return the share of ε for the columns by bin and class."""
        rest = 1 - self.leaves - (self.choice if n_edges else 0)
        return rest * n_columns / (n_columns + self.pair * n_edges)

    def unit(self, schema: Schema) -> int:
        """Return the value of ε times the rows whose (T + 1)² multiple lets `auto` measure T pairs."""
        return len(schema.qid) * (self.within_classes if schema.n_classes > 1 else self.alone)


@dataclass(frozen=True)
class Synthetic(Budget):
    """Requirement of a synthetic table.

    edges:  T, number of measured pairs of columns; None: `auto`, by ε and the noisy number of rows.
    """

    edges: int | None = None
    design: Design = field(default=Design(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.edges is not None and self.edges < 0:
            raise SchemaError("job-invalid", "edges must be `auto` or 0 and more")

    def n_edges(self, schema: Schema, n_rows: int) -> int:
        """Return T for a noisy number of rows."""
        if self.edges is not None:
            return self.edges
        units = self.of_a_record(self.epsilon) * max(n_rows, 0) / self.design.unit(schema)
        return min(len(schema.qid) - 1, max(0, isqrt(int(units)) - 1))

    def rows_for_edges(self, schema: Schema) -> int:
        """Return the fewest rows at which `auto` measures a pair."""
        return ceil(4 * self.design.unit(schema) / self.of_a_record(self.epsilon))


def check_synthetic(schema: Schema, requirement: Synthetic) -> None:
    """Refuse unsupported jobs before any data is read. Raises SchemaError."""
    if not schema.qid:
        raise SchemaError("job-invalid", "a synthetic table needs a column beside the class")
    most = len(schema.qid) - 1
    if requirement.edges is not None and requirement.edges > most:
        raise SchemaError(
            "job-invalid", f"edges must be at most {most}: more pairs of {most + 1} columns have cycles"
        )
    for column in schema.qid:
        _check_column(column)


def _check_column(column: QidColumn) -> None:
    if column.sets is not None:
        raise SchemaError(
            "job-invalid",
            f"column {column.name} is set-valued, but `method: synthetic` cannot publish sets",
            column=column.name,
            remedy="make the column categorical, or say `method: diffgen`",
        )
    if isinstance(column.values, Grid):
        _check_grid(column.name, column.values)


def _least_step(grid: Grid) -> str:
    step = (grid.edges[-1] - grid.edges[0]) / MAX_GRID_CELLS
    return f"{ceil(step / grid.per_day)}d" if isinstance(grid, DateGrid) else str(step)


def _check_grid(name: str, grid: Grid) -> None:
    if grid.n_cells > MAX_GRID_CELLS:
        raise SchemaError(
            "grid-invalid",
            f"the grid of column {name} has {grid.n_cells} cells; `method: synthetic` takes {MAX_GRID_CELLS} at most",
            column=name,
            remedy=f"take a step of at least {_least_step(grid)}",
        )
    if max(map(abs, grid.units)) > 10**MAX_DIGITS:
        raise SchemaError(
            "grid-invalid",
            f"numbers of column {name} would have more than {MAX_DIGITS} digits, {grid.decimals} digits behind the "
            f"point as in the edges; `method: synthetic` draws numbers of at most {MAX_DIGITS} digits",
            column=name,
            remedy="write min, max, step and cut points with fewer digits behind the point, or take a smaller domain",
        )
