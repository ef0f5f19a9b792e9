"""The scores: an object for each name of :mod:`anonymize.scores.names`."""

from __future__ import annotations

from collections.abc import Mapping

from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.joint.lkc.scores.groups import JointGroups, JointRecords
from anonymize.joint.lkc.scores.infogain import JointInfoGain
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.joint.lkc.scores.tdr import JointTdr
from anonymize.scores.names import By
from anonymize.scores.score import made

SCORES: Mapping[str, JointScore] = {
    "added": JointAdded(),
    "infogain": JointInfoGain(),
    "tdr": JointTdr(),
    "groups": JointGroups(),
    "records": JointRecords(),
}
"""By the name that a job says."""


def score_of(name: str, contexts: By | None) -> JointScore:
    """Return the score of a name; ``contexts``: what they tell apart, None for a score without any."""
    return made(type(SCORES[name]), name, contexts)
