"""`synthetic.csv`: rows drawn from a run's openings, and the check that a table is such a draw.

The draw is public: its seed is a digest of the job and the marginals, and the model is the same on every machine
(:mod:`anonymize.synthetic.fit`). Anybody with both makes the same table, byte for byte. No other table is a draw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from anonymize.grid import Grid
from anonymize.release import LabelledColumn, Release
from anonymize.synthetic.draw import drawn
from anonymize.synthetic.fit import Model, fitted
from anonymize.synthetic.loop import SyntheticOutcome
from anonymize.synthetic.ordering import days_of, in_order
from anonymize.table import QidColumn, Schema
from crypto.rng import SEED_BYTES, Prg
from jobs.data.arrow import pa
from jobs.data.coders import numbers_in
from jobs.dp.settings import SYNTHETIC_TABLE
from jobs.errors import PartyError
from jobs.release.csv import csv_bytes, read_csv
from jobs.synthetic.marginals import marginals_csv
from jobs.synthetic.requirement import ordered_columns, unordered_dates
from jobs.task import Task

_PURPOSE = b"synthetic table 1\n"


def seed_of(task: Task, marginals: bytes) -> bytes:
    """Return the seed of the draw. marginals: the file. 32 bytes; the generator takes the first 16."""
    return hashlib.sha256(_PURPOSE + task.digest + hashlib.sha256(marginals).digest()).digest()


def synthetic_csv(task: Task, outcome: SyntheticOutcome) -> bytes:
    """Return the table as CSV."""
    return drawn_csv(task, outcome, fitted(outcome.schema, outcome.opened))


def drawn_csv(task: Task, outcome: SyntheticOutcome, model: Model) -> bytes:
    """Return the table of a fitted model."""
    return csv_bytes(_drawn(task, outcome, model)[0].ordered(task.job.published))


def mended_rows(task: Task, outcome: SyntheticOutcome, model: Model) -> list[int]:
    """Return the numbers of drawn rows that broke the order of the job's columns, for each pair of neighbours."""
    return _drawn(task, outcome, model)[1]


def dates_below(task: Task, outcome: SyntheticOutcome, model: Model) -> dict[tuple[str, str], int]:
    """Return, by pair of date columns without an order, the rows with the second date before the first.

    The first of a pair is the column that more rows have first; of equal columns the first of the job.
    """
    pairs = unordered_dates(task.job, outcome.schema)
    if not pairs:
        return {}
    rows = _drawn(task, outcome, model)[0]
    columns = {column.name: column for pair in pairs for column in pair}
    days = {name: days_of(rows, column) for name, column in columns.items()}
    found = {}
    for one, other in ((one.name, other.name) for one, other in pairs):
        below, above = (int((a < b).sum()) for a, b in ((days[other], days[one]), (days[one], days[other])))
        found[(one, other) if below <= above else (other, one)] = min(below, above)
    return found


def _drawn(task: Task, outcome: SyntheticOutcome, model: Model) -> tuple[Release, list[int]]:
    """Draw the rows of a model, and put values in order; return the numbers of mended rows, too."""
    seed = seed_of(task, marginals_csv(outcome))[:SEED_BYTES]
    return in_order(drawn(model, Prg(seed)), ordered_columns(task.job, outcome.schema))


def require_drawn(task: Task, outcome: SyntheticOutcome, content: bytes) -> int:
    """Raise PartyError unless a table is drawn from the openings; return its number of rows.

    Only as many rows are drawn as the table has. Every value is checked against its column's domain separately: a
    draw outside a domain is no table of the job.
    """
    table = read_csv(content, task.job.published, SYNTHETIC_TABLE)
    model = fitted(outcome.schema, outcome.opened)
    if table.n_rows != model.n_rows:
        raise _wrong("the number of rows does not follow from the marginals")
    _require_domains(outcome.schema, table)
    if content != drawn_csv(task, outcome, model):
        raise _wrong("the rows do not follow from the marginals")
    return table.n_rows


def _require_domains(schema: Schema, table: Release) -> None:
    """Raise PartyError for a value outside its column's domain."""
    for column in schema.qid:
        _require_leaves(column, table.columns[column.name])
    if schema.class_name is not None:
        _require_labels(table.columns[schema.class_name], schema.class_name, schema.classes)


def _require_leaves(column: QidColumn, found: LabelledColumn) -> None:
    if not isinstance(column.values, Grid):
        _require_labels(found, column.name, column.values.leaves)
        return
    cells = column.values.cells(
        numbers_in(column.values, pa.array([label or "NaN" for label in found.labels], pa.string()))
    )
    missing = np.array([label == "" for label in found.labels], dtype=bool)
    if ((cells < 0) & ~(missing & column.missing_cell)).any():
        raise _outside(column.name)


def _require_labels(found: LabelledColumn, name: str, labels: Sequence[str]) -> None:
    if not set(labels) >= set(found.labels):
        raise _outside(name)


def _outside(name: str) -> PartyError:
    return _wrong(f"column {name} has a value outside its domain")


def _wrong(what: str) -> PartyError:
    return PartyError("verification-failed", f"{SYNTHETIC_TABLE}: {what}")
