"""Laws of what circuits draw, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from crypto.circuits.constants import NoisePlan


def exact_law(plan: NoisePlan, kind: str) -> dict[int, Fraction]:
    """The distribution that the thresholds give, in fractions."""
    law = {0: Fraction(1)}
    for j, threshold in enumerate(plan.digits):
        p = Fraction(threshold, 2**plan.coin_bits)
        law = {k + bit * 2**j: q * (p if bit else 1 - p) for k, q in law.items() for bit in (0, 1)}
    if kind == "geometric":
        return law
    assert plan.zero is not None
    zero = Fraction(plan.zero, 2**plan.coin_bits)
    two_sided = {s * (k + 1): q * (1 - zero) / 2 for k, q in law.items() for s in (1, -1)}
    return {0: zero, **two_sided}


def coins_for(plan: NoisePlan, digits: Sequence[int], zero: int = 0, negative: int = 0) -> list[int]:
    """Random bits that make these digits: a coin of zeros is below its threshold, one of ones is not."""
    coins = [[1 - digit] * plan.coin_bits for digit in digits]
    head = [[negative], [1 - zero] * plan.coin_bits] if plan.zero is not None else []
    return [bit for word in (*head, *coins) for bit in word]


def outcomes(plan: NoisePlan) -> list[tuple[list[int], Fraction]]:
    """Every outcome of the coins of one variable, with its probability."""
    scale = 1 << plan.coin_bits
    found = []
    for digits in product((0, 1), repeat=len(plan.digits)):
        p = Fraction(1)
        for digit, threshold in zip(digits, plan.digits, strict=True):
            p *= Fraction(threshold if digit else scale - threshold, scale)
        if plan.zero is None:
            found.append((coins_for(plan, digits), p))
            continue
        for zero, negative in product((0, 1), repeat=2):
            q = Fraction(plan.zero if zero else scale - plan.zero, 2 * scale)
            found.append((coins_for(plan, digits, zero, negative), p * q))
    assert sum(p for _, p in found) == 1
    return found
