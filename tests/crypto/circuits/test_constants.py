"""The constants behind noise: certified bounds, thresholds, and the distance that is claimed."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.circuits import constants
from crypto.circuits.constants import geometric_plan, laplace_plan
from crypto.errors import LocalProtocolError
from tests.support.laws import exact_law

rates = st.fractions(min_value=Fraction(1, 1000), max_value=5, max_denominator=1000)


@settings(deadline=None)
@given(st.fractions(min_value=0, max_value=300, max_denominator=10**6), st.integers(8, 200))
def test_bounds_enclose_the_exponential_tightly(x: Fraction, bits: int) -> None:
    low, high = constants.exp_minus(x, bits)
    assert 0 <= low < high <= 1 + Fraction(1, 2**bits)
    assert high - low <= Fraction(1, 2**bits)
    # e^−x from a series that shares nothing with the code: (Σ x^k / k!)^−1.
    scale = 1 << (bits + 60)
    scaled_x, term, total, k = round(x * scale), scale, scale, 0
    while term:
        k += 1
        term = term * scaled_x // scale // k
        total += term
    assert low - Fraction(1, 2**bits) <= Fraction(scale, total) <= high + Fraction(1, 2**bits)


@settings(max_examples=30, deadline=None)
@given(rates, st.integers(1, 5000), st.integers(2, 60))
def test_plans_keep_what_they_promise(rate: Fraction, draws: int, bits: int) -> None:
    distance = Fraction(1, 2**bits)
    for plan in (geometric_plan(rate, draws, distance), laplace_plan(rate, draws, distance)):
        assert 0 < plan.distance <= distance
        a = math.exp(-rate)
        for j, threshold in enumerate(plan.digits):
            p = a ** (2**j) / (1 + a ** (2**j))
            assert threshold / 2**plan.coin_bits == pytest.approx(p, abs=2.0**-plan.coin_bits + 1e-12)
        if plan.zero is not None:
            assert plan.zero / 2**plan.coin_bits == pytest.approx(
                (1 - a) / (1 + a), abs=2.0**-plan.coin_bits + 1e-12
            )


@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 3), Fraction(2)])
@pytest.mark.parametrize("kind", ["geometric", "laplace"])
@pytest.mark.parametrize("draws", [1, 40])
def test_the_distance_is_an_upper_bound_and_not_a_loose_one(rate: Fraction, draws: int, kind: str) -> None:
    """Draws are independent, so their distances at most add up."""
    plan = {"geometric": geometric_plan, "laplace": laplace_plan}[kind](rate, draws, Fraction(1, 2**12))
    law = exact_law(plan, kind)
    assert sum(law.values()) == 1
    a = math.exp(-rate)
    ideal = {k: (a**k * (1 - a) if kind == "geometric" else a ** abs(k) * (1 - a) / (1 + a)) for k in law}
    outside = 1 - math.fsum(ideal.values())
    actual = (math.fsum(abs(float(law[k]) - ideal[k]) for k in law) + outside) / 2
    assert draws * actual <= float(plan.distance) + 1e-12
    assert draws * actual >= float(plan.distance) / 50


def test_distance_and_delta() -> None:
    epsilon, delta = Fraction(1), Fraction(1, 2**40)
    distance = constants.distance_for(delta, epsilon)
    assert float(distance * (1 + Fraction(math.e))) == pytest.approx(float(delta), rel=1e-9)
    assert constants.delta_of(distance, epsilon) <= delta
    assert constants.delta_of(Fraction(1, 2**50), Fraction(100)) >= Fraction(1, 2**50) * Fraction(
        math.exp(99.999)
    )


def test_coins_grow_with_the_number_of_draws() -> None:
    one, many = (geometric_plan(Fraction(1, 10), n, Fraction(1, 2**40)) for n in (1, 1024))
    assert many.coin_bits - one.coin_bits in (10, 11)
    assert one.bits == len(one.digits) * one.coin_bits
    laplace = laplace_plan(Fraction(1, 10), 1, Fraction(1, 2**40))
    assert laplace.bits == (len(laplace.digits) + 1) * laplace.coin_bits + 1


@pytest.mark.parametrize(
    ("rate", "draws", "distance"),
    [
        (Fraction(0), 1, Fraction(1, 2)),
        (Fraction(1), 0, Fraction(1, 2)),
        (Fraction(1), 1, Fraction(0)),
        (Fraction(1), 1, Fraction(1)),
        (0.1, 1, Fraction(1, 2)),
        (Fraction(1), 2.5, Fraction(1, 2)),
        (Fraction(1), 1, 0.5),
    ],
)
def test_bad_parameters_are_refused(rate: object, draws: object, distance: object) -> None:
    for plan in (geometric_plan, laplace_plan):
        with pytest.raises(LocalProtocolError):
            plan(rate, draws, distance)  # type: ignore[arg-type]


def test_a_rate_may_be_an_integer() -> None:
    for plan in (geometric_plan, laplace_plan):
        assert plan(2, 3, Fraction(1, 2**20)) == plan(Fraction(2), 3, Fraction(1, 2**20))
