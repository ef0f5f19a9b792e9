"""Which scores there are: one row for each, and which of them are for which goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anonymize.contexts import By
from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.joint.lkc.scores.groups import JointGroups
from anonymize.joint.lkc.scores.infogain import JointInfoGain
from anonymize.joint.lkc.scores.records import JointRecords
from anonymize.joint.lkc.scores.score import JointScore, StrictScore
from anonymize.joint.lkc.scores.tdr import JointTdr

SCORES: Mapping[str, JointScore] = {
    "added": JointAdded(),
    "infogain": JointInfoGain(),
    "tdr": JointTdr(),
    "groups": JointGroups(),
    "records": JointRecords(),
}
"""By the name that a job says."""

_OF_CLASSES = ("added", "infogain", "tdr")

OF_GOAL: Mapping[str, tuple[str, ...]] = {
    "classification": _OF_CLASSES,
    "general": ("groups", "records"),
    "clusters": _OF_CLASSES,
}
"""By goal the names of its scores; the first one is the default."""


def needs_class(goal: str) -> bool:
    """Whether a job with this goal must have a column whose values are told apart."""
    return SCORES[OF_GOAL[goal][0]].needs_class


def is_strict(name: str) -> bool:
    """Whether a score tells nothing of candidates before they are taken."""
    return isinstance(SCORES[name], StrictScore) and not SCORES[name].wants_sums


def has_contexts(name: str) -> bool:
    """Whether a score counts by contexts, so that a job says what these tell apart."""
    return isinstance(SCORES[name], JointAdded)


def score_of(name: str, contexts: By | None) -> JointScore:
    """The score of a name; ``contexts``: what they tell apart, None for a score without any."""
    score = SCORES[name]
    return (
        score if contexts is None or not isinstance(score, JointAdded) else replace(score, contexts=contexts)
    )
