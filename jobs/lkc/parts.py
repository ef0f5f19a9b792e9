"""Parts that a party sends the coordinator besides the result: everything in the table that does not follow from
the result.

rows:     horizontal with plain columns, if only the coordinator receives the table: the boxes with the rows of
          all parties (:mod:`jobs.lkc.shuffled`), from the deputy. Only the coordinator can open the boxes.
columns:  vertical: our sensitive and plain columns, entry by entry of T_g, in random order inside each entry.
          Before sending, we verify T_g with the sensitive columns as sent.
"""

from __future__ import annotations

from collections.abc import Callable

from anonymize.release import Release
from crypto.rng import Rng
from jobs.data.sources import Source
from jobs.data.tables import LoadedColumns, Table
from jobs.lkc.result import LkcResult, Made
from jobs.lkc.verify import require_verified
from jobs.publishing import cell_columns
from jobs.release.csv import csv_header, read_csv, rows_to_csv
from jobs.task import Task

ROWS, COLUMNS = "rows", "columns"


def rows_shuffled(task: Task) -> bool:
    """Return True if rows of all parties must be combined, so that plain columns stay with their rows."""
    return task.job.partition == "horizontal" and bool(task.job.names("plain"))


def rows_sent(task: Task, party: str) -> frozenset[str]:
    """Name the boxes of all rows, for the deputy, where rows are shuffled for the coordinator."""
    sends = rows_shuffled(task) and task.job.deliver == "coordinator" and party == task.job.deputy_name
    return frozenset({ROWS} if sends else ())


def columns_sent(task: Task, party: str) -> frozenset[str]:
    """Name the columns, for a party with contributed columns beyond quasi-identifiers."""
    job = task.job
    others = [name for name in job.contributed_by(party) if job.columns[name].role != "qid"]
    return frozenset({COLUMNS} if others else ())


def _result(task: Task, me: str, source: Source, table: Table, result: Made, rng: Rng) -> bytes:
    return result.encoded


def _rows(task: Task, me: str, source: Source, table: Table, result: Made, rng: Rng) -> bytes:
    assert result.mixed is not None
    assert result.mixed.boxes is not None  # we are the deputy
    return result.mixed.boxes.tobytes()


def _columns(task: Task, me: str, source: Source, table: Table, result: Made, rng: Rng) -> bytes:
    assert isinstance(table, LoadedColumns)
    assert isinstance(result, LkcResult)
    assert result.rows is not None
    batch = cell_columns(source, task, me, table.holding, result.rows)
    columns = rows_to_csv([batch], batch.schema.names)
    require_verified(known_of(result, columns), task, held=columns_held(task, me))
    return columns


def columns_held(task: Task, party: str) -> tuple[str, ...]:
    """Return the sensitive columns of a party's contribution, in job order."""
    contributed = task.job.contributed_by(party)
    return tuple(name for name in task.job.names("sensitive") if name in contributed)


def known_of(result: Made, columns: bytes | None) -> Release:
    """Return the table as far as a party knows the table: the part from the result, and the party's sent columns."""
    counted = result.counted.in_rows()
    own = {} if columns is None else read_csv(columns, csv_header(columns)).columns
    return Release({**counted.columns, **own})


PARTS: dict[str, Callable[[Task, str, Source, Table, Made, Rng], bytes]] = {
    "result": _result,
    ROWS: _rows,
    COLUMNS: _columns,
}
"""Makers of the parts, by name: task, party, source, table of pass 1, result, coins."""


def made(task: Task, name: str, me: str, source: Source, table: Table, result: Made, rng: Rng) -> bytes:
    """Return a party's part for the coordinator."""
    return PARTS[name](task, me, source, table, result, rng)
