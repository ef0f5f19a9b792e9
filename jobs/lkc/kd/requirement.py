"""Requirements of a job with `method: kd`, and requests refused by the method."""

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
    """Refuse settings unsuitable for kd, with the reason. Raises ValueError."""
    for of in (_check_mode, _check_requirement, _check_keys, _check_columns):
        of(job)


def _check_mode(job: Job) -> None:
    if job.partition == "vertical":
        raise ValueError(
            f"{_IS} is not for vertical jobs: after every cut all parties would know each person's finer group, "
            f"and so the person's values in a column of a different party; {_INSTEAD}"
        )
    if job.partition == "horizontal" and job.disclosure != DEFAULT_LEVEL:
        raise ValueError(
            f"{_IS} needs `disclosure: {DEFAULT_LEVEL}`, which opens nothing beyond the table; a leader would "
            f"learn counts of hypothetical groups. Say `disclosure: {DEFAULT_LEVEL}`, or `method: {TOP_DOWN}`"
        )
    if job.lkc.split == MEDIAN and job.partition != "single":
        raise ValueError(
            "`split: median` is for the table of a single holder: in a joint job the parties would learn where a "
            "cut was tried and refused, beyond the release; say `split: public`"
        )


def _check_requirement(job: Job) -> None:
    entries = entries_of(job)
    if len(entries) != 1:
        raise ValueError(
            f"{_IS} takes a single requirement, of all quasi-identifiers: groups are boxes of all "
            "quasi-identifiers, so a second requirement would not lead to different groups; keep one requirement, "
            f"or {_INSTEAD}"
        )
    (entry,) = entries
    if not entry.of_all or entry.known < len(entry.columns):
        raise ValueError(
            f"{entry.where}: {_IS} needs `L: all`, and no `columns`: an attacker's candidates are whole groups for "
            f"any known columns, so a smaller L would lead to the same table; write `L: all`, or {_INSTEAD}"
        )
    if entry.colluders:
        raise ValueError(
            f"{entry.where}.colluders: {_IS} counts the records of all parties together, not without the records "
            f"of colluders; leave `colluders` out, or {_INSTEAD}"
        )
    if job.lkc.unit == PERSON:
        raise ValueError(f"model.lkc.unit: {_IS} counts records only; say `unit: record`, or {_INSTEAD}")


def check_goal(job: Job) -> None:
    """Refuse goals unsuitable for kd before looking for further inputs. Raises ValueError."""
    if job.goal != "general":
        raise ValueError(
            f"{_IS} is for `goal: general`: the cuts follow from quasi-identifiers alone, whatever the table should "
            f"predict; say `goal: general`, or {_INSTEAD}, which predicts better"
        )


def _check_keys(job: Job) -> None:
    for key, why in _NOT_TAKEN.items():
        if getattr(job.lkc, key) is not None:
            raise ValueError(f"`{key}` is not for {_IS}: {why}; leave the key out, or {_INSTEAD}")


_NOT_TAKEN = {
    "score": "kd does not compare specializations of the whole table; each group takes its first valid cut",
    "contexts": "contexts belong to a score, and kd has no score",
    "withhold": "no group blocks the cuts of a different group, so no rows need to be left out",
}
"""Reasons against keys of a job with kd, by key."""


def _check_columns(job: Job) -> None:
    for name, column in job.columns.items():
        for key in ("suppress", "refine", "weight"):
            if getattr(column, key) is not None:
                raise ValueError(
                    f"columns.{name}.{key}: {_IS} cuts between neighbouring values: it takes no single value out of "
                    f"a group, and compares no scores; {_COLUMN[key]}, or {_INSTEAD}"
                )


_COLUMN = {
    "suppress": "say `taxonomy`",
    "refine": "leave `refine` out",
    "weight": "leave `weight` out",
}


def check_opened(task: Task) -> None:
    """Refuse labels with the separator printed between siblings. Raises SchemaError."""
    check_labels(task.qid)


def level(job: Job) -> str:
    """Return the level: kd has its own row beside top-down of the same disclosure."""
    return KD if job.disclosure is None else f"{job.disclosure}/{KD}"
