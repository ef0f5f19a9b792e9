"""kd tables as readers see the tables: labels of boxes, and measures of the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.criteria.size import least_size
from anonymize.kd.boxes import Boxes
from anonymize.kd.metrics import measure_loss
from anonymize.kd.replay import cuts_of
from anonymize.kd.single import the_entry
from anonymize.kd.table import BoxedTable, in_box_order
from anonymize.release import Release
from anonymize.table import QidColumn, Schema
from anonymize.verification.boxes import are_cut_from, box_test, run_of
from anonymize.verification.tables import kinds_of_rows
from jobs.errors import PartyError
from jobs.file.schema import qid_of
from jobs.lkc.forms.form import form_of
from jobs.lkc.kd.report import cut_fields, metrics_of
from jobs.lkc.requirement import requirement
from jobs.lkc.settings import MEDIAN, PUBLIC
from jobs.release.checking import Undetermined
from jobs.task import Task


def known_labels(column: QidColumn) -> Callable[[str], bool]:
    """Return a test of labels: a box of a column."""
    return box_test(column.values)


def check_groups(task: Task, release: Release) -> dict[str, str]:
    """Check that the groups of a table are boxes made by cuts, disjoint, and with `split: median` without a gap.

    Returns by key what the table and report do not allow to check. Raises PartyError.
    """
    if not form_of(task.job).quasi.generalized(task.job):
        return {}
    qid = qid_of(task.job, task.taxonomies)
    table, is_median = boxes_of(qid, release), task.job.lkc.split == MEDIAN
    if table is None:
        names = ", ".join(column.name for column in qid if _is_ambiguous(column, release))
        return {
            "boxes": f"that groups are boxes with nothing in common: labels of {names} belong to several boxes, "
            "and the table does not tell the box"
        }
    n_leaves = np.array([column.n_leaves for column in qid], dtype=np.int64)
    if not are_cut_from(table.boxes.first, table.boxes.last, n_leaves, whole=is_median):
        left_out = ", or leave something out" if is_median else ""
        raise PartyError(
            "verification-failed",
            f"the groups of the table are not boxes made by cuts: the groups overlap{left_out}",
        )
    return {}


def _is_ambiguous(column: QidColumn, release: Release) -> bool:
    return any(run_of(column.values)(label) is None for label in release.columns[column.name].labels)


def readings(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """Yield the expected content of a report on groups, cuts and loss.

    If several boxes share a label, the table shows neither loss nor cuts. With `split: median` the table shows only
    the number of cuts. Raises PartyError for groups that no run makes.
    """
    qid = qid_of(task.job, task.taxonomies)
    schema, names = Schema(qid, None, ("",)), [column.name for column in qid]
    cuts: Undetermined | dict[str, Any] = Undetermined(partial(_are_cuts, names, None))
    metrics: dict[str, Any] = metrics_of(task, release)
    if form_of(task.job).quasi.generalized(task.job):
        table = boxes_of(qid, release)
        if table is None:
            share = Undetermined(lambda said: type(said) is float)
            metrics |= {"generalization_loss": dict.fromkeys(names, share), "ncp": share}
        else:
            metrics |= asdict(measure_loss(schema, table))
            if task.job.lkc.split == PUBLIC:
                cuts = _cuts(schema, table, _least(task, release))
            else:
                cuts = Undetermined(partial(_are_cuts, names, table.n_groups - 1))
    yield {"cuts": cuts, "metrics": metrics}


def _are_cuts(names: Sequence[str], n_cuts: int | None, said: Any) -> bool:
    """Return True if a report has numbers of cuts by column; n_cuts: their sum, if a table shows the sum.

    Each cut has records on both sides, and so makes one group more.
    """
    if not isinstance(said, dict) or list(said) != list(names):
        return False
    if not all(
        isinstance(own, list) and all(type(n) is int and n >= 0 for n in own) for own in said.values()
    ):
        return False
    return n_cuts is None or sum(map(sum, said.values())) == n_cuts


def boxes_of(qid: Sequence[QidColumn], release: Release) -> BoxedTable | None:
    """Return the groups of a table, from the labels alone; None if the labels do not determine boxes."""
    columns = [release.columns[column.name] for column in qid]
    row, counts = kinds_of_rows([column.codes.astype(np.int64) for column in columns], release)
    ends = []
    for column, own in zip(qid, columns, strict=True):
        run = run_of(column.values)
        runs = [run(label) for label in own.labels]
        if any(each is None for each in runs):
            return None
        ends.append(np.array(runs, dtype=np.int64).reshape(-1, 2)[own.codes[row]].T)
    boxes = Boxes(np.stack([first for first, _ in ends]), np.stack([last for _, last in ends]))
    order, groups = in_box_order(boxes), np.arange(len(row))
    return BoxedTable(boxes.some(order), groups, np.zeros_like(groups), counts[order])


def _least(task: Task, release: Release) -> int:
    """Return K, with the domains of the table where the job does not list domains."""
    columns = task.job.columns
    found = {
        name: tuple(sorted(release.columns[name].labels))
        for name in task.job.names("class", "sensitive")
        if not columns[name].is_listed
    }
    return least_size(the_entry(requirement(task), task.schema_with(found)).criteria)


def _cuts(schema: Schema, table: BoxedTable, least: int) -> dict[str, Any]:
    """Return the cuts behind the groups of a table. Raises PartyError for groups that no run makes."""
    try:
        found: dict[str, Any] = cut_fields(schema, cuts_of(schema, table, least))["cuts"]
    except ValueError as error:
        raise PartyError(
            "verification-failed", "the groups of the table are boxes, but no run makes these boxes"
        ) from error
    return found
