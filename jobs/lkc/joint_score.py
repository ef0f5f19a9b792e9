"""Score of a joint LKC job, with its circuits."""

from __future__ import annotations

from anonymize.joint.lkc.scores.rows import score_of
from anonymize.joint.lkc.scores.score import JointScore
from jobs.file.job import Job


def joint_score(job: Job) -> JointScore:
    """Return the target of the choice of specializations, with its reveals and the parties' computation."""
    assert job.lkc.score is not None
    return score_of(job.lkc.score, job.lkc.contexts)
