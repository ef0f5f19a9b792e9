"""What a job with `method: synthetic` asks for, and how its budget is shared out."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.table import MAX_RECORDS, QidColumn, Schema

MAX_GRID_CELLS = 128
"""Of a numeric column: all are measured, and of more most would hold nothing but noise."""


@dataclass(frozen=True)
class Design:
    """Choices that hold for all tables, made once, on training data alone (docs/dp.md).

    leaves:   share of ε for the columns by leaf.
    choice:   ... for the choice of pairs, if any are measured.
    pair:     of the rest, the table of a pair gets so many times as much as that of a column by bin and class.
    theta:    a bin is to hold so many scales of the noise of a leaf.
    grid_bins:      bins of a numeric column at most, besides that of missing cells.
    taxonomy_bins:  bins of a categorical column at most.
    most_edges:     `auto` measures at most so many pairs,
    per_edge:       and one for so much of ε times the rows for each column.
    """

    leaves: Fraction = Fraction(30, 100)
    choice: Fraction = Fraction(10, 100)
    pair: int = 2
    theta: Fraction = Fraction(2)
    grid_bins: int = 12
    taxonomy_bins: int = 32
    most_edges: int = 9
    per_edge: int = 75

    def bins(self, n_columns: int, n_edges: int) -> Fraction:
        """The share of ε for the columns by bin and class."""
        rest = 1 - self.leaves - (self.choice if n_edges else 0)
        return rest * n_columns / (n_columns + self.pair * n_edges)


@dataclass(frozen=True)
class Synthetic:
    """The requirement.

    epsilon:     the whole budget.
    edges:       T, how many pairs of columns are measured; None: `auto`, by ε and the noisy number of rows.
    max_rows:    public bound on the records of one holder; more are refused before anything is sent.
    per_person:  m: so many records may be one person's, whom ε is for; 1: ε is for a record.
    """

    epsilon: Fraction
    edges: int | None = None
    max_rows: int = 1_000_000
    per_person: int = 1
    design: Design = field(default=Design(), repr=False)

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise SchemaError("job-invalid", f"epsilon must be above 0, not {self.epsilon}")
        if not 1 <= self.max_rows <= MAX_RECORDS:
            raise SchemaError("job-invalid", f"max_rows must be 1 to {MAX_RECORDS}")
        if self.per_person < 1:
            raise SchemaError("job-invalid", "max_records_per_person must be at least 1")
        if self.edges is not None and self.edges < 0:
            raise SchemaError("job-invalid", "edges must be `auto` or 0 and more")

    def of_a_record(self, epsilon: Fraction) -> Fraction:
        """What a step that costs a person ``epsilon`` may cost one record: what its noise is drawn for."""
        return epsilon / self.per_person

    def n_edges(self, n_columns: int, n_rows: int) -> int:
        """T, for a noisy number of rows."""
        if self.edges is not None:
            return self.edges
        rows_each = self.of_a_record(self.epsilon) * max(n_rows, 0) / n_columns
        return min(self.design.most_edges, n_columns - 1, int(rows_each / self.design.per_edge))

    def rows_for_edges(self, n_columns: int) -> int:
        """The fewest rows at which `auto` measures a pair."""
        return -int(-self.design.per_edge * n_columns // self.of_a_record(self.epsilon))


def check_synthetic(schema: Schema, requirement: Synthetic) -> None:
    """Refuse what the method cannot do, before any data is read. Raises SchemaError."""
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
            f"column {column.name} is set-valued, which `method: synthetic` cannot publish",
            column=column.name,
            remedy="make it a categorical column, or say `method: diffgen`",
        )
    if isinstance(column.values, Grid) and column.values.n_cells > MAX_GRID_CELLS:
        width = column.values.edges[-1] - column.values.edges[0]
        raise SchemaError(
            "grid-invalid",
            f"the grid of column {column.name} has {column.values.n_cells} cells; `method: synthetic` takes "
            f"{MAX_GRID_CELLS} at most",
            column=column.name,
            remedy=f"take a step of at least {width / MAX_GRID_CELLS}",
        )
