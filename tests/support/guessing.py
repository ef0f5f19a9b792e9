"""Guessing secret bits: limits, and what a party of a joint run can subtract from what it sees (semantics §8.6)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from crypto.two_party import EvaluatorSession, GarblerSession
from tests.support.laws import drawn_by
from tests.support.rng import SeededRng

# claimed ε, trials, correct guesses that refute it (and what true ε that catches)
LIMITS = [
    (Fraction(1), 369, 309),  # 2
    (Fraction(1), 4_468, 3_407),  # 1.25
    (Fraction(1, 2), 953, 664),  # 1
    (Fraction(1, 10), 20_385, 11_041),  # 0.2
]


def bits_of(n: int, seed: object) -> np.ndarray:
    """The secrets."""
    return np.frombuffer(SeededRng(("secret", seed)).bytes(n), dtype=np.uint8) & 1


def correct(guesses: np.ndarray, secrets: np.ndarray) -> int:
    return int((guesses == secrets).sum())


class OwnCoins:
    """Keeps the coins that each side draws for noise: its own half, which it knows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.drawn: dict[str, list[np.ndarray]] = {"g": [], "e": []}
        for name, session in (("g", GarblerSession), ("e", EvaluatorSession)):
            monkeypatch.setattr(session, "_coins", self._keeping(name, session._coins))

    def _keeping(self, name: str, original: Any) -> Any:
        def coins(session: Any, bits: int, n: int) -> np.ndarray:
            drawn: np.ndarray = original(session, bits, n)
            self.drawn[name].append(drawn)
            return drawn

        return coins


def noise_of_coins(coins: np.ndarray, plan: Any) -> np.ndarray:
    """The discrete Laplace variable that one side's bits would make if they were all there were."""
    return np.array([drawn_by(plan, own) for own in coins.T.tolist()], dtype=np.int64)
