"""Forecast of the cost of a joint job's tests, from the job alone, for the person who approves the job."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from anonymize.criteria.criterion import Criterion
from anonymize.criteria.size import Size
from anonymize.lkc.requirement import criteria_of
from jobs.lkc.entries import entries_of
from jobs.lkc.requirement import requirement
from jobs.lkc.settings import KD
from jobs.task import Task

_GATES_OF_A_CASE = 25
"""AND gates of a case of a criterion: 8 to 75 by rule and number of records."""


def order_of_gates(criteria: Sequence[Criterion]) -> int | None:
    """Return the power of 10 nearest to the AND gates of the tests of a group; None if only the size is tested."""
    cases = sum(len(criterion.cases) for criterion in criteria if not isinstance(criterion, Size))
    return round(log10(_GATES_OF_A_CASE * cases)) if cases else None


def of_tests(task: Task) -> list[str]:
    """Return a sentence for vertical jobs, and for joint requirements on several sensitive values together."""
    is_vertical = task.job.partition == "vertical"
    order = order_of_gates(criteria_of(requirement(task).entries(task.schema)))
    if order is None or not (is_vertical or any(entry.looks_together for entry in entries_of(task.job))):
        return []
    where = "side of a cut" if task.job.lkc.method == KD else "group and child"
    values = (
        ", and 4 bytes for each record below a candidate of another party and each value, or combination of values, "
        "of a holder's sensitive columns"
    )
    return [
        f"tests take about 10^{order} AND gates of 32 bytes for each {where}{values if is_vertical else ''}"
    ]
