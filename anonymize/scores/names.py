"""The names of scores, and what a job file may say with each. No algorithm is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

By: TypeAlias = Literal["cells", "partitions"]
"""The contexts that a score tells apart (:mod:`anonymize.contexts`)."""

_OF_CLASSES = ("added", "infogain", "tdr")

OF_GOAL: Mapping[str, tuple[str, ...]] = {
    "classification": _OF_CLASSES,
    "general": ("groups", "records"),
    "clusters": _OF_CLASSES,
}
"""By goal the names of its scores; the first one is the default."""

SCORES = tuple(dict.fromkeys(name for names in OF_GOAL.values() for name in names))
"""All names. :data:`anonymize.joint.lkc.scores.rows.SCORES` has an object for each."""

WITH_CONTEXTS = ("added",)
"""The scores that count by contexts, so that a job says what these tell apart."""

STRICT = ("infogain", "groups", "records")
"""The scores that tell nothing of candidates before they are taken."""


def needs_class(goal: str) -> bool:
    """Return whether a job with this goal must have a column whose values are told apart."""
    return OF_GOAL[goal] == _OF_CLASSES
