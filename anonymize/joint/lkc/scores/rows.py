"""The scores: an object for each name of :mod:`anonymize.scores.names`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.joint.lkc.scores.groups import JointGroups, JointRecords
from anonymize.joint.lkc.scores.infogain import JointInfoGain
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.joint.lkc.scores.tdr import JointTdr
from anonymize.scores.names import By

SCORES: Mapping[str, JointScore] = {
    "added": JointAdded(),
    "infogain": JointInfoGain(),
    "tdr": JointTdr(),
    "groups": JointGroups(),
    "records": JointRecords(),
}
"""By the name that a job says."""


def score_of(name: str, contexts: By | None) -> JointScore:
    """The score of a name; ``contexts``: what they tell apart, None for a score without any."""
    score = SCORES[name]
    return (
        score if contexts is None or not isinstance(score, JointAdded) else replace(score, contexts=contexts)
    )
