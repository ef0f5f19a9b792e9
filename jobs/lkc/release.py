"""Released table of a joint LKC run: the counts written out, with the columns and rows sent by the parties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from anonymize.release import LabelledColumn, Release
from crypto.errors import RemoteProtocolError
from crypto.mixing import SEAL_BYTES, OpeningKey, Rows, slips_of
from jobs.errors import PartyError
from jobs.file.values import values_of
from jobs.lkc.parts import COLUMNS, ROWS, rows_shuffled
from jobs.lkc.result import Made
from jobs.lkc.rows import row_coding
from jobs.release.csv import read_csv, same_rows
from jobs.release.shuffled_rows import ShuffledRows
from jobs.task import Task


def release_of_result(
    task: Task,
    result: Made,
    parts: Mapping[str, Mapping[str, bytes]],
    key: OpeningKey | None = None,
) -> Release:
    """Return the rows of a joint run's table, in no particular order: the counts, with the parts sent by the
    parties.

    parts: by name and party (:mod:`jobs.lkc.parts`).
    key:   the coordinator's, where only the coordinator opens rows.

    The quasi-identifiers, class and sensitive values of shuffled rows must add up to the counts. Columns must have
    as many values as rows, entry by entry. Raises PartyError otherwise.
    """
    if rows_shuffled(task):
        rows = _mixed_rows(task, result.mixed, result.n_records, parts, key)
        return table_of_rows(task, result, rows)
    counted = result.counted.in_rows()  # parties send their columns in the order of the entries
    columns = dict(counted.columns)
    for party, content in parts.get(COLUMNS, {}).items():
        columns |= _columns_of(party, content, task, counted.n_rows)
    return Release(columns).ordered(task.job.published)


def _mixed_rows(
    task: Task,
    mixed: ShuffledRows | None,
    n_rows: int,
    parts: Mapping[str, Mapping[str, bytes]],
    key: OpeningKey | None,
) -> Rows:
    """Return the rows of all parties, from the result or from the deputy's boxes. Raises PartyError."""
    leader, deputy = task.job.leader_name, task.job.deputy_name
    if mixed is None or (mixed.rows is None) != (task.job.deliver == "coordinator"):
        raise PartyError("peer-protocol", "a result without the rows of its job", party=leader)
    if mixed.rows is not None:
        return mixed.rows
    assert key is not None  # drawn for every run with a release for the coordinator alone
    sent, width = parts[ROWS][deputy], mixed.width + SEAL_BYTES
    if len(sent) != n_rows * width:
        raise PartyError("peer-protocol", "the numbers of boxes and records differ", party=deputy)
    boxes = np.frombuffer(sent, dtype=np.uint8).reshape(n_rows, width)
    if hashlib.sha256(slips_of(boxes).tobytes()).hexdigest() != mixed.slips:
        raise PartyError(
            "result-mismatch",
            "the boxes differ from the boxes in which the parties found their records",
            party=deputy,
        )
    try:
        return key.opened(boxes, " or ".join(task.job.roster), ROWS)
    except RemoteProtocolError as error:
        raise PartyError("peer-protocol", f"the mixed rows: {error.reason}") from error


def table_of_rows(task: Task, result: Made, rows: Rows) -> Release:
    """Return shuffled rows as a table, in their order. Raises PartyError unless the rows add up to the counts."""
    release, counted = row_coding(task, result).decoded(rows), result.counted
    if not same_rows(release, counted, list(counted.columns)):
        raise PartyError("result-mismatch", "the mixed rows do not add up to the computed counts")
    return release


def _columns_of(party: str, content: bytes, task: Task, n_rows: int) -> dict[str, LabelledColumn]:
    """Return the contributed columns of a party of a vertical job, a value for each row, in their domains."""
    job = task.job
    names = [name for name in job.contributed_by(party) if job.columns[name].role != "qid"]
    release = _sent(party, content, names)
    known = all(
        set(release.columns[name].labels) <= set(values_of(task, name).published)
        for name in names
        if job.columns[name].role == "sensitive"
    )
    if release.n_rows != n_rows or not known:
        raise PartyError("peer-protocol", "the columns do not fit the table", party=party)
    return dict(release.columns)


def _sent(party: str, content: bytes, names: list[str]) -> Release:
    """Read the table sent by a party. An error in the table is the party's error."""
    try:
        return read_csv(content, names)
    except PartyError as error:
        raise PartyError(
            "peer-protocol", "a party's part of the table cannot be read", party=party
        ) from error
