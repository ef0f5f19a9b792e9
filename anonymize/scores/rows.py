"""The scores of one holder's table by name (:mod:`anonymize.scores.names`); joint runs have their own objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from anonymize.scores.names import WITH_CONTEXTS, By
from anonymize.scores.score import Score

SCORES: Mapping[str, tuple[str, str]] = {
    "added": ("anonymize.scores.added", "Added"),
    "infogain": ("anonymize.scores.infogain", "InfoGain"),
    "tdr": ("anonymize.scores.tdr", "Tdr"),
    "groups": ("anonymize.scores.groups", "Groups"),
    "records": ("anonymize.scores.records", "Records"),
}
"""By the name that a job says the module and the class of a score: it is imported for a job that asks for it."""


def score_of(name: str, contexts: By | None) -> Score:
    """Return the score of a name; ``contexts``: what they tell apart, None for a score without any."""
    module, kind = SCORES[name]
    score: Score = getattr(import_module(module), kind)()
    return replace(score, contexts=contexts) if contexts is not None and name in WITH_CONTEXTS else score  # type: ignore[type-var]
