"""Requirements of a job with `method: kd`, and requests that it refuses."""

from __future__ import annotations

from anonymize.kd.single import check_labels
from jobs.file.fields import DEFAULT_LEVEL, PERSON
from jobs.file.job import Job
from jobs.lkc.entries import entries_of
from jobs.lkc.settings import KD, MEDIAN, TOP_DOWN
from jobs.task import Task

_INSTEAD = f"say `method: {TOP_DOWN}`"
_IS = f"`method: {KD}`"


def check(job: Job) -> None:
    """Refuse what kd does not take, with the reason. Raises ValueError."""
    for of in (_check_mode, _check_requirement, _check_keys, _check_columns):
        of(job)


def _check_mode(job: Job) -> None:
    if job.partition == "vertical":
        raise ValueError(
            f"{_IS} is not for vertical jobs: every front would tell all parties in which of two finer groups each "
            f"person is, and so cut by cut what only the owner of a column knows; {_INSTEAD}"
        )
    if job.partition == "horizontal" and job.disclosure != DEFAULT_LEVEL:
        raise ValueError(
            f"{_IS} needs `disclosure: {DEFAULT_LEVEL}`, which already opens nothing that does not follow from the "
            f"table; a leader would learn counts of groups that are not made. Say `disclosure: {DEFAULT_LEVEL}`, or "
            f"`method: {TOP_DOWN}`"
        )
    if job.lkc.split == MEDIAN and job.partition != "single":
        raise ValueError(
            "`split: median` is for one holder's table: where a cut was tried and refused would be known beyond the "
            "release; say `split: public`"
        )


def _check_requirement(job: Job) -> None:
    entries = entries_of(job)
    if len(entries) != 1:
        raise ValueError(
            f"{_IS} takes one requirement, of all quasi-identifiers: its groups are boxes of all of them, so that "
            f"another requirement would be met by the same groups or by none; keep one, or {_INSTEAD}"
        )
    (entry,) = entries
    if not entry.of_all or entry.known < len(entry.columns):
        raise ValueError(
            f"{entry.where}: {_IS} needs `L: all`, and no `columns`: an attacker's candidates are whole groups "
            f"whatever columns they know, so a smaller L would not lead to another table; write `L: all`, or "
            f"{_INSTEAD}"
        )
    if entry.colluders:
        raise ValueError(
            f"{entry.where}.colluders: {_IS} counts all parties' records together, not what remains of each; "
            f"leave it out, or {_INSTEAD}"
        )
    if job.lkc.unit == PERSON:
        raise ValueError(f"model.lkc.unit: {_IS} counts records only; say `unit: record`, or {_INSTEAD}")


def check_goal(job: Job) -> None:
    """Refuse goals that kd has no use for, whatever else they need. Raises ValueError."""
    if job.goal != "general":
        raise ValueError(
            f"{_IS} is for `goal: general`: where it cuts follows from its table alone, and orders of cuts that look "
            "at what the table tells of classes or clusters were measured to predict these worse than top-down of "
            f"that goal does; say `goal: general`, or {_INSTEAD}"
        )


def _check_keys(job: Job) -> None:
    for key, why in _NOT_TAKEN.items():
        if getattr(job.lkc, key) is not None:
            raise ValueError(f"`{key}` is not for {_IS}: {why}; leave it out, or {_INSTEAD}")


_NOT_TAKEN = {
    "score": "it compares no specializations of the whole table; each group takes its first cut that is valid",
    "contexts": "they belong to a score, and it has none",
    "withhold": "no group blocks another's cuts, so no rows need to be left out",
}
"""By key of a job why kd has no use for it."""


def _check_columns(job: Job) -> None:
    for name, column in job.columns.items():
        for key in ("suppress", "refine"):
            if getattr(column, key) is not None:
                raise ValueError(
                    f"columns.{name}.{key}: {_IS} cuts between neighbouring values, and takes none out of a group of "
                    f"them; {_COLUMN[key]}, or {_INSTEAD}"
                )


_COLUMN = {"suppress": "say `taxonomy`", "refine": "leave it out"}


def check_opened(task: Task) -> None:
    """Refuse labels that hold what is printed between siblings. Raises SchemaError."""
    check_labels(task.qid)


def level(job: Job) -> str:
    """A row of its own beside top-down of the same disclosure."""
    return KD if job.disclosure is None else f"{job.disclosure}/{KD}"
