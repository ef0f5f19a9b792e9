"""Integer weights: exact floors, degrees from a stated error, the privacy of choices by them, refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import SchemaError
from anonymize.joint.dp.thesis.weights import (
    PRECISION,
    Weights,
    _checked,
    draw_by_weight,
    exponential_weights,
    series_weights,
)
from crypto.circuits.constants import exp_minus
from crypto.errors import LocalProtocolError
from tests.support.coins import law_of
from tests.support.examples import examples

EPSILONS = [Fraction(1, 52), Fraction(1, 10), Fraction(1)]


def e_to(x: Fraction) -> tuple[Fraction, Fraction]:
    low, high = exp_minus(x, 400)
    return 1 / high, 1 / low


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_weights_are_floors_of_the_scaled_exponential(epsilon: Fraction) -> None:
    most = 30
    values = exponential_weights(epsilon, most).values
    scale = 1 << PRECISION
    assert values[0] == scale
    rate = epsilon / 2 - Fraction(1, scale // 2) - Fraction(1, (scale // 2) ** 2)
    for u, weight in enumerate(values):
        low, high = e_to(rate * u)
        assert weight <= scale * high
        assert weight + 1 > scale * low


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("most", [1, 7, 40])
def test_the_series_is_the_exponential_up_to_its_stated_error(epsilon: Fraction, most: int) -> None:
    series, exact = series_weights(epsilon, most), exponential_weights(epsilon, most)
    assert len(series.weights.values) == most + 1
    for found, weight in zip(series.weights.values, exact.values, strict=True):
        assert abs(found - weight) <= 2 + weight / 2**PRECISION
    assert series.degree == 1 or rest_of_series(series.degree - 1, epsilon / 2 * most) > 2.0**-23


def rest_of_series(degree: int, x: Fraction) -> float:
    """The part of e^x that the terms beyond the degree make up."""
    return sum(math.exp(k * math.log(x) - math.lgamma(k + 1) - x) for k in range(degree + 1, degree + 200))


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_shifting_a_polynomial(a: int, z: int) -> None:
    series = series_weights(Fraction(1, 5), 20)
    value = sum(c * (a + z) ** i for i, c in enumerate(series.coefficients))
    assert sum(c * z**i for i, c in enumerate(series.shifted(a))) == value


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_choices_by_weight_are_differentially_private_exactly(epsilon: Fraction) -> None:
    """All pairs of neighbouring scores of three candidates; probabilities are fractions of integers."""
    bound = e_to(epsilon)[0]
    for weights in (exponential_weights(epsilon, 4), series_weights(epsilon, 4).weights):
        laws = {u: law(weights, u) for u in product(range(4), repeat=3)}
        worst = Fraction(0)
        for u, moves in product(laws, product((-1, 0, 1), repeat=3)):
            moved = tuple(x + m for x, m in zip(u, moves, strict=True))
            if moved in laws:
                worst = max(worst, *(p / q for p, q in zip(laws[u], laws[moved], strict=True)))
        assert worst <= bound
        assert worst > 1 + (bound - 1) / 2


def law(weights: Weights, scores: tuple[int, ...]) -> list[Fraction]:
    chosen = [weights.values[u] for u in scores]
    return [Fraction(w, sum(chosen)) for w in chosen]


@pytest.mark.parametrize("weights", [(3, 1, 2), (0, 5, 0, 1), (1,), (0, 0, 4)])
def test_the_law_of_a_draw_alone(weights: tuple[int, ...]) -> None:
    """Over all values of R: exactly weight / sum. A weight of 0 never wins (semantics §8.2: R < L, not R ≤ L)."""
    found, left_out = law_of(lambda coins: draw_by_weight(weights, coins), 1)
    assert left_out == 0
    assert found == {i: Fraction(w, sum(weights)) for i, w in enumerate(weights) if w}


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(SchemaError, match=r"scores up to 5000 .* more than 64 bits"):
        exponential_weights(Fraction(1, 10), 5000)
    with pytest.raises(SchemaError, match="too small for weights of 20 bits"):
        series_weights(Fraction(1, 10**6), 5)
    weights = exponential_weights(Fraction(1, 10), 500)
    weights.check_sum(100)
    with pytest.raises(
        SchemaError, match="weights of 300 candidates with scores up to 500 need sums of 65 bits"
    ):
        weights.check_sum(300)


@settings(max_examples=examples(20))
@given(st.fractions(min_value=Fraction(1, 100), max_value=2, max_denominator=100), st.integers(1, 25))
def test_every_range_that_is_accepted_is_private(epsilon: Fraction, most: int) -> None:
    bound = e_to(epsilon)[0]
    for weights in (exponential_weights(epsilon, most), series_weights(epsilon, most).weights):
        steps = zip(weights.values, weights.values[1:], strict=False)
        assert all(low <= high and Fraction(high, low) ** 2 <= bound for low, high in steps)
        assert weights.bits == max(weights.values).bit_length()


@pytest.mark.parametrize("values", [(4, 3), (1, 2), (100, 106)])
def test_weights_that_are_not_private_are_our_own_bug(values: tuple[int, ...]) -> None:
    """At ε′ = 1/10 a step is a factor of e^0.05 = 1.0513 at most, upwards. It is no assert: those can be off."""
    _checked((100, 105), Fraction(1, 10))
    with pytest.raises(LocalProtocolError, match="not ε′-DP"):
        _checked(values, Fraction(1, 10))
