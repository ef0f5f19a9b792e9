"""The scores of one holder's table by name (:mod:`anonymize.scores.names`); joint runs have their own objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anonymize.scores.added import Added
from anonymize.scores.groups import Groups
from anonymize.scores.infogain import InfoGain
from anonymize.scores.names import By
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


def score_of(name: str, contexts: By | None) -> Score:
    """Return the score of a name; ``contexts``: what they tell apart, None for a score without any."""
    score = SCORES[name]
    return replace(score, contexts=contexts) if contexts is not None and isinstance(score, Added) else score
