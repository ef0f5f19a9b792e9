"""Pass 1 of a vertical job: a party's columns as codes, by record (semantics §3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymize.joint.columns import Holding
from anonymize.table import Schema, narrowest
from jobs.data.coding import Coded
from jobs.data.ids import id_bytes
from jobs.data.sources import Source
from jobs.data.tables import LoadedColumns
from jobs.reading import check_columns, check_rows, coding_of
from jobs.task import Task


def load_columns(source: Source, task: Task, me: str) -> LoadedColumns:
    """Read our columns and ids of a vertical job.

    :func:`jobs.data.ids.id_bytes` tells how ids are compared. A row without an id is dropped. In LKC jobs a missing
    cell drops its row, too, if the job says so for a column of ours. In DP jobs every row with an id takes part.
    Raises DataError as :func:`load_table`.
    """
    coding = coding_of(task, me, matched=True)
    check_columns(source, task, me)
    coded = source.collapse(coding)
    check_rows(coded, coding)
    return LoadedColumns(holding_of(coded, task.schema), coded.rows)


def holding_of(coded: Coded, schema: Schema) -> Holding:
    """Return the records of a vertical job in the form for the protocols."""
    return Holding(
        id_bytes(coded.ids),
        tuple(_own(coded, column.name, column.n_leaves) for column in schema.qid),
        _own(coded, schema.class_name, schema.n_classes),
        tuple(_own(coded, column.name, len(column.domain)) for column in schema.sensitive),
    )


def _own(coded: Coded, name: str | None, size: int) -> NDArray[np.integer] | None:
    """Return the codes of a column of ours in the narrowest type; None for another party's column."""
    if name is None or name not in coded.columns:
        return None
    return coded.columns[name].codes.astype(narrowest(size), copy=False)
