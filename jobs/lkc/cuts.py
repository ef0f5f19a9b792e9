"""Top-down tables as their readers see them: labels of nodes, and one cut of every column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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


def check_told(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> None:
    """Every published value must be one that the report says its column has, and what it measures in groups what is
    there; generalization loss is not compared, nor what was tried and how the run ended. Raises PartyError.
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
