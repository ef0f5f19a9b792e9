"""Noise inside circuits: exact laws over all coins, the distance that is claimed, and the run's δ."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from gmpy2 import mpq

from anonymize.joint.dp import circuits
from anonymize.joint.dp.noise import DELTA, Plans, best_of, noisy_counts, noisy_scores, revealed, tag_bits
from anonymize.joint.engine import Engine
from anonymize.tds import Observer
from crypto.circuit import Circuit, Held, evaluate
from crypto.circuits.constants import NoisePlan, exp_minus, geometric_plan, laplace_plan
from crypto.errors import LocalProtocolError
from crypto.local import run_local
from crypto.rounds import Rounds
from tests.support.circuits import as_signed
from tests.support.laws import exact_law, outcomes
from tests.support.noisy_max import noisy_max_law
from tests.support.sessions import two_party_sessions

Law = dict[int, Fraction]


def run_clear(circuit: Circuit, batch: int, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return evaluate(circuit, batch, {n: v.astype(np.uint64).reshape(batch, -1) for n, v in inputs.items()})


@cache
def law_of_noisy_score(score: int, plan: NoisePlan) -> Law:
    """Return the law of a score after the program's circuit, over all coins."""
    circuit = circuits.noisy_score_circuit(Held.XOR_SHARED, 4, plan, 3)
    cases = outcomes(plan)
    n = len(cases)
    inputs = {
        "score": np.full(n, score),
        "tag": np.full(n, 5),
        "coins": np.array([coins for coins, _ in cases]),
    }
    out = run_clear(circuit, n, inputs)
    assert (out["tag"] == 5).all()
    law: Law = {}
    for value, (_, p) in zip(out["noisy"][:, 0].tolist(), cases, strict=True):
        law[value] = law.get(value, Fraction(0)) + p
    return law


@pytest.mark.parametrize("score", [0, 3, 15])
def test_the_law_of_a_noisy_score(score: int) -> None:
    plan = geometric_plan(Fraction(1, 2), 2, Fraction(1, 2**10))
    expected = {score + k: p for k, p in exact_law(plan).items() if p}
    assert law_of_noisy_score(score, plan) == expected


@pytest.mark.parametrize("count", [0, 5, 15])
def test_the_law_of_a_noisy_count(count: int) -> None:
    """Two's complement, never clamped, and within the plan's distance of the discrete Laplace law."""
    plan = laplace_plan(Fraction(1, 2), 1, Fraction(1, 2**10))
    circuit = circuits.noisy_count_circuit(4, plan)
    cases = outcomes(plan)
    inputs = {"count": np.full(len(cases), count), "coins": np.array([coins for coins, _ in cases])}
    out = run_clear(circuit, len(cases), inputs)["noisy"][:, 0]
    law: Law = {}
    for value, (_, p) in zip(out.tolist(), cases, strict=True):
        signed = as_signed(int(value), circuits.noisy_count_width(4, plan))
        law[signed - count] = law.get(signed - count, Fraction(0)) + p
    assert law == {k: p for k, p in exact_law(plan).items() if p}
    assert min(law) < -count
    assert distance_from_laplace(law, Fraction(1, 2)) <= plan.distance


def distance_from_laplace(law: Law, rate: Fraction) -> Fraction:
    """A lower bound on the total variation distance, exact up to 2^−60 a term."""
    a_low, a_high = exp_minus(rate, 80)
    ideal = {k: (1 - a_high) / (1 + a_high) * a_low ** abs(k) for k in range(-60, 61)}
    return sum((max(Fraction(0), p - law.get(k, Fraction(0))) for k, p in ideal.items()), Fraction(0))


def law_of_choice(scores: Sequence[int], plan: NoisePlan) -> list[Fraction]:
    """Return the chances of two or three candidates to win, from the exact laws of their noisy scores; ties
    to the first.
    """
    laws = [{v: mpq(p) for v, p in law_of_noisy_score(score, plan).items()} for score in scores]
    wins = [mpq(0)] * len(scores)
    for values in product(*laws):
        p = mpq(1)
        for law, value in zip(laws, values, strict=True):
            p *= law[value]
        wins[values.index(max(values))] += p
    return [Fraction(int(p.numerator), int(p.denominator)) for p in wins]


@pytest.mark.some(1)
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(3, 2)])
def test_choices_are_differentially_private_up_to_the_claimed_delta(rate: Fraction) -> None:
    """All pairs of neighbouring scores, exact: P ≤ e^ε·Q + (1 + e^ε)·distance, for monotone and other moves;
    and within the distance of the choice with ideal noise.
    """
    plan = geometric_plan(rate, 3, Fraction(1, 2**9))
    laws = {scores: law_of_choice(scores, plan) for scores in product(range(3), repeat=3)}
    for factor, moves in ((1, product((0, 1), repeat=3)), (2, product((-1, 0, 1), repeat=3))):
        bound = 1 / exp_minus(factor * rate, 80)[0]
        for move in moves:
            for scores, law in laws.items():
                moved = laws.get(tuple(s + m for s, m in zip(scores, move, strict=True)))
                for p, q in zip(law, moved or law, strict=True):
                    assert p <= bound * q + (1 + bound) * plan.distance
                    assert q <= bound * p + (1 + bound) * plan.distance


def test_choices_are_close_to_the_ideal_ones() -> None:
    """Within the plan's distance of the law used in the proofs, at a rate whose a is bounded to 2^−60."""
    rate = Fraction(1)
    plan = geometric_plan(rate, 3, Fraction(1, 2**9))
    low, high = exp_minus(rate, 60)
    for scores in [(0, 0, 0), (2, 0, 1), (0, 1, 2)]:
        law = law_of_choice(scores, plan)
        for a in (low, high):
            ideal = noisy_max_law(scores, a)
            apart = sum((abs(p - q) for p, q in zip(law, ideal, strict=True)), Fraction(0)) / 2
            assert apart <= plan.distance + Fraction(1, 2**40)


# ---- the same through a session


def run_both(protocol: object) -> dict[str, object]:
    """Run a protocol of one engine at both ends of a real session."""
    garbler, evaluator = two_party_sessions("noise")
    return run_local(
        {
            "g": protocol(Engine(garbler, Observer()), 0),  # type: ignore[operator]
            "e": protocol(Engine(evaluator, Observer()), 1),  # type: ignore[operator]
        },
        record=False,
    )[0]


def choices(scores: Sequence[int], plan: NoisePlan, groups: int) -> np.ndarray:
    """Return the winner in each of many independent groups, in one run of the program's own steps."""
    k = len(scores)

    def protocol(engine: Engine, side: int) -> Rounds[np.ndarray]:
        own = np.tile(np.array(scores, dtype=np.uint64), groups) * np.uint64(1 - side)
        tags = np.tile(np.arange(k), groups)
        noisy = yield from noisy_scores(engine, own, 4, plan, tags, tag_bits(k))
        best = yield from best_of(engine, noisy, [k] * groups)
        circuit = circuits.reveal_circuit((("tag", tag_bits(k)),))
        outputs = yield from engine.run(circuit, groups, {"tag": best["tag"]})
        return np.asarray(outputs["tag"])[:, 0]

    found = run_both(protocol)
    assert (found["g"] == found["e"]).all()  # type: ignore[attr-defined]
    return np.asarray(found["g"])


@pytest.mark.some(2)
@pytest.mark.parametrize("scores", [(3, 3), (2, 3, 1), (0, 0, 0, 1)])
def test_how_often_each_candidate_wins_in_a_garbled_run(scores: tuple[int, ...]) -> None:
    """4,000 choices against the exact law of ideal noise."""
    rate, groups = Fraction(1, 2), 4000
    plan = geometric_plan(rate, 1 << 14, Fraction(1, 2**50))
    seen = np.bincount(choices(scores, plan, groups).astype(np.int64), minlength=len(scores))
    expected = np.array([float(p) * groups for p in noisy_max_law(scores, exp_minus(rate, 60)[0])])
    assert float(((seen - expected) ** 2 / expected).sum()) < 30  # at most 3 degrees of freedom, p < 1e-5


def test_noisy_counts_in_a_garbled_run() -> None:
    """20,000 counts of 7, shared: chi-square over 61 bins, and both sides get the same."""
    rate, n, count = Fraction(1, 5), 20_000, 7
    plan = laplace_plan(rate, n, Fraction(1, 2**50))

    def protocol(engine: Engine, side: int) -> Rounds[np.ndarray]:
        mask = np.random.default_rng(5).integers(0, 16, n, dtype=np.uint64)
        shares = (np.uint64(count) - mask if side else mask) & np.uint64(15)
        return (yield from noisy_counts(engine, shares, 4, plan))

    found = run_both(protocol)
    assert (found["g"] == found["e"]).all()  # type: ignore[attr-defined]
    noise = np.asarray(found["g"]) - count
    a = float(exp_minus(rate, 60)[0])
    k = np.arange(-15, 16)
    p = (1 - a) / (1 + a) * a ** np.abs(k)
    p[[0, -1]] = a**15 / (1 + a)
    seen = np.bincount(np.clip(noise, -15, 15) + 15, minlength=31)
    assert float(((seen - n * p) ** 2 / (n * p)).sum()) < 82  # 30 degrees of freedom, p < 1e-6
    assert noise.min() < -count


def test_opening_one_entry() -> None:
    plan = geometric_plan(Fraction(3), 2, Fraction(1, 2**30))

    def protocol(engine: Engine, side: int) -> Rounds[dict[str, int]]:
        own = np.array([0, 15], dtype=np.uint64) * np.uint64(side)
        noisy = yield from noisy_scores(engine, own, 4, plan, np.array([6, 5]), 3)
        best = yield from best_of(engine, noisy, [2])
        return (yield from revealed(engine, {"tag": best["tag"]}))

    assert run_both(protocol) == {"g": {"tag": 5}, "e": {"tag": 5}}


# ---- the account of δ


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10), Fraction(40)])
def test_a_run_keeps_its_delta_whatever_it_draws(epsilon: Fraction) -> None:
    """Plans of every size, as many as the run was said to have: δ ≤ 2^−40; coins of 64 bits and more."""
    plans = Plans(epsilon, 22)
    distances = []
    for i in range(21):
        plan = plans.geometric(epsilon / 52, 7**i % 5000 + 1)
        distances.append(plan.distance)
        assert plan.coin_bits >= 64 + (plan.width - 1).bit_length()
    distances.append(plans.laplace(epsilon / 2, 100_000).distance)
    assert plans.distance == sum(distances)
    assert 0 < plans.delta <= DELTA
    assert plans.delta >= plans.distance * 2


def test_more_plans_than_announced_are_our_own_bug() -> None:
    plans = Plans(Fraction(1), 1)
    plans.distance = Fraction(1, 2**64)
    with pytest.raises(LocalProtocolError, match="more plans"):
        plans.geometric(Fraction(1, 3), 4)


def test_rates_that_are_no_fractions_are_refused() -> None:
    with pytest.raises(LocalProtocolError):
        Plans(Fraction(1), 1).geometric(0.5, 4)  # type: ignore[arg-type]
