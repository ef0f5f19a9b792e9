"""Top-down tables as their readers see them: labels of nodes, and one cut of every column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anonymize.lkc.metrics import measure_partitions
from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.taxonomy import Taxonomy
from anonymize.verification.loss import are_told_apart, left_by, loss_of, widths_of
from jobs.errors import PartyError
from jobs.file.schema import qid_of
from jobs.lkc.forms.form import form_of
from jobs.lkc.report import require_metrics
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
    names = ", ".join(alike)
    return {
        "loss": f"what generalizing {names} takes (loss), and `specializations` of it: different values print alike"
    }


def compared(task: Task) -> tuple[str, ...]:
    """What of a report :func:`check_told` compares."""
    if not form_of(task.job).quasi.generalized(task.job):
        return ("metrics",)
    return "metrics", "cut", "specializations"


def _generalized(task: Task) -> list[QidColumn]:
    names = form_of(task.job).quasi.generalized(task.job)
    return [column for column in qid_of(task.job, task.taxonomies) if column.name in names]


def check_told(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> None:
    """Every published value must be one that the report says its column has, and what it measures in groups what is
    there, and in generalization loss what the cut makes of it; and specializations must lead to this cut. Raises
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
    labels = {name: list(map(str, values[name])) for name in by_name if name in values}
    _check_loss(task, release, labels, report, path)
    _check_steps(task, labels, report, path)


def _check_steps(task: Task, cut: Mapping[str, list[str]], report: Mapping[str, Any], path: Path) -> None:
    """Specializations must lead to the cut, in columns whose values are told apart. Raises PartyError."""
    columns = _generalized(task)
    steps: dict[str, list[tuple[str, list[str]]]] = {column.name: [] for column in columns}
    try:
        for step in report["specializations"] if columns else ():
            steps[step["attribute"]].append((step["value"], list(step["children"])))
        for column in columns:
            own, labels = steps[column.name], frozenset(cut[column.name])
            if are_told_apart(column) and (left_by(column, own) != labels if own else len(labels) != 1):
                raise ValueError("another cut")
    except (LookupError, TypeError, ValueError) as error:
        raise PartyError(
            "verification-failed", f"{path}: `specializations` do not lead to the values of `cut`"
        ) from error


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
        lost[column.name] = loss_of(column, widths, release)
    if columns:
        require_metrics({"generalization_loss": lost}, report, path)
