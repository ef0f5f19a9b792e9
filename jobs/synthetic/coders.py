"""Coders of a column: no value drops a row, and no value is an error.

Missing values have a separate cell. A number outside its domain counts in the nearest cell. Any other unknown value
counts as the job's `other`, else as missing. A missing class is `?` if in the domain, else `other`, else the first
value. A column with `missing: never` has no separate cell: a missing or unknown value is `other`, else the first
value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anonymize.grid import Grid
from jobs.data.coders import Coder, Numeric, taxonomy_coder
from jobs.data.table_file import as_read
from jobs.dp.coders import class_coder
from jobs.dp.settings import NEVER
from jobs.task import Task

_FIRST = 0


def coder(task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
    """Return the rule of a column. All domains are listed: no domain comes from the data."""
    column = task.job.columns[name]
    if column.role == "class":
        assert column.domain is not None
        return class_coder(column.domain, column.other, _FIRST)
    values = task.taxonomies[name]
    never = column.missing == NEVER
    if isinstance(values, Grid):
        return Numeric(values, clamp=True, missing=_FIRST if never else values.n_cells)
    known = taxonomy_coder(values, drop=never)
    first = _FIRST if never else known.missing
    other = first if column.other is None else known.index[as_read(column.other)]
    return replace(known, missing=other if never else first, other=other, moved=never)
