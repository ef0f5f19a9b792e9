"""The result of a run in canonical bytes: what parties compare and keep, and the coordinator collects.

The pairs chosen and the noisy counts, with the charges, δ and what was revealed. Everything in it is released or
public, and the table follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anonymize.dp.accounting import Accountant
from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp.noise import DELTA
from anonymize.synthetic.loop import SyntheticOutcome
from jobs.dp.again import Repeatable, told_reveals
from jobs.dp.report import account_fields
from jobs.dp.result import read_delta
from jobs.encoded import MALFORMED, decoded_arrays, encoded_arrays
from jobs.errors import PartyError
from jobs.synthetic.replay import counts_of, edges_of, replayed_run
from jobs.task import Task


@dataclass(frozen=True)
class SyntheticResult(Repeatable):
    """What a run opened, as everybody gets it.

    encoded:  the canonical bytes; empty for a single holder.
    delta:    δ in words, rounded up; "0" for a pure guarantee.
    """

    encoded: bytes = field(repr=False)
    outcome: SyntheticOutcome = field(repr=False)
    delta: str = "0"

    @property
    def spent(self) -> Accountant:
        return self.outcome.accountant


def encode_result(outcome: SyntheticOutcome, delta: str, reveals: RevealLedger) -> bytes:
    """Encode what a joint run opened: the same bytes at every party."""
    edges = np.array(edges_of(outcome), dtype=np.int64)
    return encoded_arrays(_fields(outcome, delta, reveals), [edges, counts_of(outcome)])


def _fields(outcome: SyntheticOutcome, delta: str, reveals: RevealLedger) -> Mapping[str, Any]:
    return {"account": account_fields(outcome.accountant), "delta": delta, "reveals": told_reveals(reveals)}


def decode_result(encoded: bytes, task: Task, sender: str) -> SyntheticResult:
    """Decode and check: what follows from the job, the pairs and the counts must be what follows.

    Taken from the bytes are these two and δ, which has a bound. Raises PartyError (peer-protocol) for anything
    malformed, or written otherwise than :func:`encode_result` does.
    """
    try:
        header, (edges, counts) = decoded_arrays(encoded, 2)
        outcome, reveals = replayed_run(task, edges.tolist(), counts)
        if read_delta(header["delta"]) > DELTA:
            raise ValueError("δ is not within its bound")
        if encode_result(outcome, header["delta"], reveals) != encoded:
            raise ValueError("not what this run must have told")
        return SyntheticResult(encoded, outcome, header["delta"], reveals=tuple(told_reveals(reveals)))
    except (*MALFORMED, PrivacyError) as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error
