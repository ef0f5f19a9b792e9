"""What a job with `method: top-down` asks, beside what every LKC job does."""

from __future__ import annotations

from anonymize.joint.disclosure import BY_SCORE, Allowed
from jobs.job import Job
from jobs.lkc.asked import check_score, check_withhold
from jobs.lkc.settings import KD
from jobs.task import Task

NOT_OF_STEPS = tuple(f"specializations.{name}" for name in ("score", "gain", "naming"))
"""Of `specializations` what is not compared."""


def check(job: Job) -> None:
    """Refuse what the job file alone shows to be wrong. Raises ValueError."""
    if job.split is not None:
        raise ValueError(f"`split` is for `method: {KD}`: a top-down table has one cut of every column")
    check_score(job)
    check_withhold(job)


def level(job: Job) -> str:
    return job.disclosure or ""


def reveals(task: Task) -> tuple[Allowed, ...]:
    """What scores reveal."""
    assert task.job.score is not None
    return BY_SCORE[task.job.score].get(task.mode.name, ())
