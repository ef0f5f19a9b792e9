"""Result of a DP run in canonical bytes, for comparison and keeping by parties, and collection by the coordinator.

A JSON header has the specializations in order, the charges, δ and the reveals. The noisy counts follow. Everything
is released or public.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from anonymize.dp.accounting import Accountant
from anonymize.dp.diffgen import DpOutcome
from anonymize.dp.noisy_table import NoisyTable, cut_domain
from anonymize.errors import PrivacyError
from anonymize.joint.dp.run import JointDpOutcome
from anonymize.table import Ints
from anonymize.tds import Outcome
from jobs.dp.repetition import Repeatable, told_reveals
from jobs.dp.replay import replayed_run
from jobs.errors import PartyError
from jobs.json_text import read_json
from jobs.release.steps import replayed, step_fields
from jobs.task import Task

_HEADER_BYTES = 8


@dataclass(frozen=True)
class DpResult(Repeatable):
    """Release of a DP run, the same for everybody.

    encoded:  the canonical bytes; empty for a single holder.
    spent:    charges with their purposes; the sum is ε.
    delta:    δ in words, rounded up; "0" for a pure guarantee.
    noise:    joint: source of the counts' noise.
    """

    encoded: bytes = field(repr=False)
    outcome: Outcome
    table: NoisyTable
    spent: Accountant
    delta: str = "0"
    noise: str = "exact"


def result_single(released: DpOutcome) -> DpResult:
    """Return the release of a single holder, with exact noise."""
    return DpResult(b"", released.outcome, released.table, released.accountant)


def joint_result(joint: JointDpOutcome, task: Task) -> DpResult:
    """Return the release of a joint run, through its bytes: the kept bytes are the bytes for all readers."""
    return decode_result(encode_result(joint), task, "this party")


def result_of(joint: JointDpOutcome) -> DpResult:
    """Return the release of a joint run with its canonical bytes."""
    released, reveals = joint.released, tuple(told_reveals(joint.ledger))
    delta, encoded = delta_text(joint.delta), encode_result(joint)
    table, spent = released.table, released.accountant
    return DpResult(encoded, joint.outcome, table, spent, delta, joint.noise, reveals=reveals)


def encode_result(joint: JointDpOutcome) -> bytes:
    """Encode a joint run's release: the same bytes at every party."""
    charges = joint.released.accountant.charges
    header = {
        "steps": [step_fields(step) for step in joint.outcome.steps],
        "charges": [[c.purpose, str(c.epsilon), c.iteration] for c in charges],
        "delta": delta_text(joint.delta),
        "noise": joint.noise,
        "reveals": told_reveals(joint.ledger),
    }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    body = np.ascontiguousarray(joint.released.table.counts, dtype="<i8").tobytes()
    return len(text).to_bytes(_HEADER_BYTES, "little") + text + body


def decode_result(encoded: bytes, task: Task, sender: str) -> DpResult:
    """Decode and check: taken from the bytes are specializations and counts; all else must be what follows.

    Raises PartyError (peer-protocol) for anything malformed, or written otherwise than :func:`encode_result` does.
    """
    try:
        size = int.from_bytes(encoded[:_HEADER_BYTES], "little")
        header = read_json(encoded[_HEADER_BYTES : _HEADER_BYTES + size])
        counts = np.frombuffer(encoded[_HEADER_BYTES + size :], dtype="<i8").astype(np.int64)
        return _checked(encoded, header, counts, task)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, PrivacyError) as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error


def _checked(encoded: bytes, header: dict[str, Any], counts: Ints, task: Task) -> DpResult:
    steps, cut = replayed(task.schema, header["steps"])
    domain = cut_domain(task.schema, cut)
    if len(counts) != domain.size:
        raise ValueError("not the counts of the specializations")
    result = result_of(replayed_run(task, steps, domain.table(counts)))
    if result.encoded != encoded:
        raise ValueError("differs from the reveals of the run")
    return result


def delta_text(delta: Fraction) -> str:
    """Return δ with two significant digits, rounded up: never less than the true value."""
    if delta == 0:
        return "0"
    exponent = math.floor(math.log10(delta.numerator) - math.log10(delta.denominator)) - 1
    with localcontext() as context:
        context.prec = 60
        context.rounding = ROUND_CEILING
        scaled = -(-delta // Fraction(10) ** exponent)
        return str(Decimal(int(scaled)).scaleb(exponent).normalize())
