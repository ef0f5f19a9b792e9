"""`marginals.csv`: all noisy counts of a run, signed and unbiased, each with the scale of its noise.

The file has a line for every cell of every table: first each column by leaf, then each column by bin and class,
then the chosen pairs by bin and class. So file and job determine everything that follows from the openings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from anonymize.grid import Grid
from anonymize.release import LabelledColumn, Release
from anonymize.synthetic.loop import SyntheticOutcome
from anonymize.synthetic.marginals import Axis, Marginal
from anonymize.synthetic.opened import Measured
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Node
from jobs.dp.settings import MARGINALS
from jobs.errors import PartyError
from jobs.release.csv import csv_bytes, read_csv
from jobs.synthetic.replay import edge_number, replayed
from jobs.task import Task

_NAMES = ("table", "column", "value", "other_column", "other_value", "class", "count", "scale")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def measured_tables(outcome: SyntheticOutcome) -> tuple[Measured, ...]:
    """Return all tables of a run, in the order of the file, numbered from 1 there."""
    opened = outcome.opened
    return (*opened.leaves, *opened.bins, *opened.pairs)


def scale_text(measured: Measured) -> str:
    """Return the scale of the noise of each count, to six digits."""
    return f"{float(1 / measured.rate):.6g}"


def marginals_csv(outcome: SyntheticOutcome) -> bytes:
    """Return the content of the file."""
    lines = [line for n, m in enumerate(measured_tables(outcome), 1) for line in _lines(outcome.schema, n, m)]
    columns = zip(*lines, strict=True)
    return csv_bytes(Release({name: _labelled(of) for name, of in zip(_NAMES, columns, strict=True)}))


def _labelled(values: Sequence[str]) -> LabelledColumn:
    index = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return LabelledColumn(tuple(index), np.array([index[value] for value in values], dtype=np.int64))


def _lines(schema: Schema, number: int, measured: Measured) -> Iterator[tuple[str, ...]]:
    axes, scale = measured.marginal.axes, scale_text(measured)
    names = [schema.qid[axis.column].name for axis in axes]
    labels = [bin_labels(schema.qid[axis.column], axis) for axis in axes]
    classes = schema.classes if measured.marginal.n_classes > 1 else ("",)
    counts = map(str, measured.counts.reshape(-1).tolist())
    for (*values, label), count in zip(product(*labels, classes), counts, strict=True):
        named = [text for pair in zip(names, values, strict=True) for text in pair]
        yield (str(number), *named, *[""] * (4 - len(named)), label, count, scale)


def bin_labels(column: QidColumn, axis: Axis) -> list[str]:
    """Return the label of each bin: an interval, or its values; an empty text for missing numbers."""
    found: list[list[int]] = [[] for _ in range(axis.n_bins)]
    for leaf, number in enumerate(axis.bins):
        found[number].append(leaf)
    return [_bin_label(column, leaves) for leaves in found]


def _bin_label(column: QidColumn, leaves: Sequence[int]) -> str:
    if not isinstance(column.values, Grid):
        return " | ".join(column.values.leaves[leaf] for leaf in leaves)
    if leaves[0] == column.values.n_cells:
        return ""
    return column.values.label(Node(leaves[0], leaves[-1] + 1))


def read_marginals(content: bytes, task: Task) -> SyntheticOutcome:
    """Return the run of a file of marginals. Raises PartyError for a file of no run of the job."""
    release = read_csv(content, _NAMES, MARGINALS)
    column = release.columns["count"]
    if not all(map(_INTEGER.fullmatch, column.labels)):
        raise _wrong("column count has a value other than an integer")
    counts = np.array([int(label) for label in column.labels] or [0], dtype=np.int64)[column.codes]
    try:
        outcome = replayed(task, _edges(release, task.schema), counts)
    except ValueError as error:
        raise _wrong(f"the tables differ from the tables of the job: {error}") from error
    if marginals_csv(outcome) != content:
        raise _wrong("tables, values, bins or scales do not follow from the counts")
    return outcome


def _edges(release: Release, schema: Schema) -> list[int]:
    """Return the chosen pairs of the file, in the order of their tables."""
    numbers = {column.name: number for number, column in enumerate(schema.qid)}
    names = (release.columns[name] for name in ("table", "column", "other_column"))
    rows = dict.fromkeys(zip(*([each.labels[code] for code in each.codes] for each in names), strict=True))
    found = []
    for table, one, other in rows:
        if not _NUMBER.fullmatch(table):
            raise ValueError("a table without a number")
        if int(table) > 2 * len(schema.qid):
            if one not in numbers or other not in numbers or numbers[one] >= numbers[other]:
                raise ValueError("a pair of columns is missing in the job")
            found.append(edge_number(len(schema.qid), numbers[one], numbers[other]))
    return found


def pair_of(marginal: Marginal, schema: Schema) -> list[str]:
    """Return the names of a marginal's columns."""
    return [schema.qid[number].name for number in marginal.columns]


def _wrong(what: str) -> PartyError:
    return PartyError("verification-failed", f"{MARGINALS}: {what}")
