"""The released table of a joint LKC run: its counts written out, with what the parties sent besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonymize.release import LabelledColumn, Release
from anonymize.table import Ints
from crypto.rng import SystemRng
from jobs.errors import PartyError
from jobs.lkc.parts import COLUMNS, ROWS
from jobs.lkc.result import Made
from jobs.release_csv import read_csv, same_rows
from jobs.task import Task


def release_of_result(task: Task, result: Made, parts: Mapping[str, Mapping[str, bytes]]) -> Release:
    """The table of a joint run: its counts written out, with what the parties sent besides where that is needed.

    parts: by name and party (:mod:`jobs.lkc.parts`). The quasi-identifiers, class and sensitive values of all
    parties' rows must add up to the counts; columns must have as many values as there are rows, entry by entry.
    Raises PartyError if they do not.
    """
    counted = result.counted
    if rows := parts.get(ROWS):
        return _of_rows(task, counted, rows).shuffled(SystemRng())
    columns = dict(counted.columns)
    for party, content in parts.get(COLUMNS, {}).items():
        columns |= _columns_of(party, content, task, counted.n_rows)
    return Release(columns).ordered(task.job.published).shuffled(SystemRng())


def _of_rows(task: Task, counted: Release, rows: Mapping[str, bytes]) -> Release:
    release = _stacked([_sent(party, rows[party], task.job.published) for party in task.job.roster])
    if not same_rows(release, counted, list(counted.columns)):
        raise PartyError(
            "result-mismatch", "the rows the parties sent do not add up to the counts they computed"
        )
    return release


def _columns_of(party: str, content: bytes, task: Task, n_rows: int) -> dict[str, LabelledColumn]:
    """The columns a party of a vertical job contributes, one value for each row, in their domains."""
    job = task.job
    names = [name for name in job.contributed_by(party) if job.columns[name].role != "qid"]
    release = _sent(party, content, names)
    known = all(
        set(release.columns[name].labels) <= set(job.columns[name].domain or ())
        for name in names
        if job.columns[name].role == "sensitive"
    )
    if release.n_rows != n_rows or not known:
        raise PartyError("peer-protocol", "columns that do not fit the table", party=party)
    return dict(release.columns)


def _sent(party: str, content: bytes, names: Sequence[str]) -> Release:
    """Read the table a party sent; what is wrong with it is that party's."""
    try:
        return read_csv(content, names)
    except PartyError as error:
        raise PartyError("peer-protocol", "its part of the table cannot be read", party=party) from error


def _stacked(tables: list[Release]) -> Release:
    columns = {}
    for name in tables[0].columns:
        labels = tuple(dict.fromkeys(label for table in tables for label in table.columns[name].labels))
        place = {label: i for i, label in enumerate(labels)}
        codes = [_renumbered(table.columns[name], place) for table in tables]
        columns[name] = LabelledColumn(labels, np.concatenate(codes))
    return Release(columns)


def _renumbered(column: LabelledColumn, place: Mapping[str, int]) -> Ints:
    return np.array([place[label] for label in column.labels] or [0], dtype=np.int64)[column.codes]
