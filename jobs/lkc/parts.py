"""What a party hands to the coordinator besides the result: what of the table does not follow from it.

rows:     horizontal: our generalized rows with their plain columns (pass 2), in random order.
columns:  vertical: our sensitive and plain columns, entry by entry of T_g, in random order inside each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from anonymize.release import random_order
from crypto.rng import Rng
from jobs.data.sources import Source
from jobs.data.tables import LoadedColumns, Table
from jobs.lkc.result import LkcResult
from jobs.publishing import cell_columns, generalized_rows
from jobs.release_csv import rows_to_csv
from jobs.task import Task

ROWS, COLUMNS = "rows", "columns"


def rows_sent(task: Task, party: str) -> frozenset[str]:
    """Rows, where plain columns have to stay with them."""
    return frozenset({ROWS} if task.job.names("plain") else ())


def columns_sent(task: Task, party: str) -> frozenset[str]:
    """Columns, of a party that contributes others than quasi-identifiers."""
    job = task.job
    others = [name for name in job.contributed_by(party) if job.columns[name].role != "qid"]
    return frozenset({COLUMNS} if others else ())


def _result(task: Task, me: str, source: Source, table: Table, result: LkcResult, rng: Rng) -> bytes:
    return result.encoded


def _rows(task: Task, me: str, source: Source, table: Table, result: LkcResult, rng: Rng) -> bytes:
    batches = generalized_rows(source, task, result.outcome.schema, result.outcome.cut)
    return rows_to_csv(_shuffled(list(batches), rng), task.job.published)


def _shuffled(batches: Sequence[pa.RecordBatch], rng: Rng) -> list[pa.RecordBatch]:
    """All rows in a random order: the order of the file may tell who came when."""
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    order = pa.array(random_order(table.num_rows, rng))
    shuffled: list[pa.RecordBatch] = table.take(order).combine_chunks().to_batches()
    return shuffled


def _columns(task: Task, me: str, source: Source, table: Table, result: LkcResult, rng: Rng) -> bytes:
    assert isinstance(table, LoadedColumns)
    assert result.rows is not None
    batch = cell_columns(source, task, me, table.holding, result.rows)
    return rows_to_csv([batch], batch.schema.names)


PARTS: dict[str, Callable[[Task, str, Source, Table, LkcResult, Rng], bytes]] = {
    "result": _result,
    ROWS: _rows,
    COLUMNS: _columns,
}
"""How each part is made, by its name: task, party, source, table of pass 1, result, coins."""
