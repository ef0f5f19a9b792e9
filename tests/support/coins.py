"""Going through all coins: exact laws of what is drawn, in fractions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import TypeVar

from anonymize.dp.noise import Coins

T = TypeVar("T", bound=Hashable)


class _More(Exception):
    """A run asked for a draw that the script does not have."""

    def __init__(self, bound: int) -> None:
        super().__init__()
        self.bound = bound


class ScriptedCoins:
    """Gives out the draws of a script, one after the other."""

    def __init__(self, script: Sequence[int]) -> None:
        self._left = list(reversed(script))

    def below(self, bound: int) -> int:
        if bound == 1:
            return 0
        if not self._left:
            raise _More(bound)
        drawn = self._left.pop()
        assert 0 <= drawn < bound
        return drawn

    @property
    def exhausted(self) -> bool:
        return not self._left


def law_of(run: Callable[[Coins], T], draws: int) -> tuple[dict[T, Fraction], Fraction]:
    """The law of what a run returns, over all scripts of at most so many draws; and the mass left out."""
    law: dict[T, Fraction] = {}
    left_out = Fraction(0)
    pending: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while pending:
        script, mass = pending.pop()
        coins = ScriptedCoins(script)
        try:
            outcome = run(coins)
        except _More as more:
            if len(script) == draws:
                left_out += mass
            else:
                pending += [((*script, value), mass / more.bound) for value in range(more.bound)]
            continue
        assert coins.exhausted
        law[outcome] = law.get(outcome, Fraction(0)) + mass
    return law, left_out


class ScriptedNoise:
    """Noise as a test wants it, and a record of what was asked for."""

    def __init__(
        self, geometric: Sequence[Sequence[int]] = (), laplace: Sequence[Sequence[int]] = ()
    ) -> None:
        self._scripts = {"geometric": list(geometric), "laplace": list(laplace)}
        self.asked: list[tuple[str, Fraction, int]] = []

    def geometric(self, rate: Fraction, count: int) -> list[int]:
        return self._next("geometric", rate, count)

    def laplace(self, rate: Fraction, count: int) -> list[int]:
        return self._next("laplace", rate, count)

    def _next(self, kind: str, rate: Fraction, count: int) -> list[int]:
        self.asked.append((kind, rate, count))
        script = self._scripts[kind]
        given = list(script.pop(0)) if script else [0] * count
        assert len(given) == count
        return given

    @property
    def coins(self) -> Coins:
        raise AssertionError("a script has no coins")


class Quiet:
    """No noise, and no empty cell passes a test."""

    class _Coins:
        def below(self, bound: int) -> int:
            return 0

    coins: Coins = _Coins()

    def laplace(self, rate: Fraction, count: int) -> list[int]:
        return [0] * count

    geometric = laplace
