"""Coders of an LKC job. A value outside the domain is refused, unless the job says `outside: missing`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anonymize.grid import Grid
from jobs.data.coders import (
    BAD,
    DROPPED,
    Categorical,
    Coder,
    Numeric,
    Unlisted,
    listed_coder,
    numbered,
    taxonomy_coder,
)
from jobs.file.schema import dates_of
from jobs.file.values import sensitive_coder
from jobs.task import Task


def coder(task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
    """Return the rule of a column."""
    rule = _strict(task, name, found)
    if task.job.columns[name].outside is None:
        return rule
    assert isinstance(rule, Categorical | Numeric), "the job lists the values"
    return replace(rule, other=rule.missing)


def _strict(task: Task, name: str, found: Sequence[str] | None) -> Coder:
    """Return the rule of a column that refuses values outside the domain."""
    column = task.job.columns[name]
    if column.role == "qid":
        values = task.taxonomies[name]
        if isinstance(values, Grid):
            return Numeric(values, missing=values.n_cells if values.missing_leaf else DROPPED)
        if column.dates is not None:  # calendar units: the leaves are the cells of a grid, and `?`
            grid = dates_of(name, column.dates)
            return Numeric(grid, missing=grid.n_cells if column.missing == "leaf" else DROPPED)
        return taxonomy_coder(values, drop=column.missing == "drop")
    if column.role == "sensitive":
        return sensitive_coder(task, name, found)
    missing = DROPPED if column.missing == "drop" else BAD
    domain = found if column.domain is None else column.domain
    if domain is None:
        return Unlisted(missing, column.may_differ)
    return listed_coder(numbered(domain), missing)
