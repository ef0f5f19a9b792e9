"""Forecast of kd's public cuts on a table. The forecast uses raw records, so only the owner sees it."""

from __future__ import annotations

from anonymize.grid import Grid
from jobs.data.tables import Loaded
from jobs.lkc.settings import PUBLIC
from jobs.task import Task

FEW = 0.1
"""Share of records below which the middle half of a column's cells is bare. Evenly spread, the share is a half."""
_LEAST_CELLS = 4
"""Fewer have no middle half."""


def bare_middles(task: Task, loaded: Loaded) -> tuple[str, ...]:
    """Return a sentence for each numeric quasi-identifier with few records at the place of the first public cuts."""
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
