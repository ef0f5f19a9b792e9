"""Top-down tables as their readers see them: labels of nodes, and one cut of every column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anonymize.lkc.loss_check import are_told_apart, loss_of, widths_of
from anonymize.lkc.metrics import measure_partitions
from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.taxonomy import Taxonomy
from jobs.errors import PartyError
from jobs.lkc.forms.all import form_of
from jobs.lkc.report import require_metrics
from jobs.schema import qid_of
from jobs.task import Task


def known_labels(column: QidColumn) -> Callable[[str], bool]:
    """What tells whether a label is a node of a taxonomy or the rest of one, or an interval of a grid."""
    values = column.values
    if isinstance(values, Taxonomy):
        return column.rest_labels.union(values.printed).__contains__
    return lambda label: values.interval(label) is not None


def check_groups(task: Task, release: Release) -> dict[str, str]:
    """What of a report cannot be checked, since values of the columns print alike."""
    alike = [column.name for column in _generalized(task) if not are_told_apart(column)]
    if not alike:
        return {}
    return {"loss": f"what generalizing {', '.join(alike)} takes (loss): different values of it print alike"}


def _generalized(task: Task) -> list[QidColumn]:
    names = form_of(task.job).quasi.generalized(task.job)
    return [column for column in qid_of(task.job, task.taxonomies) if column.name in names]


def check_told(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> None:
    """Every published value must be one that the report says its column has, and what it measures in groups what is
    there, and in generalization loss what the cut makes of it; not what was tried and how the run ended. Raises
    PartyError.
    """
    form = form_of(task.job)
    require_metrics(measure_partitions(release, form.groups(task.job)), report, path)
    cut = report.get("cut")
    values = cut if isinstance(cut, Mapping) else {}
    by_name = {column.name: column for column in qid_of(task.job, task.taxonomies)}
    for name in form.quasi.generalized(task.job):
        known = values.get(name)
        if not isinstance(known, list) or not set(release.columns[name].labels) <= set(map(str, known)):
            raise PartyError(
                "verification-failed", f"{path}: `cut` lacks values of column {name} in the table"
            )
        if not all(map(known_labels(by_name[name]), map(str, known))):
            raise PartyError(
                "verification-failed",
                f"{path}: `cut` has values of column {name} that are no nodes of its taxonomy",
            )
    _check_loss(
        task,
        release,
        {name: list(map(str, values[name])) for name in by_name if name in values},
        report,
        path,
    )


def _check_loss(
    task: Task, release: Release, cut: Mapping[str, list[str]], report: Mapping[str, Any], path: Path
) -> None:
    """Compare the loss of columns whose values are told apart. Raises PartyError."""
    metrics = report.get("metrics")
    told = metrics.get("generalization_loss") if isinstance(metrics, Mapping) else None
    lost = dict(told) if isinstance(told, Mapping) else {}
    columns = _generalized(task)
    for column in (column for column in columns if are_told_apart(column)):
        try:
            widths = widths_of(column, cut[column.name])
        except ValueError as error:
            raise PartyError(
                "verification-failed", f"{path}: `cut` of column {column.name} does not have each value once"
            ) from error
        lost[column.name] = loss_of(column, widths, release.columns[column.name])
    if columns:
        require_metrics({"generalization_loss": lost}, report, path)
