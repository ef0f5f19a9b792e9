"""|T[v]| in joint runs: public, as Σ |T[qid_v]|² is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from anonymize.joint.disclosure import BY_SCORE, Allowed
from anonymize.joint.lkc.scores.groups import JointGroups
from anonymize.scores.records import Records


@dataclass(frozen=True)
class JointRecords(JointGroups, Records):
    """The score with its circuits."""

    reveals: ClassVar[Mapping[str, Sequence[Allowed]]] = BY_SCORE["records"]
