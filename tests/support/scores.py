"""The scores that the thesis publishes, by goal: most tests are about its algorithms."""

from __future__ import annotations

from collections.abc import Mapping

from anonymize.joint.lkc.scores.rows import SCORES
from anonymize.joint.lkc.scores.score import JointScore

PUBLISHED: Mapping[str, JointScore] = {"classification": SCORES["infogain"], "general": SCORES["groups"]}
"""[T] Eq. 3.2 and Eq. 3.4."""

PUBLISHED_NAMES: Mapping[str, str] = {"classification": "infogain", "general": "groups"}
"""As a job says them."""
