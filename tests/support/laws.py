"""Laws of what circuits draw, exactly."""

from __future__ import annotations

from fractions import Fraction

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
