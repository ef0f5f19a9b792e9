"""Noisy counts of a domain too large to enumerate: exact test-and-generate.

Every cell gets discrete Laplace noise, and cells with noisy counts at or above a public threshold are listed.
Occupied cells are drawn separately. Empty cells all pass with the same probability, so the gaps between passing cells
are geometric. The count of a passing cell is the threshold plus a geometric variable. The result has exactly the law
of drawing every cell, with the same threshold for empty and occupied cells (Cormode, Procopiuc, Srivastava, Tran,
ICDT 2012; [T] 6.3.3). Nothing is truncated or approximated: probabilities are real numbers, and a coin is compared
with as many of their digits as necessary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from anonymize.dp.noise import Chance, Coins, Noise, exp_minus

Bounds: TypeAlias = Callable[[int], tuple[Fraction, Fraction]]

_GUARD_BITS = 32


@dataclass(frozen=True)
class Filter:
    """Threshold for cells.

    rate:       rate of the discrete Laplace noise on every count.
    threshold:  least listed noisy count, at least 1.
    """

    rate: Fraction
    threshold: int

    def pass_bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """Return bounds of p = P(Z ≥ threshold) = a^threshold / (1 + a), a = e^−rate, about 2^−bits apart."""
        a_low, a_high = exp_minus(self.rate, bits)
        low, high = exp_minus(self.rate * self.threshold, bits)
        return low / (1 + a_high), high / (1 + a_low)


def filter_for(rate: Fraction, size: int, least: int = 1) -> Filter:
    """Return the lowest threshold, at least ``least``, that at most 1 of ``size`` empty cells is expected to pass.

    Public: it depends on no count. Cost of more empty cells: benchmarks/RESULTS.md.
    """
    bits = size.bit_length() + _GUARD_BITS

    def few(threshold: int) -> bool:
        return size * Filter(rate, threshold).pass_bounds(bits)[1] <= 1

    low, high = least - 1, least
    while not few(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if few(middle) else (middle, high)
    return Filter(rate, high)


def least_above(bound_squared: Fraction) -> int:
    """Return the least integer t ≥ 1 with t² ≥ bound_squared, for thresholds like √2/ε′ without a float."""
    root = math.isqrt(math.ceil(bound_squared))
    return max(1, root if root * root >= bound_squared else root + 1)


def sparse_counts(size: int, occupied: Mapping[int, int], test: Filter, noise: Noise) -> dict[int, int]:
    """Return the noisy counts of the passing cells, by cell in ascending order.

    size:      number of cells in the domain, of any magnitude.
    occupied:  records of every occupied cell, in [0, size).

    Privacy: test.rate-DP for all cells together, as each record is in a single cell.
    """
    drawn = zip(occupied.items(), noise.laplace(test.rate, len(occupied)), strict=True)
    listed = {cell: count + z for (cell, count), z in drawn if count + z >= test.threshold}
    empty = [cell for cell in _passing(size, test, noise.coins) if cell not in occupied]
    above = noise.geometric(test.rate, len(empty))
    listed |= {cell: test.threshold + k for cell, k in zip(empty, above, strict=True)}
    return dict(sorted(listed.items()))


def _passing(size: int, test: Filter, coins: Coins) -> Iterator[int]:
    """Yield the cells that would pass if all were empty, in ascending order."""
    gaps = _gaps(test, size.bit_length())
    cell = gaps.draw(coins)
    while cell < size:
        yield cell
        cell += 1 + gaps.draw(coins)


class _Gaps:
    """Number of failing cells before a passing cell: P(k) = q^k·p for q = 1 − p, cut off at 2**digits.

    Below the cut-off the binary digits are independent: digit j is 1 with probability q^(2^j) / (1 + q^(2^j)).
    """

    def __init__(self, test: Filter, digits: int) -> None:
        self._test = test
        self._n_digits = digits
        self._known: dict[int, list[tuple[Fraction, Fraction]]] = {}
        self._beyond = Chance(lambda bits: self._powers(bits)[digits])
        self._digits = [Chance(self._odds(j)) for j in range(digits)]

    def draw(self, coins: Coins) -> int:
        """Draw a gap; 2**digits stands for all larger gaps."""
        if self._beyond.flip(coins):
            return 1 << self._n_digits
        return sum(digit.flip(coins) << j for j, digit in enumerate(self._digits))

    def _odds(self, j: int) -> Bounds:
        def bounds(bits: int) -> tuple[Fraction, Fraction]:
            low, high = self._powers(bits)[j]
            return low / (1 + low), high / (1 + high)

        return bounds

    def _powers(self, bits: int) -> list[tuple[Fraction, Fraction]]:
        """Return bounds of q^(2^j) for every j, less than 2^−bits apart: each squaring at most doubles the gap."""
        if bits not in self._known:
            precision = bits + self._n_digits + _GUARD_BITS
            scale = 1 << precision
            p_low, p_high = self._test.pass_bounds(precision)
            low, high = math.floor((1 - p_high) * scale), math.ceil((1 - p_low) * scale)
            self._known[bits] = []
            for _ in range(self._n_digits + 1):
                self._known[bits].append((Fraction(low, scale), Fraction(high, scale)))
                low, high = low * low // scale, -(-high * high // scale)
        return self._known[bits]


_gaps = lru_cache(maxsize=8)(_Gaps)
