"""Reasons that a joint table is no finer, as far as the release and its job show the reasons.

No party is asked, and no count of a hypothetical group is read. So the reasons tell a reader of the release nothing
that the reader could not work out (docs/security.md, "Reasons of a joint table").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from anonymize.criteria.size import Size
from anonymize.cut import Cut
from anonymize.lkc.requirement import Entry, concerned
from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.taxonomy import Node
from jobs.lkc.requirement import requirement
from jobs.task import Task

REQUIREMENT = "requirement"
"""A step breaks one of several thresholds."""
SMALL = "small"
"""A step that parts the records breaks K, because the value has fewer than 2K records."""
NO_STEP = "no step"
"""The parties open the steps that break the requirement, and no such step is at the value."""
HIDDEN = "hidden"
"""The parties open no step that breaks the requirement."""


def stopped_jointly(
    task: Task, cut: Cut, release: Release, discarded: Sequence[Mapping[str, Any]] | None
) -> dict[str, list[dict[str, Any]]]:
    """Return the report's fields, per column: why the values of a joint table were not specialized further.

    discarded:  the discarded steps, as in the report; None if the mode opens none.
    """
    schema = task.schema
    entries = requirement(task).entries(schema)
    found = {}
    for number, column in enumerate(schema.qid):
        refused = {_name(column, step) for step in discarded or () if step["attribute"] == column.name}
        records, own = _records(release, column.name), concerned(entries, number)
        grouped: dict[tuple[str, str | None], list[str]] = {}
        for node in cut.nodes[number]:
            is_refused = not refused.isdisjoint(_steps_at(column, node))
            reason = _reason(column, node, records[column.label(node)], own, is_refused=is_refused)
            if reason == (NO_STEP, None) and discarded is None:
                reason = HIDDEN, None
            grouped.setdefault(reason, []).append(column.label(node))
        found[column.name] = [
            {"reason": reason, **({} if sensitive is None else {"sensitive": sensitive}), "values": values}
            for (reason, sensitive), values in grouped.items()
        ]
    return found


def _records(release: Release, name: str) -> Mapping[str, int]:
    """Count the published records of each label. Nodes that print alike count together, as for every reader."""
    column, found = release.columns[name], Counter[str]()
    counts = np.bincount(column.codes, weights=release.counts, minlength=len(column.labels))
    for label, n in zip(column.labels, counts.tolist(), strict=True):
        found[label] += int(n)
    return found


def _steps_at(column: QidColumn, node: Node) -> Iterator[str]:
    """Yield the names of the steps of a value: the value, and each child that may leave alone."""
    yield column.label(node)
    yield from map(column.label, column.children(node) if column.by_child else ())


def _name(column: QidColumn, step: Mapping[str, Any]) -> str:
    """Return the name of a step of a report: the child that leaves alone, or the value that all children replace."""
    leaves_alone = column.by_child and not column.rest_labels.isdisjoint(step["children"])
    return str(step["children"][0] if leaves_alone else step["value"])


def _reason(
    column: QidColumn, node: Node, n_records: int, entries: Sequence[Entry], *, is_refused: bool
) -> tuple[str, str | None]:
    """Return the reason, and the sensitive column of the threshold.

    n_records:  published records of the value, and of values that print alike.
    """
    if node.n_leaves == 1:
        return "leaf", None
    if n_records == 0:
        return "empty", None
    criteria = [criterion for entry in entries for criterion in entry.criteria]
    least = max((criterion.least for criterion in criteria if isinstance(criterion, Size)), default=1)
    if n_records < 2 * least:
        # A refused step parts a group, since the groups of the table are allowed: so two children have records.
        return ("K" if is_refused else SMALL), None
    if not is_refused:
        return NO_STEP, None
    thresholds = {
        (criterion.name, criterion.column)
        for criterion in criteria
        if not (isinstance(criterion, Size) and criterion.least == 1)
    }
    is_known = len(thresholds) == 1 and not any(entry.relative for entry in entries)
    return next(iter(thresholds)) if is_known else (REQUIREMENT, None)


def whole_jointly(task: Task, report: Mapping[str, Any]) -> list[str]:
    """Say for the columns of a joint table that stayed whole as much of the reason as the report has."""
    if not task.job.roster:
        return []
    roots = {column.name: column.label(column.root) for column in task.schema.qid if column.n_leaves > 1}
    whole: dict[str, list[str]] = {}
    for name, found in report.get("stopped", {}).items():
        if [value for each in found for value in each["values"]] == [roots.get(name)]:
            whole.setdefault(_why(task, found[0]), []).append(name)
    return [f"{', '.join(names)}: no finer{why}" for why, names in whole.items()]


def _why(task: Task, stopped: Mapping[str, Any]) -> str:
    reason = stopped["reason"]
    if reason == NO_STEP:
        classes = task.job.names("class")
        told = f"no step that K allows tells more of {classes[0]}" if classes else "no step was possible"
        return f", because {told}"
    if reason in _WHY:
        return _WHY[reason]
    threshold = f"{reason} of {stopped['sensitive']}" if "sensitive" in stopped else reason
    return f", because a step breaks {threshold}; the parties do not open the group"


_WHY: Mapping[str, str] = {
    HIDDEN: "; the parties open no reason, which would be finer than the table",
    REQUIREMENT: ", because a step breaks the requirement; the parties open neither the threshold nor the group",
    SMALL: ", because any step that parts the records leaves fewer than K of them in a finer value",
    "empty": ", because no record is left",
}
