"""Which score a job has: one row for each."""

from __future__ import annotations

from collections.abc import Mapping

from anonymize.joint.lkc.scores.groups import JointGroups
from anonymize.joint.lkc.scores.infogain import JointInfoGain
from anonymize.joint.lkc.scores.score import JointScore

GOALS: Mapping[str, JointScore] = {
    "classification": JointInfoGain(),
    "general": JointGroups(),
    "clusters": JointInfoGain(),
}
"""By the goal that a job names."""
