"""Test-and-generate: the law of drawing every cell, exactly, for domains that nobody could go through."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.dp import noise, sparse
from anonymize.dp.noise import Chance, Coins, exact_noise, exp_minus
from anonymize.dp.sparse import Filter, filter_for, least_above, sparse_counts
from tests.support.rng import SeededRng

BITS = 200


@dataclass
class Decisions:
    """Decides every coin of a run, and keeps bounds of how likely that was."""

    script: tuple[bool, ...]
    taken: int = 0
    low: Fraction = field(default_factory=lambda: Fraction(1))
    high: Fraction = field(default_factory=lambda: Fraction(1))

    def flip(self, chance: Chance) -> bool:
        decision = self.script[self.taken] if self.taken < len(self.script) else False
        self.taken += 1
        low, high = chance._bounds(BITS)
        if not decision:
            low, high = 1 - high, 1 - low
        self.low, self.high = self.low * low, self.high * high
        return decision


@contextmanager
def deciding(decisions: Decisions) -> Iterator[None]:
    original = Chance.flip
    Chance.flip = lambda self, coins: decisions.flip(self)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Chance.flip = original  # type: ignore[method-assign]


class NoCoins:
    def below(self, bound: int) -> int:
        raise AssertionError("every coin is decided")


def law_of_passing(size: int, test: Filter) -> dict[tuple[int, ...], tuple[Fraction, Fraction]]:
    """Bounds of the probability of every outcome, over all decisions of all coins."""
    law: dict[tuple[int, ...], tuple[Fraction, Fraction]] = {}
    pending: list[tuple[bool, ...]] = [()]
    while pending:
        script = pending.pop()
        decisions = Decisions(script)
        with deciding(decisions):
            outcome = tuple(sparse._passing(size, test, NoCoins()))
        pending += [(*script, *[False] * k, True) for k in range(decisions.taken - len(script))]
        low, high = law.get(outcome, (Fraction(0), Fraction(0)))
        law[outcome] = low + decisions.low, high + decisions.high
    return law


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("test", [Filter(Fraction(1, 2), 1), Filter(Fraction(1), 3)])
def test_every_cell_passes_independently_with_the_same_probability(size: int, test: Filter) -> None:
    """P(exactly these pass) = p^passed·(1 − p)^failed, to 2^−150."""
    law = law_of_passing(size, test)
    p_low, p_high = test.pass_bounds(BITS)
    subsets = [s for n in range(size + 1) for s in combinations(range(size), n)]
    assert law.keys() == set(subsets)
    for passed, (low, high) in law.items():
        assert high - low < Fraction(1, 2**150)
        assert low <= p_high ** len(passed) * (1 - p_low) ** (size - len(passed))
        assert high >= p_low ** len(passed) * (1 - p_high) ** (size - len(passed))


@pytest.mark.parametrize("threshold", [1, 2, 9])
def test_the_probability_to_pass_and_the_count_of_what_passed(threshold: int) -> None:
    """P(Z ≥ θ) by adding up the discrete Laplace law, and P(Z = θ + k | Z ≥ θ) that of a geometric variable."""
    a = math.exp(-0.5)
    law = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-200, 400)}
    p = sum(q for k, q in law.items() if k >= threshold)
    low, high = Filter(Fraction(1, 2), threshold).pass_bounds(100)
    assert float(low) == pytest.approx(p)
    assert high - low < Fraction(1, 2**98)
    for k in range(5):
        assert law[threshold + k] / p == pytest.approx((1 - a) * a**k)


class Laid:
    """Noise laid out for occupied cells; the coins of empty ones are those of a seed."""

    def __init__(self, values: list[int], coins: Coins) -> None:
        self._values = values
        self.coins = coins

    def laplace(self, rate: Fraction, count: int) -> list[int]:
        assert count == len(self._values)
        return self._values

    def geometric(self, rate: Fraction, count: int) -> list[int]:
        return exact_noise(SeededRng(1)).geometric(rate, count)


class Never:
    """Coins under which no empty cell passes: the first of every gap says that it is beyond the domain."""

    def below(self, bound: int) -> int:
        return 0


def test_occupied_cells_meet_the_same_threshold() -> None:
    test = Filter(Fraction(1, 3), 5)
    occupied = {7: 5, 1: 6, 4: 4, 2: 100, 9: 4}
    noise_of_each = [0, -2, 0, -95, 1]  # 5, 4, 4, 5, 5
    assert sparse_counts(10, occupied, test, Laid(noise_of_each, Never())) == {2: 5, 7: 5, 9: 5}


def test_against_drawing_every_cell() -> None:
    """20,000 runs over six cells, three occupied: how often each is listed, and with which counts."""
    rate, threshold, occupied = Fraction(1, 2), 2, {0: 1, 3: 2, 5: 4}
    test, runs, a = Filter(rate, threshold), 20_000, math.exp(-0.5)
    drawn = exact_noise(SeededRng("sparse"))
    seen = np.zeros((6, 12), dtype=np.int64)
    for _ in range(runs):
        for cell, count in sparse_counts(6, occupied, test, drawn).items():
            seen[cell, min(count, 13) - threshold] += 1
    for cell in range(6):
        k = np.arange(threshold, 14) - occupied.get(cell, 0)
        p = (1 - a) / (1 + a) * a ** np.abs(k)
        p[-1] /= 1 - a  # the tail
        expected = np.append(runs * p, runs * (1 - p.sum()))
        found = np.append(seen[cell], runs - seen[cell].sum())
        assert float(((found - expected) ** 2 / expected).sum()) < 55  # 12 degrees of freedom, p < 1e-6


def test_domains_beyond_any_machine() -> None:
    """2^200 cells: those listed are in range, ascending, at the threshold or above."""
    size = 1 << 200
    test = filter_for(Fraction(1, 10), size)
    drawn = exact_noise(SeededRng("large"))
    listed = [sparse_counts(size, {size - 1: 10**6}, test, drawn) for _ in range(40)]
    numbers = [len(cells) - 1 for cells in listed]
    assert 0 < sum(numbers) < 80  # one is expected to pass
    for cells in listed:
        assert list(cells) == sorted(cells)
        assert all(0 <= cell < size and count >= test.threshold for cell, count in cells.items())
        assert size - 1 in cells


@given(
    st.fractions(min_value=Fraction(1, 300), max_value=3, max_denominator=300),
    st.integers(1, 10**30),
    st.integers(1, 50),
)
def test_the_lowest_threshold_that_lets_one_pass(rate: Fraction, size: int, least: int) -> None:
    chosen = filter_for(rate, size, least)
    assert chosen.rate == rate
    assert chosen.threshold >= least
    assert size * chosen.pass_bounds(200)[1] <= 1 + Fraction(1, 2**30)
    if chosen.threshold > least:
        assert size * Filter(rate, chosen.threshold - 1).pass_bounds(200)[1] > 1 - Fraction(1, 2**30)


@given(st.fractions(min_value=Fraction(1, 1000), max_value=10**6, max_denominator=1000))
def test_the_least_integer_above_a_root(square: Fraction) -> None:
    root = least_above(square)
    assert root**2 >= square
    assert root == 1 or (root - 1) ** 2 < square


def test_the_bounds_of_a_gap_are_tight_enough_to_decide() -> None:
    """A chance of q^(2^60) is decided with a few words, like any other."""
    gaps = sparse._Gaps(Filter(Fraction(1, 10), 300), 64)
    for chance in (gaps._beyond, *gaps._digits):
        for bits in (64, 256):
            low, high = chance._bounds(bits)
            assert 0 <= low <= high <= 1
            assert high - low < Fraction(1, 2**bits)
    assert noise.exp_minus is exp_minus
