"""The constants behind noise: certified bounds, tables, and the distance that is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.circuits import constants
from crypto.circuits.constants import NoisePlan, alias_table, exp_minus, geometric_plan, laplace_plan
from crypto.errors import LocalProtocolError
from tests.support.examples import examples
from tests.support.laws import exact_law, law_of_table

Planned = Callable[[Fraction, int, Fraction], NoisePlan]

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


@settings(max_examples=examples(30), deadline=None)
@given(rates, st.integers(1, 5000), st.integers(2, 60))
def test_plans_keep_what_they_promise(rate: Fraction, draws: int, bits: int) -> None:
    distance = Fraction(1, 2**bits)
    for plan in (geometric_plan(rate, draws, distance), laplace_plan(rate, draws, distance)):
        assert 0 < plan.distance <= distance
        exponents = [*range(plan.width - plan.signed), *[0] * plan.signed]
        ones = iter([1 / (1 + math.exp(rate * 2**j)) if rate * 2**j < 500 else 0.0 for j in exponents])
        for table in plan.tables:
            chances = [next(ones) for _ in range(table.bits)]
            for value, p in law_of_table(table, plan.coin_bits).items():
                product = math.prod(q if value >> j & 1 else 1 - q for j, q in enumerate(chances))
                assert float(p) == pytest.approx(product, abs=2.0**-plan.coin_bits + 1e-12)
        assert next(ones, None) is None


@given(st.integers(0, 4), st.integers(0, 12), st.data())
def test_a_table_has_exactly_the_law_that_is_asked_for(bits: int, more: int, data: st.DataObject) -> None:
    """Any weights with that sum, those of no column or of all included."""
    total = 1 << bits + more
    cuts = sorted(data.draw(st.lists(st.integers(0, total), min_size=2**bits - 1, max_size=2**bits - 1)))
    weights = [high - low for low, high in pairwise([0, *cuts, total])]
    table = alias_table(weights)
    assert table.bits == bits
    assert all(0 <= stays < 1 << more for stays in table.stays)
    law = law_of_table(table, bits + more)
    assert [law[value] for value in range(2**bits)] == [Fraction(weight, total) for weight in weights]


def apart(plan: NoisePlan) -> Fraction:
    """The total variation distance of one draw from the ideal law, exact up to 2**−140."""
    places = 200
    one, low = 1 << places, math.floor(exp_minus(plan.rate, places)[0] * 2**places)
    powers = [one]
    while len(powers) <= 1 << plan.width:
        powers.append(powers[-1] * low >> places)
    scale = (one - low) * one // (one + low) if plan.signed else one - low
    law = {k: p * one for k, p in exact_law(plan).items()}
    assert sum(law.values()) == one
    ideal = {k: powers[abs(k)] * scale >> places for k in law}
    outside = one - sum(ideal.values())
    return (sum(abs(law[k] - p) for k, p in ideal.items()) + outside) / (2 * one)


@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 3), Fraction(2)])
@pytest.mark.parametrize("planned", [geometric_plan, laplace_plan])
@pytest.mark.parametrize("draws", [1, 40])
def test_the_distance_is_an_upper_bound_and_a_tight_one(rate: Fraction, draws: int, planned: Planned) -> None:
    """Draws are independent, so their distances at most add up."""
    plan = planned(rate, draws, Fraction(1, 2**12))
    assert plan.distance / 2 <= draws * apart(plan) <= plan.distance


@pytest.mark.parametrize(
    ("planned", "rate", "draws"),
    [
        (laplace_plan, Fraction(1, 2), 4096),  # counts of DiffGen, ε = 1
        (laplace_plan, Fraction(7, 140), 1024),  # of synthetic tables, ε = 1
        (geometric_plan, Fraction(1, 52), 128),  # scores of DiffGen, ε = 1
    ],
)
def test_the_law_of_a_plan_that_runs_have(planned: Planned, rate: Fraction, draws: int) -> None:
    """All values with their exact probabilities: as close to ideal as is claimed, and no closer."""
    distance = Fraction(1, 22 * 2**64)
    plan = planned(rate, draws, distance)
    assert plan.distance / 2 <= draws * apart(plan) <= plan.distance <= distance < 20 * plan.distance


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
    assert one.bits == len(one.tables) * one.coin_bits
    laplace = laplace_plan(Fraction(1, 10), 1, Fraction(1, 2**40))
    assert laplace.width == one.width + 1  # the sign


@pytest.mark.parametrize(
    ("digits", "sizes"), [(1, (1,)), (5, (5,)), (6, (3, 3)), (11, (3, 4, 4)), (15, (5, 5, 5))]
)
def test_tables_are_few_and_small(digits: int, sizes: tuple[int, ...]) -> None:
    plan = geometric_plan(Fraction(20, 2**digits), 1, Fraction(1, 2**20))
    assert tuple(table.bits for table in plan.tables) == sizes


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
