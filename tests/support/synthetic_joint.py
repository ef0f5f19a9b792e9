"""Joint choices and counts with coins that a test knows, and what they come to by the definition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from anonymize.joint.engine import Engine
from anonymize.joint.synthetic.choice import Contest, chosen_forest
from anonymize.synthetic.marginals import Axis, Marginal
from anonymize.tds import Observer
from crypto.circuits.constants import NoisePlan
from crypto.local import Transcript, run_local
from crypto.two_party import EvaluatorSession, GarblerSession
from tests.support.laws import coins_for
from tests.support.sessions import two_party_sessions


def pairs_between(n_bins: Sequence[int], n_classes: int) -> tuple[Marginal, ...]:
    """Every two of some columns with so many bins."""
    axes = [Axis(i, tuple(range(n))) for i, n in enumerate(n_bins)]
    return tuple(Marginal(two, n_classes) for two in combinations(axes, 2))


def kruskal(pairs: Sequence[Marginal], noisy: Sequence[int], n_edges: int) -> tuple[int, ...]:
    """By the definition: best first, ties to the first, pairs that close a cycle are skipped."""
    trees = {frozenset([column]) for pair in pairs for column in pair.columns}
    chosen: list[int] = []
    for number in sorted(range(len(pairs)), key=lambda i: (-noisy[i], i)):
        met = {tree for tree in trees if tree & set(pairs[number].columns)}
        if len(met) == 2 and len(chosen) < n_edges:
            chosen.append(number)
            trees = (trees - met) | {frozenset().union(*met)}
    return tuple(chosen)


def script_digits(monkeypatch: pytest.MonkeyPatch, plan: NoisePlan, drawn: Sequence[int]) -> None:
    """The next draws of a plan for geometric noise are these."""
    digits = [[value >> j & 1 for j in range(len(plan.digits))] for value in drawn]
    coins = np.array([coins_for(plan, each) for each in digits], dtype=np.uint8).T

    def scripted(self: object, bits: int, n: int) -> Any:
        assert coins.shape == (bits, n)
        return coins

    zeros = lambda self, bits, n: np.zeros((bits, n), dtype=np.uint8)  # noqa: E731
    monkeypatch.setattr(GarblerSession, "_coins", scripted)
    monkeypatch.setattr(EvaluatorSession, "_coins", zeros)


def shares_of(contest: Contest, counts: Sequence[Any], seed: int = 0) -> list[list[Any]]:
    """Both sides' shares of counts, modulo 2**64."""
    rng = np.random.default_rng(seed)
    masks = [rng.integers(0, 2**64, c.shape, dtype=np.uint64) for c in counts]
    return [masks, [c.astype(np.uint64) - mask for c, mask in zip(counts, masks, strict=True)]]


def forest_at_the_pair(
    contest: Contest, counts: Sequence[Any], plan: NoisePlan, n_edges: int, seed: int = 0, **how: Any
) -> tuple[dict[str, tuple[int, ...]], Transcript]:
    """Choose at both ends of a real session."""
    sessions = two_party_sessions(seed)
    sides = zip(("g", "e"), sessions, shares_of(contest, counts, seed), strict=True)
    return run_local(
        {
            name: chosen_forest(Engine(session, Observer()), contest, shares, plan, n_edges)
            for name, session, shares in sides
        },
        **how,
    )
