"""Reasons that a joint table is no finer, as far as the release and its job show the reasons.

No party is asked, and no count of a hypothetical group is read. So the reasons tell a reader of the release nothing
that the reader could not work out (docs/security.md, "Reasons of a joint table").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from anonymize.criteria.criterion import Demand
from anonymize.criteria.size import Size
from anonymize.cut import Cut
from anonymize.lkc.requirement import Entry, concerned, reliefs
from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.taxonomy import Node
from jobs.lkc.requirement import requirement
from jobs.lkc.stopping import NO_NEED, freeing, named, one_by_one, weakened
from jobs.task import Task

REQUIREMENT = "requirement"
"""A step breaks one of several thresholds."""
ONE_VALUE = "one value"
"""A step parts no records: the value has a single record, as K=1 allows."""
SMALL = "small"
"""A step that parts the records breaks K, because the value has fewer than 2K records."""
NO_STEP = "no step"
"""The parties open the steps that break the requirement, and no such step is at the value."""
HIDDEN = "hidden"
"""The parties open no step that breaks the requirement."""
_NO_BOUND = Size(1)
"""K=1, which every group meets."""


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
    if n_records == 1:
        return ONE_VALUE, None
    criteria = [criterion for entry in entries for criterion in entry.criteria]
    least = max((criterion.least for criterion in criteria if isinstance(criterion, Size)), default=1)
    if n_records < 2 * least:
        # A refused step parts a group, since the groups of the table are allowed: so two children have records.
        return ("K" if is_refused else SMALL), None
    if not is_refused:
        return NO_STEP, None
    thresholds = {(criterion.name, criterion.column) for criterion in criteria if criterion != _NO_BOUND}
    is_known = len(thresholds) == 1 and not any(entry.relative for entry in entries)
    return next(iter(thresholds)) if is_known else (REQUIREMENT, None)


def reasons_jointly(task: Task, report: Mapping[str, Any]) -> list[str]:
    """Say why the values of a joint table are no finer, as far as the report has the reasons: a line a reason.

    A line names the columns; of a column with several values also the values.
    """
    lines: dict[str, list[str]] = {}
    for column, each in _ends(task, report):
        whole = each["values"] == [column.label(column.root)]
        values = "" if whole else f" ({named(task.job, column.name, each['values'])})"
        lines.setdefault(why(task, column.name, each), []).append(f"{column.name}{values}")
    return [f"{', '.join(names)}: no finer{words}" for words, names in lines.items()]


def advice_jointly(task: Task, report: Mapping[str, Any]) -> list[str]:
    """Say what would free detail: settings of the job that each reason leaves to try."""
    unpredictive: dict[str, None] = {}
    weaker: dict[str, dict[str, None]] = {}
    one_by_one_at: dict[str, None] = {}
    for column, each in _ends(task, report):
        name, reason = column.name, each["reason"]
        if reason in (NO_STEP, HIDDEN):
            unpredictive[name] = None
        weaker.setdefault(name, {}).update(dict.fromkeys(_weaker(task, name, each)))
        if reason not in (SMALL, NO_STEP, ONE_VALUE):
            one_by_one_at[name] = None
    return freeing(
        task.job,
        unpredictive,
        weaker,
        lambda names: one_by_one(task.job, [name for name in names if name in one_by_one_at]),
    )


def why(task: Task, name: str, stopped: Mapping[str, Any]) -> str:
    """Return the reason of the end of some values of a column, as the rest of a sentence: ", because …"."""
    reason = stopped["reason"]
    if reason == NO_STEP:
        return f", because {_no_step(task, name)}"
    if reason in _WHY:
        return _WHY[reason]
    threshold = f"{reason} of {stopped['sensitive']}" if "sensitive" in stopped else reason
    return f", because a step breaks {threshold}; the parties do not open the group"


_WHY: Mapping[str, str] = {
    HIDDEN: "; the parties open no reason, which would be finer than the table",
    REQUIREMENT: ", because a step breaks the requirement; the parties open neither the threshold nor the group",
    SMALL: ", because any step that parts the records leaves fewer than K of them in a finer value",
    ONE_VALUE: ", because a value has a single record, which no step parts",
}


def _no_step(task: Task, name: str) -> str:
    if task.job.goal == "general":
        return "no step was possible"
    target = next(iter(task.job.names("class")), "the clusters")
    demands = {demand.name for demand in _demands(task, name)}
    allowed = (
        " that K allows" if demands == {_NO_BOUND.name} else " that the requirement allows" if demands else ""
    )
    return f"no step{allowed} tells more of {target}"


def _ends(task: Task, report: Mapping[str, Any]) -> Iterator[tuple[QidColumn, Mapping[str, Any]]]:
    """Yield the values of each column of a joint table with a reason that needs a sentence."""
    for column in task.schema.qid:
        for each in report.get("stopped", {}).get(column.name, ()):
            if each["reason"] not in NO_NEED:
                yield column, each


def _demands(task: Task, name: str) -> list[Demand]:
    """Return the demands on the groups that a step of a column changes, without demands that ask for nothing."""
    schema = task.schema
    asked = (demand for entry in _concerned(task, name) for demand in entry.demands if demand != _NO_BOUND)
    return [d for d in dict.fromkeys(asked) if any(d.criteria(schema)) or any(d.relative(schema))]


def _concerned(task: Task, name: str) -> tuple[Entry, ...]:
    number = [column.name for column in task.schema.qid].index(name)
    return concerned(requirement(task).entries(task.schema), number)


def _weaker(task: Task, name: str, stopped: Mapping[str, Any]) -> Iterator[str]:
    """Yield the changes of the requirement that may free some values of a column."""
    reason, demands = stopped["reason"], _demands(task, name)
    by_size = [demand for demand in demands if demand.name == _NO_BOUND.name]
    if reason in (SMALL, NO_STEP):
        yield from reliefs(by_size if reason == SMALL or task.job.goal != "general" else ())
        return
    if reason == ONE_VALUE:
        return
    broken = demands if reason in (REQUIREMENT, HIDDEN) else [d for d in demands if d.name == reason]
    yield from weakened(broken, max(entry.scope.size for entry in _concerned(task, name)))
