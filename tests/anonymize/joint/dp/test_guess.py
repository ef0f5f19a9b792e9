"""Guessing a secret bit: D or D′, by a rule fixed in advance (semantics §8.6, point 4).

Under ε-DP the number of correct guesses in n independent trials is stochastically below Bin(n, e^ε / (1 + e^ε)),
whatever the rule. The limits are those given there: exceeded with probability below 1e-6 if the claim holds,
and nearly surely if the true ε is the one in brackets. On the output, and on each party's view: with its own
noise subtracted, its own shares, its own coins.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.dp.accounting import Dp
from anonymize.dp.diffgen import noisy_max, release_single
from anonymize.dp.noise import exact_noise
from anonymize.joint.dp import circuits
from anonymize.joint.dp.noise import best_of, noisy_counts, noisy_scores, tag_bits
from anonymize.joint.engine import Engine
from anonymize.tds import Observer
from crypto.circuits.constants import geometric_plan, laplace_plan
from crypto.local import run_local
from crypto.rounds import Rounds
from tests.support.dp_runs import request_for, run_horizontal, run_vertical, split_columns
from tests.support.dp_tables import categorical, schema_of, table_of
from tests.support.guessing import LIMITS, OwnCoins, bits_of, correct, noise_of_coins
from tests.support.rng import SeededRng
from tests.support.sessions import two_party_sessions
from tests.support.thesis import idealize, published

COLUMN = categorical("q", {"*": ["a", "b"]})
SCHEMA = schema_of(COLUMN)


# ---- outputs


@pytest.mark.parametrize(("epsilon", "n", "limit"), LIMITS)
def test_noise_on_counts(epsilon: Fraction, n: int, limit: int) -> None:
    """A cell with 3 records or 4; guess 4 if the noisy count is 4 or more: this rule meets the bound."""
    secrets = bits_of(n, epsilon)
    noisy = 3 + secrets + np.array(exact_noise(SeededRng((n, "counts"))).laplace(epsilon, n))
    found = correct(noisy >= 4, secrets)
    assert found < limit
    assert found > limit - 8 * np.sqrt(n / 4) - 60, "the rule should come close to the bound"


@pytest.mark.parametrize(("true", "index"), [(2, 0), (Fraction(5, 4), 1), (1, 2), (Fraction(1, 5), 3)])
def test_a_false_claim_is_caught(true: Fraction, index: int) -> None:
    """The same trial with the ε that the notes say it catches."""
    _, n, limit = LIMITS[index]
    secrets = bits_of(n, true)
    noisy = 3 + secrets + np.array(exact_noise(SeededRng((n, "false"))).laplace(Fraction(true), n))
    assert correct(noisy >= 4, secrets) >= limit


@pytest.mark.some(1)
@pytest.mark.parametrize(("epsilon", "n", "limit"), LIMITS[:3])
def test_a_whole_release(epsilon: Fraction, n: int, limit: int) -> None:
    """DiffGen on tables that differ in one record of class N at ``a``; guess by the noisy count of its cell."""
    base = [(0, 0), (0, 0), (1, 1), (0, 1)]
    tables = [table_of(SCHEMA, base), table_of(SCHEMA, [*base, (0, 1)])]
    requirement = Dp(epsilon, 1, max_rows=10)
    secrets = bits_of(n, ("release", epsilon))
    noise = exact_noise(SeededRng((n, "release")))
    counts = np.array(
        [release_single(tables[secret], requirement, noise).table.counts[1] for secret in secrets]
    )
    assert correct(counts >= 2, secrets) < limit


@pytest.mark.parametrize(("epsilon", "n", "limit"), LIMITS[:3])
def test_a_choice(epsilon: Fraction, n: int, limit: int) -> None:
    """Scores (0, 0) or (0, 1), monotone: guess by who wins."""
    secrets = bits_of(n, ("choice", epsilon))
    noise = exact_noise(SeededRng((n, "choice")))
    wins = np.array([noisy_max((1, int(secret)), epsilon, noise) for secret in secrets])
    assert correct(wins == 1, secrets) < limit


# ---- views of the parties of a joint run


def both(protocol: Any, seed: object) -> dict[str, Any]:
    garbler, evaluator = two_party_sessions(seed)
    ends = {"g": (Engine(garbler, Observer()), 0), "e": (Engine(evaluator, Observer()), 1)}
    return run_local({name: protocol(*end) for name, end in ends.items()}, record=False)[0]


@pytest.mark.some(2)
@pytest.mark.parametrize(("epsilon", "n", "limit"), [LIMITS[0], LIMITS[1], LIMITS[3], LIMITS[2]])
def test_joint_noise_in_each_partys_view(
    epsilon: Fraction, n: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n counts of 3 or 4 opened with joint noise. What a party could do: subtract the noise that its own coins
    alone would make, or add up its own share with what is opened.
    """
    coins = OwnCoins(monkeypatch)
    secrets = bits_of(n, ("joint", epsilon))
    plan = laplace_plan(epsilon, n, Fraction(1, 2**64))
    shares = {
        0: np.frombuffer(SeededRng("mask").bytes(8 * n), dtype=np.uint64) & np.uint64(7),
    }
    shares[1] = (3 + secrets.astype(np.uint64) - shares[0]) & np.uint64(7)

    def protocol(engine: Engine, side: int) -> Rounds[np.ndarray]:
        return (yield from noisy_counts(engine, shares[side], 3, plan))

    opened = both(protocol, ("joint", n))["g"]
    assert correct(opened >= 4, secrets) < limit
    for side, name in enumerate("ge"):
        own = noise_of_coins(np.concatenate(coins.drawn[name], axis=1), plan)
        assert len(own) == n
        assert correct(opened - own >= 4, secrets) < limit
        assert correct(((opened - shares[side].astype(np.int64)) & 7) >= 4, secrets) < limit


def test_the_noise_of_all_coins_is_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guess above, from all of the coins instead of half of them, is exactly the added noise."""
    coins = OwnCoins(monkeypatch)
    plan = laplace_plan(Fraction(1, 2), 500, Fraction(1, 2**64))

    def protocol(engine: Engine, side: int) -> Rounds[np.ndarray]:
        return (yield from noisy_counts(engine, np.full(500, side * 3, dtype=np.uint64), 3, plan))

    opened = both(protocol, "all")["e"]
    together = np.concatenate(coins.drawn["g"], axis=1) ^ np.concatenate(coins.drawn["e"], axis=1)
    assert (opened - 3).tolist() == noise_of_coins(together, plan).tolist()


@pytest.mark.parametrize(("epsilon", "n", "limit"), LIMITS[:3])
def test_joint_choices(epsilon: Fraction, n: int, limit: int) -> None:
    """n choices between scores (1, 0) or (1, 1) inside circuits."""
    secrets = bits_of(n, ("choices", epsilon))
    plan = geometric_plan(epsilon, 2 * n, Fraction(1, 2**64))
    scores = np.stack([np.ones(n), secrets], axis=1).astype(np.uint64).reshape(-1)

    def protocol(engine: Engine, side: int) -> Rounds[np.ndarray]:
        tags = np.tile(np.arange(2), n)
        noisy = yield from noisy_scores(engine, scores * np.uint64(side), 1, plan, tags, tag_bits(2))
        best = yield from best_of(engine, noisy, [2] * n)
        outputs = yield from engine.run(circuits.reveal_circuit((("tag", 1),)), n, {"tag": best["tag"]})
        return np.asarray(outputs["tag"])[:, 0]

    assert correct(both(protocol, "choices")["g"] == 1, secrets) < limit


class OwnNoise:
    """Keeps the noise that each party draws alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
        self.drawn: list[np.ndarray] = []
        monkeypatch.setattr(f"anonymize.joint.{module}.exact_noise", self._noise)

    def _noise(self, rng: Any) -> Any:
        noise = exact_noise(rng)
        original = noise.laplace

        def laplace(rate: Fraction, count: int) -> list[int]:
            values = original(rate, count)
            self.drawn.append(np.array(values))
            return values

        noise.laplace = laplace  # type: ignore[method-assign]
        return noise


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_each_partys_own_noise_subtracted(partition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`noise: each`, a whole run with one value for each trial: a count of 1 or 2, what is opened less one's own
    noise. The noise of the counts has 3/4 of the ε that the release is claimed at.
    """
    own = OwnNoise(monkeypatch, f"dp.{partition}")
    epsilon, n, limit = LIMITS[2]
    secrets = bits_of(n, partition)
    values = categorical("q", {"*": [f"v{i}" for i in range(n)]})
    records = [(i, 0) for i, secret in enumerate(secrets) for _ in range(1 + int(secret))]
    whole = table_of(schema_of(values), records)
    request = request_for(
        whole.schema, epsilon=epsilon, specializations=1, noise="each", max_rows=10_000, max_cells=10_000
    )
    if partition == "vertical":
        results, _ = run_vertical(split_columns(whole, [0]), request)
    else:
        results, _ = run_horizontal([whole, table_of(whole.schema, [])], request)
    opened = results["p0"].released.table.counts
    assert [len(drawn) for drawn in own.drawn] == [2 * n, 2 * n]
    # Twice the noise stands between the public and a record, so it guesses right half as often beyond a half.
    for view, better in ((opened, 0), *((opened - drawn, 30) for drawn in own.drawn)):
        found = correct(view[::2] >= 2, secrets)
        assert found < limit
        assert found > n / 2 + better, "the rule should guess better than a coin"


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_each_partys_own_noise_subtracted_from_a_published_release(
    partition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`engine: thesis`, 24 whole runs over ideal twins with 40 trials each, as its ranges are small; ε is such
    that the counts have exactly the one of the limit.
    """
    own = OwnNoise(monkeypatch, f"dp.thesis.{partition}")
    idealize(monkeypatch)
    epsilon, n, limit = LIMITS[2]
    trials, runs = 40, 24
    secrets = bits_of(trials * runs, ("published", partition))
    values = categorical("q", {"*": [f"v{i}" for i in range(trials)]})
    views: dict[str, list[np.ndarray]] = {"opened": [], "less one's": [], "less the other's": []}
    for run, bits in enumerate(secrets.reshape(runs, trials)):
        records = [(i, 0) for i, bit in enumerate(bits) for _ in range(1 + int(bit))]
        table = table_of(schema_of(values), records)
        settings = {"epsilon": epsilon * 4 / 3, "specializations": 1, "max_rows": 2 * trials}
        results, _ = published(partition, table, (partition, run), **settings)
        released = results["p0"].released
        assert released.accountant.charges[-1].epsilon == epsilon
        assert [len(drawn) for drawn in own.drawn] == [2 * trials, 2 * trials]
        for view, noise in zip(views.values(), (0, *own.drawn), strict=True):
            view.append((released.table.counts - noise)[::2])
        own.drawn.clear()
    for view in views.values():
        found = correct(np.concatenate(view)[:n] >= 2, secrets[:n])
        assert found < limit
        assert found > n / 2 + 30, "the rule should guess better than a coin"
