"""|T[v]| in joint runs: public, as Σ |T[qid_v]|² is."""

from __future__ import annotations

from dataclasses import dataclass

from anonymize.joint.lkc.scores.groups import JointGroups
from anonymize.scores.records import Records


@dataclass(frozen=True)
class JointRecords(JointGroups, Records):
    """The score with its circuits."""
