"""Names of scores, and their settings in a job file. No algorithm is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

By: TypeAlias = Literal["cells", "partitions"]
"""Kind of contexts of a score (:mod:`anonymize.contexts`)."""

_OF_CLASSES = ("added", "infogain", "tdr")

OF_GOAL: Mapping[str, tuple[str, ...]] = {
    "classification": _OF_CLASSES,
    "general": ("groups", "records"),
    "clusters": _OF_CLASSES,
}
"""Names of the scores by goal; the first name is the default."""

SCORES = tuple(dict.fromkeys(name for names in OF_GOAL.values() for name in names))
"""All names; each has an object in :data:`anonymize.joint.lkc.scores.rows.SCORES`."""

WITH_CONTEXTS = ("added",)
"""Scores with contexts, whose kind a job can set."""

OF_GAIN = ("infogain", "tdr")
"""Scores of the information gain of a node by itself, which prefer children that leave small groups behind."""

STRICT = ("infogain", "groups", "records")
"""Scores that open nothing about a candidate before its turn."""


def needs_class(goal: str) -> bool:
    """Return True if a job with the goal needs a class column."""
    return OF_GOAL[goal] == _OF_CLASSES
