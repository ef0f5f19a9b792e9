"""The public constants behind noise in circuits: tables of digits, coin widths and their cost in probability.

A geometric variable G with P(G = k) = (1 − a)·a^k has independent binary digits: digit j is 1 with probability
a^(2^j) / (1 + a^(2^j)) (Dwork et al. 2006). A discrete Laplace variable is G or, with probability a / (1 + a), it
is −1 − G: a separate sign bit flips all bits of G. A circuit draws a few of these bits at once from c random bits
and a table (Walker 1977, the alias method). The first random bits choose a column. The remaining random bits are
compared with the threshold of the column and decide between the value of the column and the alias. So probabilities
are multiples of 2^−c, and the number of digits is finite. Both departures are bounded: the reported distance is an
upper bound on the total variation distance between all draws together and ideal draws. A mechanism that is ε-DP
with ideal draws is (ε, (1 + e^ε) · distance)-DP with these draws.

All computation uses integers and fractions with directed rounding; no float decides a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from crypto.errors import LocalProtocolError

_GUARD_BITS = 32
_TABLE_BITS = 5
"""Maximum index width b of a table: 2^b gates decode a column, c gates compare with the threshold."""

Bounds = tuple[Fraction, Fraction]
"""Lower and upper bound of a number."""


@dataclass(frozen=True, slots=True)
class AliasTable:
    """Values of b bits by the alias method: column i is drawn uniformly among 2**b columns.

    stays:    thresholds: column i gives i if the remaining random bits are below stays[i], else aliases[i].
    aliases:  the alias of each column.
    """

    stays: tuple[int, ...]
    aliases: tuple[int, ...]

    @property
    def bits(self) -> int:
        return len(self.aliases).bit_length() - 1


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """The way to make ``draws`` noise variables of coins.

    rate:       −ln a.
    coin_bits:  random bits of a table.
    tables:     the digits of the geometric variable, lowest first, and for discrete Laplace the sign as the last.
    signed:     discrete Laplace, not geometric.
    distance:   upper bound on the total variation distance of all draws together.
    """

    rate: Fraction
    draws: int
    coin_bits: int
    tables: tuple[AliasTable, ...]
    signed: bool
    distance: Fraction

    @property
    def bits(self) -> int:
        """Number of random bits of a draw."""
        return len(self.tables) * self.coin_bits

    @property
    def width(self) -> int:
        """Bits of a draw: unsigned if geometric, two's complement if discrete Laplace."""
        return sum(table.bits for table in self.tables)


def geometric_plan(rate: Fraction, draws: int, distance: Fraction) -> NoisePlan:
    """Plan geometric noise, P(G = k) ∝ e^(−rate·k) for k ≥ 0, within the stated distance.

    Raises LocalProtocolError for a rate, number of draws or distance that is not positive.
    """
    return _plan(rate, draws, distance, signed=False)


def laplace_plan(rate: Fraction, draws: int, distance: Fraction) -> NoisePlan:
    """Plan discrete Laplace noise, P(Z = k) ∝ e^(−rate·|k|), within the stated distance; raises likewise."""
    return _plan(rate, draws, distance, signed=True)


def distance_for(delta: Fraction, epsilon: Fraction) -> Fraction:
    """Return a distance with (1 + e^ε) · distance ≤ δ, where ε is the total charge of the draws."""
    return delta / (1 + _exp_bound(epsilon))


def delta_of(distance: Fraction, epsilon: Fraction) -> Fraction:
    """Return an upper bound on (1 + e^ε) · distance."""
    return distance * (1 + _exp_bound(epsilon))


def _exp_bound(x: Fraction) -> Fraction:
    """Return an upper bound on e^x."""
    return 1 / exp_minus(x, 64 + 2 * int(x))[0]


def _plan(rate: Fraction, draws: int, distance: Fraction, *, signed: bool) -> NoisePlan:
    if isinstance(rate, float) or isinstance(distance, float):
        raise LocalProtocolError("rate and distance are exact: fractions, not floats")
    rate = Fraction(rate)
    if rate <= 0 or draws < 1 or int(draws) != draws or not 0 < distance < 1:
        raise LocalProtocolError(f"rate {rate}, {draws} draws, distance {distance}: all must be positive")
    bits = _GUARD_BITS + int(draws / distance).bit_length()
    n_digits = 1
    while draws * _tail(rate, n_digits, bits) > distance / 2:
        n_digits += 1
    sizes = _sizes(n_digits + signed)
    coin_bits = max(sizes)
    while Fraction(draws * sum(1 << size for size in sizes), 4 << coin_bits) > distance / 2:
        coin_bits += 1
    # The sign has the probability of the lowest digit.
    ones = [_one_bounds(rate * 2**j, coin_bits + _GUARD_BITS) for j in [*range(n_digits), *[0] * signed]]
    laws = [_joint(ones[sum(sizes[:i]) :][:size]) for i, size in enumerate(sizes)]
    weights = [_weights(law, coin_bits) for law in laws]
    apart = draws * (sum(map(_apart, weights, laws)) + _tail(rate, n_digits, bits))
    reached = Fraction(math.ceil(apart * (1 << bits)), 1 << bits)
    assert reached <= distance
    return NoisePlan(rate, draws, coin_bits, tuple(map(alias_table, weights)), signed, reached)


def _sizes(bits: int) -> list[int]:
    """Cut bits into tables, as few and as even as can be."""
    n_tables = -(-bits // _TABLE_BITS)
    return [(bits + i) // n_tables for i in range(n_tables)]


def alias_table(weights: Sequence[int]) -> AliasTable:
    """Return the table whose value i has probability weights[i] / Σ weights.

    The number of weights and their sum are powers of two. A column with too little weight is filled from a column
    with too much (Walker 1977).
    """
    size = sum(weights) // len(weights)
    left, stays, aliases = list(weights), [0] * len(weights), list(range(len(weights)))
    short = [i for i, weight in enumerate(left) if weight < size]
    long = [i for i, weight in enumerate(left) if weight > size]
    while short:
        i, giver = short.pop(), long[-1]
        stays[i], aliases[i] = left[i], giver
        left[giver] -= size - left[i]
        if left[giver] <= size:
            long.pop()
            short += [giver] * (left[giver] < size)
    return AliasTable(tuple(stays), tuple(aliases))


def _joint(ones: Sequence[Bounds]) -> list[Bounds]:
    """Return the law of a word of independent bits, lowest first, each 1 with a probability within bounds."""
    law = [(Fraction(1), Fraction(1))]
    for low, high in ones:
        zeros = [(p * (1 - high), q * (1 - low)) for p, q in law]
        law = zeros + [(p * low, q * high) for p, q in law]
    return law


def _weights(law: Sequence[Bounds], coin_bits: int) -> list[int]:
    """Return probabilities as multiples of 2**−coin_bits: round down, then give the rest to the values with the
    largest loss.
    """
    scaled = [low * (1 << coin_bits) for low, _ in law]
    weights = [math.floor(x) for x in scaled]
    lost = sorted(range(len(law)), key=lambda i: (weights[i] - scaled[i], i))
    for i in lost[: (1 << coin_bits) - sum(weights)]:
        weights[i] += 1
    return weights


def _apart(weights: Sequence[int], law: Sequence[Bounds]) -> Fraction:
    """Return an upper bound on the total variation distance of weights and a law."""
    total = sum(weights)
    errors = (
        max(abs(Fraction(w, total) - p) for p in bounds) for w, bounds in zip(weights, law, strict=True)
    )
    return sum(errors, Fraction(0)) / 2


def exp_minus(x: Fraction, bits: int) -> Bounds:
    """Return bounds of e^−x for x ≥ 0, about 2^−bits apart."""
    halvings = max(0, (x.numerator // x.denominator).bit_length() + 1)
    precision = bits + halvings + _GUARD_BITS
    low, high = _exp_minus_small(x / 2**halvings, precision)
    for _ in range(halvings):
        low, high = low * low >> precision, _shift_up(high * high, precision)
    return Fraction(low, 1 << precision), Fraction(high, 1 << precision)


def _exp_minus_small(y: Fraction, precision: int) -> tuple[int, int]:
    """Return bounds of 2^precision · e^−y for 0 ≤ y ≤ 1/2: the alternating series, rounded outward."""
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
    """Return an upper bound on P(G ≥ 2^n_digits), the loss without the higher digits."""
    return exp_minus(rate * 2**n_digits, bits)[1]


def _one_bounds(x: Fraction, bits: int) -> Bounds:
    """Return bounds of e^−x / (1 + e^−x)."""
    low, high = exp_minus(x, bits)
    return low / (1 + low), high / (1 + high)
