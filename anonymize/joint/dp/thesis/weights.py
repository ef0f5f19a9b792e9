"""Integer weights of the exponential mechanism, for the protocols as published ([T] 7.4.2, 7.5.2).

A score u gets a weight near 2^PRECISION · e^(r·u); a candidate is chosen with probability weight / sum of weights.
The thesis rounds or truncates e^x and leaves the cost open. Here the weights of the whole public range of scores are
computed and checked in exact integers. One step of the score changes a weight by a factor ρ with ρ² ≤ e^ε′. So a
choice *by these weights* is ε′-DP for any error. Weights that do not fit are refused, with the numbers, before
anything is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from anonymize.dp.noise import Coins, exp_minus
from anonymize.errors import SchemaError
from crypto.errors import LocalProtocolError

PRECISION = 20
"""Bits of the weight of score 0: the relative error of a weight is at most about 2^−20."""
SUM_BITS = 64
"""Most bits of random values, and so of sums of weights (:mod:`crypto.random_value`)."""

_SERIES_BITS = 64


@dataclass(frozen=True)
class Weights:
    """Weights of the scores 0, 1, …; ``values[u]`` never falls."""

    values: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Bits of every weight."""
        return self.values[-1].bit_length()

    def check_sum(self, candidates: int) -> None:
        """Refuse if the weights of ``candidates`` candidates can exceed SUM_BITS bits. Raises SchemaError."""
        needed = (candidates * self.values[-1]).bit_length()
        if needed > SUM_BITS:
            raise _too_small(
                f"weights of {candidates} candidates with scores up to {len(self.values) - 1} need sums of "
                f"{needed} bits; random values have {SUM_BITS}"
            )


@dataclass(frozen=True)
class Series:
    """Weights as a polynomial: weight(u) = Σ c_i·u^i, shifted right by ``shift`` bits ([T] Eq. 7.4).

    coefficients:  S·r^i/i! rounded, S = 2^(PRECISION + shift), lowest degree first.
    """

    coefficients: tuple[int, ...]
    shift: int
    weights: Weights

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    @property
    def value_bits(self) -> int:
        """Bits of every value before the shift."""
        u = len(self.weights.values) - 1
        value: int = sum(c * u**i for i, c in enumerate(self.coefficients))
        return value.bit_length()

    def shifted(self, a: int) -> list[int]:
        """Return the coefficients of the polynomial at a + z, by powers of z."""
        shifted = list(self.coefficients)
        for start in range(self.degree):
            for i in reversed(range(start, self.degree)):
                shifted[i] += a * shifted[i + 1]
        return shifted


def exponential_weights(epsilon: Fraction, most: int) -> Weights:
    """Return ⌊2^PRECISION · e^(r·u)⌋ for u up to ``most``, r a little below ε′/2 ([T] Algorithm 7.2).

    Raises SchemaError if ε′ is too small for the precision, or ``most`` too large for SUM_BITS.
    """
    r = _rate(epsilon)
    _check_range(r, most)
    return _checked([_floor_exp(r * u) for u in range(most + 1)], epsilon)


def series_weights(epsilon: Fraction, most: int) -> Series:
    """Return the weights as a Taylor polynomial with relative error below 2^−PRECISION.

    Raises SchemaError as :func:`exponential_weights`.
    """
    r = _rate(epsilon)
    _check_range(r, most)
    degree = _degree(r * most)
    shift = degree * max(1, most.bit_length()) + 2
    scale, terms = 1 << PRECISION + shift, [Fraction(1)]
    for i in range(1, degree + 1):
        terms.append(terms[-1] * r / i)
    coefficients = tuple(round(scale * term) for term in terms)
    values = [sum(c * u**i for i, c in enumerate(coefficients)) >> shift for u in range(most + 1)]
    return Series(coefficients, shift, _checked(values, epsilon))


def draw_by_weight(weights: Sequence[int], coins: Coins) -> int:
    """Draw the least i with R < w_0 + … + w_i, R uniform below the sum: alone, in the clear."""
    r = coins.below(sum(weights))
    for i, weight in enumerate(weights):
        r -= weight
        if r < 0:
            return i
    raise AssertionError("R is below the sum of the weights")


def _rate(epsilon: Fraction) -> Fraction:
    """Return r = ε′/2 less the largest effect of rounding down on a ratio of weights: −ln(1 − 2^−PRECISION)."""
    y = Fraction(1, 1 << PRECISION - 1)  # floor, and as much again for the series
    rate = epsilon / 2 - y - y * y
    if rate <= 0:
        raise _too_small(f"ε′ = {float(epsilon):.3g} is too small for weights of {PRECISION} bits")
    return rate


def _check_range(r: Fraction, most: int) -> None:
    """Refuse hopeless ranges before computing weights of thousands of bits: 2^x ≤ e^x."""
    if r * most > SUM_BITS:
        raise _too_small(
            f"scores up to {most} at a rate of {float(r):.3g} need weights of more than {SUM_BITS} bits"
        )


def _too_small(what: str) -> SchemaError:
    return SchemaError(
        "job-invalid",
        f"engine thesis: {what}",
        remedy="lower `max_rows`, raise `specializations`, or say `engine: circuit`: this engine is for small tables",
    )


def _floor_exp(x: Fraction) -> int:
    """Return ⌊2^PRECISION · e^x⌋, exactly."""
    if x == 0:
        return 1 << PRECISION
    bits = _SERIES_BITS + 4 * int(x)
    while True:
        low, high = exp_minus(x, bits)
        floors = {(1 << PRECISION) // bound for bound in (low, high)}
        if len(floors) == 1:
            return int(floors.pop())
        bits *= 2


def _degree(x: Fraction) -> int:
    """Return the least degree with a remainder of the series of e^x below 2^−(PRECISION + 1) of e^x.

    For smaller x the remainder is a smaller part. (Its omission costs no privacy: the derivative of a partial sum is
    the partial sum before, so no step of the score raises the sum by more than e^r.)
    """
    degree, term, total = 0, Fraction(1), Fraction(1)
    while True:
        term = term * x / (degree + 1)
        ratio = x / (degree + 2)
        if ratio < 1 and term / (1 - ratio) * (1 << PRECISION + 1) < total:
            return max(1, degree)
        degree, total = degree + 1, total + term


def _checked(values: Sequence[int], epsilon: Fraction) -> Weights:
    """Return weights that never fall, with ρ² ≤ e^ε′ per step. Raises LocalProtocolError, an internal error."""
    bound = 1 / exp_minus(epsilon, _SERIES_BITS)[1]
    if not all(low <= high and high**2 <= bound * low**2 for low, high in pairwise(values)):
        raise LocalProtocolError("weights that are not ε′-DP")
    return Weights(tuple(values))
