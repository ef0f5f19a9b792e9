"""Errors of noisy counts: of counts with the noise of two parties, and of sums, against sums term by term."""

from __future__ import annotations

import math

import pytest

from jobs.dp.report import half_width, half_width_of_sum, half_width_of_two, outside_any


def outside_of_two(rate: float, width: int) -> float:
    """Return the chance that the sum of two noises is beyond a width, as the convolution of two noises."""
    far = math.ceil(40 / rate)
    each = (1 - math.exp(-rate)) / (1 + math.exp(-rate))
    noise = {k: each * math.exp(-rate * abs(k)) for k in range(-far, far + 1)}
    within = sum(noise[a] * noise[s - a] for s in range(-width, width + 1) for a in noise if s - a in noise)
    return 1 - within


@pytest.mark.parametrize("rate", [0.3, 0.9, 2.0, 8.0])
def test_the_least_width_of_two_noises(rate: float) -> None:
    width = half_width_of_two(rate)
    assert outside_of_two(rate, width) <= 0.05 + 1e-9
    assert width == 0 or outside_of_two(rate, width - 1) > 0.05 - 1e-9
    assert width >= half_width(rate)


def test_weak_noise_and_strong_noise_have_widths() -> None:
    """Of two Laplace variables with scale b the sum has 95 of 100 draws within 4.11 b; ε may be tiny or large."""
    assert half_width_of_two(1e-6) == pytest.approx(4.113e6, rel=1e-3)
    assert half_width_of_two(700) == 0


def test_the_width_of_a_sum_grows_with_the_root() -> None:
    assert half_width_of_sum(0.5, 400) == pytest.approx(20 * half_width_of_sum(0.5, 1), rel=0.1)
    assert half_width_of_sum(1.0, 100) == math.ceil(19.6 * math.sqrt(2 * math.exp(-1)) / (1 - math.exp(-1)))


@pytest.mark.parametrize("rate", [0.3, 0.9, 2.0])
@pytest.mark.parametrize("n_counts", [1, 20, 13_122])
def test_the_least_width_of_all_counts_at_once(rate: float, n_counts: int) -> None:
    """The chance that no count is farther off, from the distributions term by term, is 95 % or more."""
    chance = outside_any(n_counts)
    one = half_width(rate, chance)

    def outside(width: int) -> float:
        each = (1 - math.exp(-rate)) / (1 + math.exp(-rate))
        return 2 * math.fsum(each * math.exp(-rate * k) for k in range(width + 1, width + 1000))

    assert (1 - outside(one)) ** n_counts >= 0.95 - 1e-9
    assert one == 0 or (1 - outside(one - 1)) ** n_counts < 0.95
    assert one >= half_width(rate)
    assert half_width_of_two(rate, chance) >= one
