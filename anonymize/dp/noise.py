"""Exact noise from fair coins: geometric and discrete Laplace variables with rational rates.

Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020, algorithms 1 and 2:
integers and coins only. There is no float, table or truncation, so the variables have exactly the law of the
privacy proofs (floating-point Laplace does not: Mironov, CCS 2012).

All randomness comes through :class:`Coins`, uniform integers below a bound. So a test can enumerate all coin
sequences and add up exact probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from anonymize.release import Rng

_POOL_BYTES = 512
_WORD = 64


class Coins(Protocol):
    """Source of uniform integers."""

    def below(self, bound: int) -> int:
        """Return an integer uniform in [0, bound)."""
        ...


class RngCoins:
    """Coins from uniform bytes, by rejection."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._pool = 0
        self._bits = 0

    def __repr__(self) -> str:
        return "RngCoins(<secret>)"

    def below(self, bound: int) -> int:
        if bound < 1:
            raise ValueError("bound must be at least 1")
        width = (bound - 1).bit_length()
        while True:
            drawn = self._draw(width)
            if drawn < bound:
                return drawn

    def _draw(self, width: int) -> int:
        """Take ``width`` fresh bits."""
        while self._bits < width:
            self._pool |= int.from_bytes(self._rng.bytes(_POOL_BYTES), "little") << self._bits
            self._bits += 8 * _POOL_BYTES
        drawn = self._pool & ((1 << width) - 1)
        self._pool >>= width
        self._bits -= width
        return drawn


class Noise(Protocol):
    """Independent noise variables. The rates are exact: −ln of the ratio of neighbouring probabilities."""

    def geometric(self, rate: Fraction, count: int) -> list[int]:
        """Draw ``count`` variables with P(k) = (1 − a)·a^k for k ≥ 0, a = e^−rate."""
        ...

    def laplace(self, rate: Fraction, count: int) -> list[int]:
        """Draw ``count`` variables with P(k) ∝ e^(−rate·|k|), over all integers."""
        ...

    @property
    def coins(self) -> Coins:
        """Coins of the variables."""
        ...


class ExactNoise:
    """Noise from the samplers of this file."""

    def __init__(self, coins: Coins) -> None:
        self.coins = coins

    def geometric(self, rate: Fraction, count: int) -> list[int]:
        return [geometric(rate, self.coins) for _ in range(count)]

    def laplace(self, rate: Fraction, count: int) -> list[int]:
        return [discrete_laplace(rate, self.coins) for _ in range(count)]


def exact_noise(rng: Rng) -> Noise:
    """Return noise from uniform bytes."""
    return ExactNoise(RngCoins(rng))


def geometric(rate: Fraction, coins: Coins) -> int:
    """Draw k ≥ 0 with P(k) = (1 − a)·a^k, a = e^−rate, for a positive rational rate.

    With rate = s/t: U + t·V is geometric with rate 1/t if U in [0, t) has weights e^(−U/t) and V is geometric
    with rate 1; dividing it by s, rounded down, gives rate s/t.
    """
    s, t = rate.numerator, rate.denominator
    if s < 1:
        raise ValueError("the rate must be positive")
    u = coins.below(t)
    while not _bernoulli_exp(u, t, coins):
        u = coins.below(t)
    v = 0
    while _bernoulli_exp(1, 1, coins):
        v += 1
    return (u + t * v) // s


def discrete_laplace(rate: Fraction, coins: Coins) -> int:
    """Draw an integer with P(k) ∝ e^(−rate·|k|): a geometric magnitude and a fair sign, −0 rejected."""
    while True:
        negative = coins.below(2) == 1
        magnitude = geometric(rate, coins)
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def _bernoulli_exp(numerator: int, denominator: int, coins: Coins) -> bool:
    """Return True with probability e^−x for x = numerator/denominator in [0, 1].

    The first k at which a coin of bias x/k fails is odd with probability Σ (−x)^i/i! = e^−x.
    """
    k = 1
    while coins.below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


class Chance:
    """Coin with a real probability known by approximation, flipped exactly.

    bounds:  bounds of the probability that converge as the number of bits grows.
    """

    def __init__(self, bounds: Callable[[int], tuple[Fraction, Fraction]]) -> None:
        self._bounds = bounds
        self._known: dict[int, tuple[int, int]] = {}

    def flip(self, coins: Coins) -> bool:
        """Return True with the coin's probability.

        The bits of a uniform real are drawn 64 at a time until its side of the probability is clear.
        """
        drawn, bits = 0, 0
        while True:
            drawn, bits = drawn << _WORD | coins.below(1 << _WORD), bits + _WORD
            low, high = self._edges(bits)
            if drawn < low:
                return True
            if drawn >= high:
                return False

    def _edges(self, bits: int) -> tuple[int, int]:
        """Return integers around the probability times 2**bits."""
        if bits not in self._known:
            low, high = self._bounds(bits + _WORD)
            self._known[bits] = math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))
        return self._known[bits]


def exp_minus(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Return bounds of e^−x for x ≥ 0, less than 2^−bits apart.

    Successive partial sums of the alternating series at x/2^h ≤ 1/2 lie on both sides of the limit. Then h squarings
    follow, rounded outward; each at most doubles the gap.
    """
    halvings = math.ceil(2 * x).bit_length()
    scale = 1 << bits + halvings + _WORD
    y = x / (1 << halvings)
    k, term, total = 0, Fraction(1), Fraction(1)
    while term * scale > 1:
        k += 1
        term = term * y / k
        total += -term if k % 2 else term
    low, high = (total, total + term) if k % 2 else (total - term, total)
    below, above = math.floor(low * scale), math.ceil(high * scale)
    for _ in range(halvings):
        below, above = below * below // scale, -(-above * above // scale)
    return Fraction(below, scale), Fraction(above, scale)
