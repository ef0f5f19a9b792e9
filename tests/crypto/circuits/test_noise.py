"""Noise circuits: exact distributions by going through all coins, and report noisy max against the clear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To, evaluate
from crypto.circuits import noise
from crypto.circuits.constants import NoisePlan, alias_table, exp_minus, geometric_plan, laplace_plan
from crypto.errors import LocalProtocolError
from tests.support.circuits import as_signed
from tests.support.laws import drawn_by, exact_law

COIN_BITS = 5
ONE, TWO, THREE = (7, 25), (17, 9, 4, 2), (9, 8, 5, 4, 3, 2, 1, 0)
FLAT, NEVER = (16, 16), (32, 0)


def tiny(*weights: tuple[int, ...], signed: bool = False) -> NoisePlan:
    """A plan with tables of these weights out of 32."""
    tables = tuple(map(alias_table, weights))
    return NoisePlan(Fraction(1), 1, COIN_BITS, tables, signed, Fraction(1, 2))


def all_coins(bits: int) -> np.ndarray:
    """Every string of that many bits; uint64, shape (2**bits, bits)."""
    return np.arange(1 << bits, dtype=np.uint64)[:, None] >> np.arange(bits, dtype=np.uint64) & np.uint64(1)


def enumerate_law(plan: NoisePlan) -> dict[int, Fraction]:
    """The distribution of the circuit's output over all coins."""
    b = Builder("law")
    (random,) = noise.coins(b, "coins", plan, 1)
    word = (noise.discrete_laplace if plan.signed else noise.geometric)(b, plan, random)
    b.output("noise", To.BOTH, [word])
    values = evaluate(b.build(), 1 << plan.bits, {"coins": all_coins(plan.bits)})["noise"][:, 0]
    signed = [as_signed(int(v), len(word)) if plan.signed else int(v) for v in values]
    return {k: Fraction(n, 1 << plan.bits) for k, n in Counter(signed).items()}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    "weights", [(ONE,), (TWO,), (THREE,), (FLAT, ONE), (NEVER, TWO), (THREE, ONE, FLAT), (ONE, TWO, NEVER)]
)
def test_noise_is_exactly_what_the_tables_say(weights: tuple[tuple[int, ...], ...], signed: bool) -> None:
    plan = tiny(*weights, signed=signed)
    assert enumerate_law(plan) == {k: p for k, p in exact_law(plan).items() if p}


def test_signed_noise_is_flipped_and_not_negated() -> None:
    """Its sign is the highest bit: with digits of 0, as many draws are −1 as have the sign."""
    assert enumerate_law(tiny(NEVER, (20, 12), signed=True)) == {0: Fraction(20, 32), -1: Fraction(12, 32)}


@pytest.mark.parametrize("planned", [geometric_plan, laplace_plan])
def test_a_planned_law_over_all_coins(planned: Callable[[Fraction, int, Fraction], NoisePlan]) -> None:
    """Not hand-made tables: a plan, small enough to go through."""
    plan = planned(Fraction(3, 2), 1, Fraction(1, 8))
    assert plan.bits <= 18
    assert enumerate_law(plan) == {k: p for k, p in exact_law(plan).items() if p}


@pytest.mark.parametrize(("bits", "gates"), [(1, 16), (3, 20), (5, 42)])
def test_what_a_table_costs(bits: int, gates: int) -> None:
    b = Builder("table")
    (random,) = b.input("coins", Held.COINS, 16)
    weights = [2**16 // (2**bits + 1)] * (2**bits - 1)
    table = alias_table([*weights, 2**16 - sum(weights)])
    b.output("drawn", To.BOTH, [noise.drawn(b, table, random)])
    assert b.build().and_gates <= gates == 2**bits - bits - 1 + 16


def noisy_max(n: int, width: int, plan: NoisePlan) -> Circuit:
    b = Builder("noisy max")
    scores = b.input("scores", Held.ADDITIVE_SHARED, width, n)
    valid = [x for (x,) in b.input("valid", Held.XOR_SHARED, 1, n)]
    random = noise.coins(b, "coins", plan, n)
    best = noise.noisy_argmax(b, plan, scores, random, valid=valid)
    b.output("index", To.BOTH, [best.index])
    b.output("valid", To.BOTH, [[best.valid]])
    return b.build()


@pytest.mark.parametrize(("n", "width"), [(1, 3), (5, 3), (4, 9)])
def test_noisy_max_is_the_argmax_of_noisy_scores(n: int, width: int) -> None:
    batch = 300
    plan = geometric_plan(Fraction(1, 4), n, Fraction(1, 2**10))
    rng = np.random.default_rng(n)
    inputs = {
        "scores": rng.integers(0, 1 << width, (batch, n), dtype=np.uint64),
        "valid": rng.integers(0, 2, (batch, n), dtype=np.uint64),
        "coins": rng.integers(0, 2, (batch, n * plan.bits), dtype=np.uint64),
    }
    out = evaluate(noisy_max(n, width, plan), batch, inputs)
    for i in range(batch):
        drawn = [drawn_by(plan, own) for own in inputs["coins"][i].reshape(n, -1).tolist()]
        noisy = inputs["scores"][i].astype(np.int64) + drawn
        ranked = [(noisy[k], -k) for k in range(n) if inputs["valid"][i, k]]
        expected = (1, -max(ranked)[1]) if ranked else (0, 0)
        assert (int(out["valid"][i, 0]), int(out["index"][i, 0])) == expected


def chance_of_first(law: dict[int, Fraction], x: int, y: int) -> Fraction:
    """P(x + G ≥ y + G') for independent G, G' of the law: ties go to the first."""
    return sum((p * q for g, p in law.items() for h, q in law.items() if x + g >= y + h), Fraction(0))


def test_the_law_of_noisy_max_over_all_coins() -> None:
    """Two scores, every coin: the circuit chooses exactly as often as the law of its noise says."""
    plan = tiny(TWO)
    circuit = noisy_max(2, 2, plan)
    coins = all_coins(2 * plan.bits)
    ones = np.ones((len(coins), 2), dtype=np.uint64)
    for scores in [(0, 0), (1, 0), (0, 1), (0, 3), (2, 1)]:
        inputs = {"scores": ones * np.array(scores, dtype=np.uint64), "valid": ones, "coins": coins}
        index = evaluate(circuit, len(coins), inputs)["index"]
        found = Fraction(int((index == 0).sum()), len(coins))
        assert found == chance_of_first(exact_law(plan), *scores)


@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(1)])
def test_noisy_max_is_differentially_private(rate: Fraction) -> None:
    """All pairs of neighbouring scores, exact law: within e^(2·rate) up to the distance that is claimed."""
    plan = geometric_plan(rate, 2, Fraction(1, 2**20))
    law = exact_law(plan)
    bound = 1 / exp_minus(2 * rate, 64)[0]
    chances = {(x, y): chance_of_first(law, x, y) for x in range(4) for y in range(4)}
    ratios = []
    for (x, y), p in chances.items():
        for (z, w), q in chances.items():
            if max(abs(x - z), abs(y - w)) <= 1:
                for mine, other in ((p, q), (1 - p, 1 - q)):
                    assert mine <= bound * other + (1 + bound) * plan.distance
                    ratios.append(mine / other)
    assert max(ratios) > bound / 2  # the bound is nearly met: half the noise would break it
    assert max(ratios) > 1 / exp_minus(rate, 64)[0]


def test_noise_on_counts() -> None:
    plan = tiny(TWO, ONE, signed=True)
    b = Builder("count")
    (count,) = b.input("count", Held.ADDITIVE_SHARED, 16)
    (random,) = noise.coins(b, "coins", plan, 1)
    word = noise.discrete_laplace(b, plan, random)
    b.output("noisy", To.BOTH, [noise.add_noise(b, count, word, 16)])
    b.output("noise", To.BOTH, [word])
    batch = 200
    rng = np.random.default_rng(3)
    inputs = {
        "count": rng.integers(0, 3, (batch, 1), dtype=np.uint64),
        "coins": rng.integers(0, 2, (batch, plan.bits), dtype=np.uint64),
    }
    out = evaluate(b.build(), batch, inputs)
    for count_value, noise_value, noisy in zip(inputs["count"], out["noise"], out["noisy"], strict=True):
        expected = int(count_value[0]) + as_signed(int(noise_value[0]), len(word))
        assert as_signed(int(noisy[0]), 16) == expected
    assert any(as_signed(int(v[0]), 16) < 0 for v in out["noisy"])  # signed counts, never clamped


def test_plans_of_the_wrong_kind_are_refused() -> None:
    b = Builder("bad")
    one_sided, two_sided = (
        geometric_plan(Fraction(1), 1, Fraction(1, 4)),
        laplace_plan(Fraction(1), 1, Fraction(1, 4)),
    )
    with pytest.raises(LocalProtocolError, match="not for geometric"):
        noise.geometric(b, two_sided, [0] * two_sided.bits)
    with pytest.raises(LocalProtocolError, match="not for discrete Laplace"):
        noise.discrete_laplace(b, one_sided, [0] * one_sided.bits)
    with pytest.raises(LocalProtocolError, match="random bits"):
        noise.geometric(b, one_sided, [0] * (one_sided.bits - 1))
