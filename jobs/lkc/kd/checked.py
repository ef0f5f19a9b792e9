"""kd tables as their readers see them: labels of boxes, and what is measured in the groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anonymize.kd.verification import box_test
from anonymize.release import Release
from anonymize.table import QidColumn
from jobs.errors import PartyError
from jobs.lkc.kd.report import metrics_of
from jobs.task import Task


def known_labels(column: QidColumn) -> Callable[[str], bool]:
    """What tells whether a label is a box of a column."""
    return box_test(column.values)


def check_told(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> None:
    """What the report measures in the table is what is there; loss is not, which labels alone do not tell.

    Raises PartyError.
    """
    said = report.get("metrics")
    told = said if isinstance(said, Mapping) else {}
    for key, value in json.loads(json.dumps(metrics_of(task, release))).items():
        if told.get(key) != value:
            raise PartyError("verification-failed", f"{path}: `metrics.{key}` is not what the table says")
