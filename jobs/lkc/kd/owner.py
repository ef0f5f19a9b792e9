"""Forecast of kd's public cuts on a table, for its owner alone: it is told from raw records."""

from __future__ import annotations

from anonymize.grid import Grid
from jobs.data.tables import Loaded
from jobs.lkc.settings import PUBLIC
from jobs.task import Task

FEW = 0.1
"""Below this share of the records the middle half of a column's cells is bare; of even ones half are there."""
_LEAST_CELLS = 4
"""Fewer have no middle half."""


def bare_middles(task: Task, loaded: Loaded) -> tuple[str, ...]:
    """A sentence for each numeric quasi-identifier of which few records lie where public cuts come first."""
    if task.job.lkc.split != PUBLIC:
        return ()
    table, found = loaded.table, []
    for column, codes in zip(table.schema.qid, table.qid, strict=True):
        cells = column.n_leaves
        if not isinstance(column.values, Grid) or cells < _LEAST_CELLS:
            continue
        inside = (codes >= cells // 4) & (codes < cells - cells // 4)
        share = int(table.weights[inside].sum()) / table.n_records
        if share < FEW:
            found.append(
                f"column {column.name}: {share:.1%} of our records are in the middle half of its cells, where groups "
                "are cut first: they stay larger than with `cuts` at published quantiles, or with a narrower domain"
            )
    return tuple(found)
