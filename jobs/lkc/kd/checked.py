"""kd tables as their readers see them: labels of boxes, and what is measured in the groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
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
from jobs.lkc.report import require_metrics
from jobs.lkc.requirement import requirement
from jobs.lkc.settings import MEDIAN, PUBLIC
from jobs.task import Task


def known_labels(column: QidColumn) -> Callable[[str], bool]:
    """What tells whether a label is a box of a column."""
    return box_test(column.values)


def check_groups(task: Task, release: Release) -> dict[str, str]:
    """The groups of a table are boxes that cuts made, which have nothing in common, and with `split: median` leave
    nothing out. Return what of this, and of the report, cannot be checked. Raises PartyError.
    """
    if not form_of(task.job).quasi.generalized(task.job):
        return {}
    qid = qid_of(task.job, task.taxonomies)
    table, is_median = _boxes(qid, release), task.job.lkc.split == MEDIAN
    if table is None:
        names = ", ".join(column.name for column in qid if _is_ambiguous(column, release))
        return {
            "boxes": "that groups are boxes with nothing in common, what generalization takes (loss) and `cuts`: "
            f"labels of {names} are those of several boxes, and the table does not tell of which"
        }
    n_leaves = np.array([column.n_leaves for column in qid], dtype=np.int64)
    if not are_cut_from(table.boxes.first, table.boxes.last, n_leaves, whole=is_median):
        left_out = ", or leave something out" if is_median else ""
        raise PartyError(
            "verification-failed",
            f"the groups of the table are no boxes that cuts make: they overlap{left_out}",
        )
    if is_median:
        return {
            "cuts": "how often each column was cut (`cuts`): where `split: median` cuts follows from raw records"
        }
    return {}


def compared(task: Task) -> tuple[str, ...]:
    """What of a report :func:`check_told` compares."""
    return ("metrics", "cuts") if form_of(task.job).quasi.generalized(task.job) else ("metrics",)


def _is_ambiguous(column: QidColumn, release: Release) -> bool:
    return any(run_of(column.values)(label) is None for label in release.columns[column.name].labels)


def check_told(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> None:
    """What the report measures in the table is what is there, and where groups were cut and what that takes, too.

    Where a label is that of several boxes, loss and cuts are not compared (:func:`check_groups` says so). Of the cuts
    of `split: median` only their number is. Raises PartyError.
    """
    lost = form_of(task.job).quasi.lost(lambda: _lost(task, release, report, path))
    require_metrics({**metrics_of(task, release), **lost}, report, path)


def _lost(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The loss by generalizing, once cuts are found to be those of the table. Raises PartyError."""
    qid = qid_of(task.job, task.taxonomies)
    table = _boxes(qid, release)
    if table is None:
        return {}
    schema = Schema(qid, None, ("",))
    if task.job.lkc.split == PUBLIC:
        _check_cuts(schema, table, _least(task, release), report, path)
    else:
        _check_number(table, report, path)
    return asdict(measure_loss(schema, table))


def _boxes(qid: Sequence[QidColumn], release: Release) -> BoxedTable | None:
    """The groups of a table, from its labels alone; None where these do not tell boxes."""
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


def _check_number(table: BoxedTable, report: Mapping[str, Any], path: Path) -> None:
    """Each cut has records on both sides, so it makes one group more."""
    cuts = report.get("cuts")
    by_depth = list(cuts.values()) if isinstance(cuts, Mapping) else []
    if not all(isinstance(own, list) and all(isinstance(n, int) and n >= 0 for n in own) for own in by_depth):
        raise PartyError("verification-failed", f"{path}: `cuts` has no numbers of groups")
    if sum(map(sum, by_depth)) != table.n_groups - 1:
        raise PartyError(
            "verification-failed", f"{path}: `cuts` are not as many as make the groups of the table"
        )


def _least(task: Task, release: Release) -> int:
    """Return K, where the domains that the job does not list are those of the table."""
    columns = task.job.columns
    found = {
        name: tuple(sorted(release.columns[name].labels))
        for name in task.job.names("class", "sensitive")
        if not columns[name].is_listed
    }
    return least_size(the_entry(requirement(task), task.schema_with(found)).criteria)


def _check_cuts(schema: Schema, table: BoxedTable, least: int, report: Mapping[str, Any], path: Path) -> None:
    try:
        cuts = cuts_of(schema, table, least)
    except ValueError as error:
        raise PartyError(
            "verification-failed", "the groups of the table are boxes that no run makes"
        ) from error
    if report.get("cuts") != cut_fields(schema, cuts)["cuts"]:
        raise PartyError("verification-failed", f"{path}: `cuts` is not what the groups of the table tell")
