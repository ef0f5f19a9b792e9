"""Raw rows that break the `order` of a job, in sentences for the owner of the table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from anonymize.dates import DateGrid
from anonymize.grid import Grid
from jobs.data.arrow import pa
from jobs.data.coders import numbers_in
from jobs.data.counted import counted
from jobs.data.row_order import Numbers, OrderedPair, count_pairs
from jobs.data.sources import Source
from jobs.data.streaming import Streamed
from jobs.dp.settings import SyntheticModel
from jobs.synthetic.requirement import ordered_columns
from jobs.task import Task


def order_words(task: Task, source: Source) -> list[str]:
    """Say how many raw rows break the order of neighbours in `order`; nothing without the key. Raises DataError."""
    if not isinstance(task.job.model.dp, SyntheticModel):
        return []
    columns = ordered_columns(task.job, task.schema)
    if not columns:
        return []
    if not isinstance(source, Streamed):
        return [
            "rows that break `order` were not counted: the program counts rows of files and databases alone"
        ]
    grids = {column.name: column.values for column in columns if isinstance(column.values, Grid)}

    def numbers(name: str, texts: Sequence[str]) -> Numbers:
        grid = grids[name]
        return numbers_in(
            grid, pa.array(texts if isinstance(grid, DateGrid) else source.numerals(texts), pa.string())
        )

    return [_words(each) for each in count_pairs(source, list(pairwise(grids)), numbers)]


def _words(pair: OrderedPair) -> str:
    rows = counted(pair.rows, "row", "rows")
    if not pair.below:
        return f"no row of {rows} has {pair.later} below {pair.earlier}"
    below = counted(pair.below, "row has", "rows have")
    return (
        f"{below} {pair.later} below {pair.earlier}, of {rows} with both: `order` says that there are no such rows, "
        "and no drawn row is one; correct the rows, or remove `order` if it is no rule"
    )
