"""`synthetic.csv`: rows drawn from what a run opened, and whether a table is such a draw.

The draw is public: its seed is a digest of the job and the marginals, so whoever has these can make the same table.
The model is computed in floating point, and machines may differ in last digits; then a table is held to the rule by
which rows are drawn, stage by stage: of every group as many rows have a value as its share of the group says, rounded
up or down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from anonymize.grid import Grid
from anonymize.release import LabelledColumn, Release
from anonymize.synthetic.draw import descent, drawn
from anonymize.synthetic.fit import Floats, Model, fitted
from anonymize.synthetic.loop import SyntheticOutcome
from anonymize.table import Ints, QidColumn, Schema
from crypto.rng import SEED_BYTES, Prg
from jobs.data.coders import numbers_of
from jobs.errors import PartyError
from jobs.release_csv import csv_bytes, read_csv
from jobs.synthetic.marginals import marginals_csv
from jobs.task import Task

SYNTHETIC_TABLE = "synthetic.csv"
_PURPOSE = b"synthetic table 1\n"
_CLOSE = 1e-6
"""Last digits in which machines may differ, relative to a count."""


def seed_of(task: Task, marginals: bytes) -> bytes:
    """The seed of the draw. marginals: the file. 32 bytes, of which the generator takes the first 16."""
    return hashlib.sha256(_PURPOSE + task.digest + hashlib.sha256(marginals).digest()).digest()


def synthetic_csv(task: Task, outcome: SyntheticOutcome) -> bytes:
    """The table, as this machine draws it."""
    model = fitted(outcome.schema, outcome.opened)
    seed = seed_of(task, marginals_csv(outcome))[:SEED_BYTES]
    return csv_bytes(drawn(model, Prg(seed)).ordered(task.job.published))


def require_drawn(task: Task, outcome: SyntheticOutcome, content: bytes) -> tuple[int, bool]:
    """Raise PartyError unless a table is drawn from what was opened, and every value is of its column's domain.

    Returns its number of rows, and whether it is the very table that this machine draws.
    """
    own = synthetic_csv(task, outcome)
    table = read_csv(content, task.job.published)
    classes, leaves = _coded_rows(outcome.schema, table)
    if own != content:
        _require_shares(fitted(outcome.schema, outcome.opened), classes, leaves)
    return table.n_rows, own == content


def _coded_rows(schema: Schema, table: Release) -> tuple[Ints, tuple[Ints, ...]]:
    """Rows by code, as :func:`anonymize.synthetic.draw.drawn_leaves`. Raises PartyError: one outside its domain."""
    leaves = tuple(_leaves(column, table.columns[column.name]) for column in schema.qid)
    if schema.class_name is None:
        return np.zeros(table.n_rows, dtype=np.int64), leaves
    return _coded(table.columns[schema.class_name], schema.class_name, schema.classes), leaves


def _require_shares(model: Model, classes: Ints, leaves: Sequence[Ints]) -> None:
    """Hold the rows to the rule of each stage of the draw."""
    schema = model.schema
    if len(classes) != round(model.totals.sum()):
        raise _wrong("it has another number of rows")
    _require(np.zeros_like(classes), classes, model.totals[None], "the classes")
    bins = [np.array(axis.bins)[codes] for axis, codes in zip(model.axes, leaves, strict=True)]
    for column, groups, weights in _stages(model, classes, bins):
        _require(groups, bins[column], weights, f"column {schema.qid[column].name}")
    for column, axis in enumerate(model.axes):
        inside = np.array(axis.bins) == np.arange(axis.n_bins)[:, None]
        weights = inside * model.leaves[column]
        _require(bins[column], leaves[column], weights, f"column {schema.qid[column].name} inside its bins")


def _stages(model: Model, classes: Ints, bins: Sequence[Ints]) -> Iterator[tuple[int, Ints, Floats]]:
    """By column, in the order of the draw: the groups of rows, and the weights of its bins in each."""
    for above, column, table in descent(model):
        if above == column:
            yield column, classes, table[0].T
        else:
            groups = classes * table.shape[0] + bins[above]
            yield column, groups, table.transpose(2, 0, 1).reshape(-1, table.shape[1])


def _require(groups: Ints, values: Ints, weights: Floats, what: str) -> None:
    """Of every group's rows each value has its share, rounded up or down. Raises PartyError."""
    n_values = weights.shape[1]
    found = np.bincount(groups * n_values + values, minlength=weights.size).reshape(weights.shape)
    sums = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, sums, out=np.full_like(weights, 1 / n_values), where=sums > 0)
    sizes = found.sum(axis=1, keepdims=True)
    if (abs(found - shares * sizes) > 1 + _CLOSE * sizes).any():
        raise _wrong(f"{what} are not shared out as the marginals say")


def _leaves(column: QidColumn, found: LabelledColumn) -> Ints:
    """The leaf of each row. Raises PartyError for a value that the column cannot have."""
    if not isinstance(column.values, Grid):
        return _coded(found, column.name, column.values.leaves)
    missing = np.array([label == "" for label in found.labels], dtype=bool)
    cells = column.values.cells(numbers_of(pa.array([label or "NaN" for label in found.labels], pa.string())))
    cells[missing] = column.values.n_cells if column.missing_cell else -1
    if (cells < 0).any():
        raise _wrong(f"column {column.name} has a value outside its domain")
    leaves: Ints = cells[found.codes] if len(cells) else np.zeros(0, dtype=np.int64)
    return leaves


def _coded(found: LabelledColumn, name: str, labels: Sequence[str]) -> Ints:
    index = {label: i for i, label in enumerate(labels)}
    if not index.keys() >= set(found.labels):
        raise _wrong(f"column {name} has a value outside its domain")
    codes: Ints = np.array([index[label] for label in found.labels] or [0], dtype=np.int64)[found.codes]
    return codes


def _wrong(what: str) -> PartyError:
    return PartyError("verification-failed", f"{SYNTHETIC_TABLE}: {what}")
