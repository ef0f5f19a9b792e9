"""Scores: an object for each name of :mod:`anonymize.scores.names`."""

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
"""Scores by their name in a job."""


def score_of(name: str, contexts: By | None) -> JointScore:
    """Return the score with a name; ``contexts``: kind of contexts, None for a score without contexts."""
    return made(type(SCORES[name]), name, contexts)
