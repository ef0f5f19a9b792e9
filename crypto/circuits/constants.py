"""The public constants behind noise in circuits: digits, coin widths and what they cost in probability.

A geometric variable G with P(G = k) = (1 − a)·a^k has independent binary digits: digit j is 1 with
probability a^(2^j) / (1 + a^(2^j)). In a circuit each digit is a coin, the comparison of c random bits with
a public threshold, and there are finitely many. Both departures are bounded here: the distance reported is
an upper bound on the total variation distance between all draws together and ideal ones. A mechanism that
is ε-DP with ideal draws is (ε, (1 + e^ε) · distance)-DP with these.

Everything is integers and fractions with directed rounding; no float decides a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from crypto.errors import LocalProtocolError

_GUARD_BITS = 32


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """How ``draws`` noise variables are made of coins.

    rate:       −ln a.
    coin_bits:  random bits of a coin; a coin is 1 if they are below its threshold.
    digits:     thresholds of the digits of the geometric variable, lowest first.
    zero:       threshold of the coin for 0 (discrete Laplace), else None.
    distance:   upper bound on the total variation distance of all draws together.
    """

    rate: Fraction
    draws: int
    coin_bits: int
    digits: tuple[int, ...]
    zero: int | None
    distance: Fraction

    @property
    def bits(self) -> int:
        """Random bits of one draw: the coins, and the sign of a discrete Laplace variable."""
        coins = len(self.digits) + (self.zero is not None)
        return coins * self.coin_bits + (self.zero is not None)


def geometric_plan(rate: Fraction, draws: int, distance: Fraction) -> NoisePlan:
    """Plan geometric noise, P(G = k) ∝ e^(−rate·k) for k ≥ 0, within the stated distance.

    Raises LocalProtocolError for a rate, number of draws or distance that is not positive.
    """
    return _plan(rate, draws, distance, two_sided=False)


def laplace_plan(rate: Fraction, draws: int, distance: Fraction) -> NoisePlan:
    """Plan discrete Laplace noise, P(Z = k) ∝ e^(−rate·|k|), within the stated distance; raises likewise."""
    return _plan(rate, draws, distance, two_sided=True)


def distance_for(delta: Fraction, epsilon: Fraction) -> Fraction:
    """A distance that keeps (1 + e^ε) · distance ≤ δ, where ε is all that the draws are charged with."""
    return delta / (1 + _exp_bound(epsilon))


def delta_of(distance: Fraction, epsilon: Fraction) -> Fraction:
    """An upper bound on (1 + e^ε) · distance."""
    return distance * (1 + _exp_bound(epsilon))


def _exp_bound(x: Fraction) -> Fraction:
    """An upper bound on e^x."""
    return 1 / exp_minus(x, 64 + 2 * int(x))[0]


def _plan(rate: Fraction, draws: int, distance: Fraction, *, two_sided: bool) -> NoisePlan:
    if isinstance(rate, float) or isinstance(distance, float):
        raise LocalProtocolError("rate and distance are exact: fractions, not floats")
    rate = Fraction(rate)
    if rate <= 0 or draws < 1 or int(draws) != draws or not 0 < distance < 1:
        raise LocalProtocolError(f"rate {rate}, {draws} draws, distance {distance}: all must be positive")
    bits = _GUARD_BITS + int(draws / distance).bit_length()
    n_digits = 1
    while draws * _tail(rate, n_digits, bits) > distance / 2:
        n_digits += 1
    coins = draws * (n_digits + two_sided)
    coin_bits = 1
    while Fraction(coins, 2 << coin_bits) > distance / 2:
        coin_bits += 1
    digits = [_threshold(_digit_bounds, rate * 2**j, coin_bits) for j in range(n_digits)]
    zero = _threshold(_zero_bounds, rate, coin_bits) if two_sided else None
    errors = sum((error for _, error in digits), zero[1] if zero else Fraction(0))
    reached = draws * (errors + _tail(rate, n_digits, bits))
    assert reached <= distance
    thresholds = tuple(threshold for threshold, _ in digits)
    return NoisePlan(rate, draws, coin_bits, thresholds, zero[0] if zero else None, reached)


def exp_minus(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of e^−x for x ≥ 0, about 2^−bits apart."""
    halvings = max(0, (x.numerator // x.denominator).bit_length() + 1)
    precision = bits + halvings + _GUARD_BITS
    low, high = _exp_minus_small(x / 2**halvings, precision)
    for _ in range(halvings):
        low, high = low * low >> precision, _shift_up(high * high, precision)
    return Fraction(low, 1 << precision), Fraction(high, 1 << precision)


def _exp_minus_small(y: Fraction, precision: int) -> tuple[int, int]:
    """Bounds of 2^precision · e^−y for 0 ≤ y ≤ 1/2: the alternating series, rounded outward."""
    scaled = y * (1 << precision)
    y_low, y_high = scaled.numerator // scaled.denominator, -(-scaled.numerator // scaled.denominator)
    term_low = term_high = low = high = 1 << precision
    k = 0
    while term_high > 1:
        k += 1
        term_low = (term_low * y_low >> precision) // k
        term_high = -(-_shift_up(term_high * y_high, precision) // k)
        if k % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    return low - 1, high + 1  # what is left out is smaller than the last term


def _shift_up(value: int, bits: int) -> int:
    return -(-value >> bits)


def _tail(rate: Fraction, n_digits: int, bits: int) -> Fraction:
    """An upper bound on P(G ≥ 2^n_digits), what is lost without the digits above."""
    return exp_minus(rate * 2**n_digits, bits)[1]


def _digit_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    low, high = exp_minus(x, bits)
    return low / (1 + low), high / (1 + high)


def _zero_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    low, high = exp_minus(x, bits)
    return (1 - high) / (1 + high), (1 - low) / (1 + low)


def _threshold(
    bounds: Callable[[Fraction, int], tuple[Fraction, Fraction]], x: Fraction, coin_bits: int
) -> tuple[int, Fraction]:
    """Return the threshold nearest to a probability, and an upper bound on the difference of the two."""
    bits = coin_bits + _GUARD_BITS
    scale = 1 << coin_bits
    while True:
        low, high = bounds(x, bits)
        threshold = round(low * scale)
        if threshold == round(high * scale):
            return threshold, max(abs(Fraction(threshold, scale) - p) for p in (low, high))
        bits *= 2
