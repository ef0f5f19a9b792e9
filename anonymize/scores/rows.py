"""Which scores there are: one row for each, which of them are for which goal, and what a job must know of them.

Whoever runs a joint job takes the same scores with their circuits from :mod:`anonymize.joint.lkc.scores.rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anonymize.contexts import By
from anonymize.scores.added import Added
from anonymize.scores.groups import Groups
from anonymize.scores.infogain import InfoGain
from anonymize.scores.records import Records
from anonymize.scores.score import Score
from anonymize.scores.tdr import Tdr

SCORES: Mapping[str, Score] = {
    "added": Added(),
    "infogain": InfoGain(),
    "tdr": Tdr(),
    "groups": Groups(),
    "records": Records(),
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
    """Whether a joint run with this score can tell nothing of candidates before they are taken."""
    return not SCORES[name].wants_sums


def has_contexts(name: str) -> bool:
    """Whether a score counts by contexts, so that a job says what these tell apart."""
    return isinstance(SCORES[name], Added)


def score_of(name: str, contexts: By | None) -> Score:
    """The score of a name; ``contexts``: what they tell apart, None for a score without any."""
    score = SCORES[name]
    return score if contexts is None or not isinstance(score, Added) else replace(score, contexts=contexts)
