"""Exact samplers: their laws over all coins in fractions, and over a million draws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.dp.noise import (
    Chance,
    ExactNoise,
    RngCoins,
    discrete_laplace,
    exact_noise,
    exp_minus,
    geometric,
)
from crypto.rng import SystemRng
from tests.support.coins import ScriptedCoins, law_of
from tests.support.rng import SeededRng

LIMIT = 135.2
"""Chi-square of 61 bins: exceeded with probability below 1e-6 (semantics §8.6)."""
SOME_DRAWS, DRAWS = 100_000, 1_000_000


def bounds(law: dict[int, Fraction], left_out: Fraction, k: int) -> tuple[Fraction, Fraction]:
    return law.get(k, Fraction(0)), law.get(k, Fraction(0)) + left_out


@pytest.mark.parametrize(("rate", "draws"), [(Fraction(1), 14), (Fraction(3), 14), (Fraction(1, 2), 13)])
def test_the_law_of_the_geometric_sampler(rate: Fraction, draws: int) -> None:
    """Over all sequences of draws: (1 − a)·a^k, up to the sequences that are longer."""
    law, left_out = law_of(lambda coins: geometric(rate, coins), draws)
    assert left_out < Fraction(1, 25)
    for k in range(4):
        low, high = bounds(law, left_out, k)
        a_low, a_high = exp_minus(rate, 64)
        assert low <= (1 - a_low) * a_high**k
        assert high >= (1 - a_high) * a_low**k


def test_the_law_of_the_laplace_sampler() -> None:
    """Symmetric, and (1 − a)/(1 + a)·a^|k|."""
    law, left_out = law_of(lambda coins: discrete_laplace(Fraction(2), coins), 14)
    a_low, a_high = exp_minus(Fraction(2), 64)
    for k in range(1, 4):
        assert law.get(k) == law.get(-k)
    for k in range(3):
        low, high = bounds(law, left_out, k)
        assert low <= (1 - a_low) / (1 + a_low) * a_high**k
        assert high >= (1 - a_high) / (1 + a_high) * a_low**k


def laplace_statistic(drawn: list[int], rate: float, middle: int = 30) -> float:
    """Chi-square of 61 bins: −29 … 29 and the two tails."""
    a = math.exp(-rate)
    clipped = np.clip(np.array(drawn), -middle, middle) + middle
    seen = np.bincount(clipped, minlength=2 * middle + 1)
    k = np.arange(-middle, middle + 1)
    p = (1 - a) / (1 + a) * a ** np.abs(k)
    p[[0, -1]] = a**middle / (1 + a)
    expected = len(drawn) * p
    assert expected.min() > 10
    assert p.sum() == pytest.approx(1)
    return float(((seen - expected) ** 2 / expected).sum())


@pytest.mark.some(1)
@pytest.mark.parametrize("draws", [SOME_DRAWS, DRAWS])
def test_laplace_draws(draws: int) -> None:
    noise = exact_noise(SeededRng("laplace"))
    assert laplace_statistic(noise.laplace(Fraction(1, 5), draws), 0.2) < LIMIT


@pytest.mark.some(1)
@pytest.mark.parametrize("draws", [SOME_DRAWS, DRAWS])
def test_geometric_draws(draws: int) -> None:
    """61 bins: 0 … 59 and the tail."""
    noise, a = exact_noise(SeededRng("geometric")), math.exp(-1 / 11)
    seen = np.bincount(np.minimum(noise.geometric(Fraction(1, 11), draws), 60), minlength=61)
    expected = draws * np.append((1 - a) * a ** np.arange(60), a**60)
    assert float(((seen - expected) ** 2 / expected).sum()) < LIMIT


@pytest.mark.some(1)
@pytest.mark.parametrize("wrong", [0.185, 0.215, 0.4])
def test_the_statistic_tells_wrong_scales(wrong: float) -> None:
    drawn = exact_noise(SeededRng("laplace")).laplace(Fraction(1, 5), SOME_DRAWS)
    assert laplace_statistic(drawn, wrong, 10 if wrong == 0.4 else 30) > LIMIT


@pytest.mark.slow
def test_the_operating_systems_coins() -> None:
    assert laplace_statistic(exact_noise(SystemRng()).laplace(Fraction(1, 5), DRAWS), 0.2) < LIMIT


@pytest.mark.more
def test_a_second_opinion() -> None:
    """opendp's discrete Laplace, drawn independently: two samples, one law."""
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    domain = opendp.vector_domain(opendp.atom_domain(T=int))
    measurement = opendp.m.make_laplace(domain, opendp.l1_distance(T=int), scale=5.0)
    theirs = measurement([0] * 200_000)
    ours = exact_noise(SeededRng("opinion")).laplace(Fraction(1, 5), 200_000)
    seen = np.array([np.bincount(np.clip(x, -30, 30) + 30, minlength=61) for x in (ours, theirs)])
    pooled = seen.sum(axis=0) / 2
    assert float(((seen - pooled) ** 2 / pooled).sum()) < LIMIT
    assert laplace_statistic(theirs, 0.2, 30 - 5) < LIMIT


def test_coins_are_uniform_and_use_every_bit_once() -> None:
    """All 16-bit strings through a bound of 6: rejection, no bias; and no bit serves two draws."""
    law, left_out = law_of(lambda coins: coins.below(3), 1)
    assert law == dict.fromkeys(range(3), Fraction(1, 3))
    assert left_out == 0
    seen = np.bincount([RngCoins(SeededRng(i)).below(6) for i in range(6000)], minlength=6)
    assert float(((seen - 1000) ** 2 / 1000).sum()) < 40
    coins, bits = RngCoins(SeededRng("bits")), RngCoins(SeededRng("bits"))
    word = bits.below(1 << 64)
    assert [coins.below(16) for _ in range(16)] == [word >> 4 * i & 15 for i in range(16)]


def test_coins_show_nothing_of_themselves() -> None:
    assert repr(RngCoins(SeededRng(0))) == "RngCoins(<secret>)"
    with pytest.raises(ValueError, match="at least 1"):
        RngCoins(SeededRng(0)).below(0)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1)])
def test_a_rate_is_positive(rate: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        geometric(rate, RngCoins(SeededRng(0)))


def test_a_chance_is_decided_at_the_first_digit_that_differs() -> None:
    """1/3 = 0.0101…: a word below decides for, one above against, the word itself asks for another."""
    third = Chance(lambda bits: (Fraction(1, 3), Fraction(1, 3)))
    word = (1 << 64) // 3
    assert third.flip(ScriptedCoins([word - 1]))
    assert not third.flip(ScriptedCoins([word + 1]))
    assert third.flip(ScriptedCoins([word, word - 1]))
    assert not third.flip(ScriptedCoins([word, word, word + 1]))


def test_a_chance_asks_for_better_bounds_until_it_knows() -> None:
    """Bounds that stay apart at 64 bits."""
    asked = []

    def widening(bits: int) -> tuple[Fraction, Fraction]:
        asked.append(bits)
        gap = Fraction(1, 4) if bits < 150 else Fraction(0)
        return Fraction(1, 2) - gap, Fraction(1, 2) + gap

    half = 1 << 63
    assert Chance(widening).flip(ScriptedCoins([half - 1, 5]))
    assert asked == [128, 192]


@given(st.fractions(min_value=0, max_value=400, max_denominator=10**6), st.integers(8, 200))
def test_bounds_of_the_exponential(x: Fraction, bits: int) -> None:
    low, high = exp_minus(x, bits)
    assert 0 <= low <= high
    assert high - low < Fraction(1, 2**bits)
    scale = 1 << (bits + 60)  # e^x by another series, (Σ x^k/k!)^−1
    scaled, term, total, k = round(x * scale), scale, scale, 0
    while term:
        k += 1
        term = term * scaled // scale // k
        total += term
    slack = Fraction(1, 2**bits)
    assert low - slack <= Fraction(scale, total) <= high + slack


def test_noise_gives_as_many_as_asked() -> None:
    noise = ExactNoise(RngCoins(SeededRng(1)))
    assert len(noise.laplace(Fraction(1, 3), 7)) == len(noise.geometric(Fraction(1, 3), 7)) == 7
    assert noise.laplace(Fraction(1), 0) == []
