"""The result of a DP run in canonical bytes: what parties compare and keep, and the coordinator collects.

A JSON header with the specializations in order, the account, δ and what was revealed; then the noisy counts.
Everything in it is released or public.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any, get_args

import numpy as np

from anonymize.accounting import PrivacyLedger
from anonymize.diffgen import DpOutcome
from anonymize.errors import PrivacyError
from anonymize.joint.dp import JointDpOutcome, NoiseKind
from anonymize.joint.dp_noise import DELTA
from anonymize.noisy_table import NoisyTable, cut_domain
from anonymize.table import Ints, Schema
from anonymize.tds import Outcome
from party.bundle import Bundle
from party.errors import PartyError
from party.result import replayed, step_fields

_HEADER_BYTES = 8
_DATA_SIZES = frozenset({"common_records"})
"""Reveals whose shape is a number of records, which only the parties know."""
_AMOUNT = re.compile(r"(0|[1-9][0-9]{0,999})(/[1-9][0-9]{0,999})?")
_DELTA = re.compile(r"0|[1-9](\.[0-9])?E-[0-9]{1,4}")
_KEYS = frozenset({"steps", "charges", "delta", "noise", "reveals"})


@dataclass(frozen=True)
class DpResult:
    """The release of a DP run, as everybody gets it.

    encoded:  the canonical bytes; empty for a single holder.
    delta:    δ in words, rounded up; "0" for a pure guarantee.
    noise:    joint: how the counts got their noise.
    reveals:  joint: the reveal ledger, without numbers of records.
    """

    encoded: bytes = field(repr=False)
    outcome: Outcome
    table: NoisyTable
    account: PrivacyLedger
    delta: str = "0"
    noise: str = "exact"
    reveals: tuple[dict[str, Any], ...] = ()


def result_alone(released: DpOutcome) -> DpResult:
    """The release of a single holder, whose noise is exact."""
    return DpResult(b"", released.outcome, released.table, released.ledger)


def joint_result(joint: JointDpOutcome, bundle: Bundle) -> DpResult:
    """The release of a joint run, through its bytes: what is kept is what everybody will read."""
    return decode_dp_result(encode_dp_result(joint), bundle, "this party")


def encode_dp_result(joint: JointDpOutcome) -> bytes:
    """Encode a joint run's release: the same bytes at every party."""
    header = {
        "steps": [step_fields(step) for step in joint.outcome.steps],
        "charges": [[c.purpose, str(c.epsilon), c.iteration] for c in joint.released.ledger.charges],
        "delta": delta_text(joint.delta),
        "noise": joint.noise,
        "reveals": [
            _reveal_fields(r.name, r.shape, r.iteration) for r in joint.ledger.reveals if r.to == "all"
        ],
    }
    return _encoded(header, joint.released.table.counts)


def _reveal_fields(name: str, shape: tuple[int, ...], iteration: int) -> dict[str, Any]:
    known = {} if name in _DATA_SIZES else {"shape": list(shape)}
    return {"name": name, **known, "to": "all", "iteration": iteration}


def _encoded(header: dict[str, Any], counts: Ints) -> bytes:
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    body = np.ascontiguousarray(counts, dtype="<i8").tobytes()
    return len(text).to_bytes(_HEADER_BYTES, "little") + text + body


def decode_dp_result(encoded: bytes, bundle: Bundle, sender: str) -> DpResult:
    """Decode and check: the account against the job's ε, the counts against the cut.

    Raises PartyError (peer-protocol) for anything malformed, or written otherwise than :func:`encode_dp_result`
    does.
    """
    try:
        size = int.from_bytes(encoded[:_HEADER_BYTES], "little")
        header = json.loads(encoded[_HEADER_BYTES : _HEADER_BYTES + size])
        counts = np.frombuffer(encoded[_HEADER_BYTES + size :], dtype="<i8").astype(np.int64)
        if _encoded(header, counts) != encoded:
            raise ValueError("not in canonical form")
        return _checked(encoded, header, counts, bundle, bundle.schema())
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, PrivacyError) as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error


def _checked(
    encoded: bytes, header: dict[str, Any], counts: Ints, bundle: Bundle, schema: Schema
) -> DpResult:
    if set(header) != _KEYS or header["noise"] not in get_args(NoiseKind):
        raise ValueError("other fields than a result has")
    steps, cut = replayed(schema, header["steps"])
    domain = cut_domain(schema, cut)
    if len(counts) != domain.size or not all(step.applied for step in steps):
        raise ValueError("not the counts of its specializations")
    if len(steps) > bundle.dp.specializations or not read_delta(header["delta"]) <= DELTA:
        raise ValueError("not within the job's bounds")
    account = _account(bundle.dp.epsilon, header["charges"])
    outcome = Outcome(schema, cut, steps)
    reveals = tuple(dict(reveal) for reveal in header["reveals"])
    return DpResult(
        encoded, outcome, domain.table(counts), account, header["delta"], header["noise"], reveals
    )


def _account(epsilon: Fraction, charges: Sequence[Sequence[Any]]) -> PrivacyLedger:
    """Charge everything again: overdraft raises."""
    account = PrivacyLedger(epsilon)
    for purpose, amount, iteration in charges:
        account.charge(str(purpose), read_amount(amount), int(iteration))
    if account.rest:
        raise ValueError("the account does not add up to the job's epsilon")
    return account


def read_amount(text: str) -> Fraction:
    """Read an ε as ``str`` of a fraction writes it. Raises ValueError, or TypeError for what is no text.

    Nothing else: to make a fraction of `1e99999999` takes minutes and the memory of its digits.
    """
    if not _AMOUNT.fullmatch(text):
        raise ValueError("no fraction")
    return Fraction(text)


def read_delta(text: str) -> Fraction:
    """Read what :func:`delta_text` wrote of a small δ. Raises as :func:`read_amount`."""
    if not _DELTA.fullmatch(text):
        raise ValueError("no small delta")
    return Fraction(text)


def delta_text(delta: Fraction) -> str:
    """Two significant digits, rounded up: what is published is never less than what is true."""
    if delta == 0:
        return "0"
    exponent = math.floor(math.log10(delta.numerator) - math.log10(delta.denominator)) - 1
    with localcontext() as context:
        context.prec = 60
        context.rounding = ROUND_CEILING
        scaled = -(-delta // Fraction(10) ** exponent)
        return str(Decimal(int(scaled)).scaleb(exponent).normalize())
