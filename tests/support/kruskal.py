"""The law of one noisy Kruskal, in fractions: what the privacy proof speaks of, taken literally."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations

from gmpy2 import mpq

Ranking = tuple[int, ...]


def kruskal(ranking: Sequence[int], pairs: Sequence[tuple[int, int]], n_edges: int) -> tuple[int, ...]:
    """The first of a ranking that close no cycle."""
    trees = [{column} for column in range(1 + max(map(max, pairs)))]
    chosen = []
    for number in ranking:
        one, other = (next(tree for tree in trees if column in tree) for column in pairs[number])
        if one is not other and len(chosen) < n_edges:
            trees = [tree for tree in trees if tree is not one and tree is not other] + [one | other]
            chosen.append(number)
    return tuple(chosen)


def choice_law(
    scores: Sequence[int], pairs: Sequence[tuple[int, int]], n_edges: int, a: Fraction
) -> dict[tuple[int, ...], Fraction]:
    """P(chosen) for scores + G_i, P(G = k) = (1 − a)·a^k, ties to the first; exact."""
    law: dict[tuple[int, ...], Fraction] = {}
    for ranking, chance in ranking_law(tuple(score - min(scores) for score in scores), a).items():
        chosen = _kruskal(ranking, tuple(pairs), n_edges)
        law[chosen] = law.get(chosen, Fraction(0)) + chance
    return law


_kruskal = cache(kruskal)


@cache
def ranking_law(scores: tuple[int, ...], a: Fraction) -> dict[Ranking, Fraction]:
    """P(ranking): from level 0 up, every entry whose score is reached stops there with probability 1 − a.

    Who stops earlier ranks lower; of those that stop together the first ranks highest.
    """
    law = _above(frozenset(range(len(scores))), 0, scores, mpq(a))
    return {
        ranking: Fraction(int(chance.numerator), int(chance.denominator)) for ranking, chance in law.items()
    }


@cache
def _above(left: frozenset[int], level: int, scores: tuple[int, ...], a: mpq) -> dict[Ranking, mpq]:
    """The law of the ranking of those that are still moving at a level."""
    if not left:
        return {(): mpq(1)}
    level = min(level, max(scores))  # from there on all levels are alike
    reached = sorted(i for i in left if scores[i] <= level)
    law: dict[Ranking, mpq] = {}
    for n_stopped in range(len(reached) + 1):
        for stopped in combinations(reached, n_stopped):
            if not stopped and level == max(scores):
                continue  # nothing changes: what is left out is divided by below
            chance = (1 - a) ** n_stopped * a ** (len(reached) - n_stopped)
            for ranking, part in _above(left - set(stopped), level + 1, scores, a).items():
                whole = (*ranking, *stopped)
                law[whole] = law.get(whole, mpq(0)) + chance * part
    if level == max(scores):
        stays = a ** len(reached)
        law = {ranking: chance / (1 - stays) for ranking, chance in law.items()}
    return law
