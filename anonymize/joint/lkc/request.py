"""Computation agreed by the parties of a joint LKC run, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.linked_columns import Blocks
from anonymize.lkc.requirement import Requirement
from anonymize.partition import GeneralizedTable
from anonymize.table import Schema
from anonymize.tds import Outcome


@dataclass(frozen=True)
class Request:
    """Computation agreed by all parties.

    linked:  blocks of sensitive columns, if the table does not link all.
    """

    schema: Schema
    requirement: Requirement
    goal: JointScore
    job_hash: bytes
    linked: Blocks = ()


@dataclass(frozen=True)
class JointOutcome:
    """Result as every party knows it: decisions, T_g with its counts, and reveals."""

    outcome: Outcome
    generalized: GeneralizedTable
    ledger: RevealLedger
