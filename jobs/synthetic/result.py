"""Result of a run in canonical bytes, for comparison and keeping by parties, and collection by the coordinator.

The bytes have the chosen pairs and the noisy counts; also charges, δ and reveals, which follow from pairs, counts
and job, so that parties agree on all. Everything is released or public, and the table follows from the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anonymize.dp.accounting import Accountant
from anonymize.errors import PrivacyError
from anonymize.joint.synthetic.run import JointSyntheticOutcome
from anonymize.synthetic.loop import SyntheticOutcome
from jobs.dp.repetition import Repeatable, told_reveals
from jobs.dp.report import account_fields
from jobs.dp.result import delta_text
from jobs.errors import PartyError
from jobs.release.encoded import MALFORMED, decoded_arrays, encoded_arrays
from jobs.synthetic.replay import counts_of, edges_of, replayed_run
from jobs.task import Task


@dataclass(frozen=True)
class SyntheticResult(Repeatable):
    """Opened values of a run, as everybody gets them.

    encoded:  the canonical bytes; empty for a single holder.
    delta:    δ in words, rounded up; "0" for a pure guarantee.
    """

    encoded: bytes = field(repr=False)
    outcome: SyntheticOutcome = field(repr=False)
    delta: str = "0"

    @property
    def spent(self) -> Accountant:
        return self.outcome.accountant


def joint_result(joint: JointSyntheticOutcome) -> SyntheticResult:
    """Return the opened values of a joint run: the same bytes at every party."""
    outcome, delta, reveals = joint.outcome, delta_text(joint.delta), told_reveals(joint.ledger)
    fields = {"account": account_fields(outcome.accountant), "delta": delta, "reveals": reveals}
    edges = np.array(edges_of(outcome), dtype=np.int64)
    encoded = encoded_arrays(fields, [edges, counts_of(outcome)])
    return SyntheticResult(encoded, outcome, delta, reveals=tuple(reveals))


def decode_result(encoded: bytes, task: Task, sender: str) -> SyntheticResult:
    """Decode and check: pairs and counts come from the bytes; everything else must follow from pairs and counts.

    Raises PartyError (peer-protocol) for a malformed result, or a result not written as by :func:`joint_result`.
    """
    try:
        _, (edges, counts) = decoded_arrays(encoded, 2)
        result = joint_result(replayed_run(task, edges.tolist(), counts))
        if result.encoded != encoded:
            raise ValueError("not what this run must have told")
        return result
    except (*MALFORMED, PrivacyError) as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error
