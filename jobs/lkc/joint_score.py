"""The score of a joint LKC job, with its circuits."""

from __future__ import annotations

from anonymize.joint.lkc.scores.rows import score_of
from anonymize.joint.lkc.scores.score import JointScore
from jobs.file.job import Job


def joint_score(job: Job) -> JointScore:
    """Return what the choice of specializations optimizes, with what it reveals and how parties compute it."""
    assert job.lkc.score is not None
    return score_of(job.lkc.score, job.lkc.contexts)
