"""The law of report noisy max, in fractions: what the privacy proof computes, taken literally."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache


@cache
def noisy_max_law(scores: tuple[int, ...], a: Fraction) -> tuple[Fraction, ...]:
    """P(i wins) for scores + G_i, P(G = k) = (1 − a)·a^k, ties to the first; exact.

    Some noisy score reaches the greatest score. For each t from there on: i is at t, the earlier ones below t, the
    later ones at most at t. P(u_j + G_j < t) = 1 − a^(t − u_j); the products expand into powers of a^t, whose
    sums are geometric series.
    """
    top = max(scores)
    return tuple(_wins(scores, i, top, a) for i in range(len(scores)))


def _wins(scores: Sequence[int], i: int, top: int, a: Fraction) -> Fraction:
    # Σ_{t ≥ top} (1 − a) a^(t−u_i) Π_{j≠i} (1 − c_j·a^t), as a polynomial in x = a^t.
    polynomial = [Fraction(0), (1 - a) / a ** scores[i]]
    for j, score in enumerate(scores):
        if j != i:
            c = a ** (1 - score) if j > i else a**-score
            polynomial = [
                (polynomial[k] if k < len(polynomial) else Fraction(0))
                - (c * polynomial[k - 1] if k else Fraction(0))
                for k in range(len(polynomial) + 1)
            ]
    return sum((p * a ** (k * top) / (1 - a**k) for k, p in enumerate(polynomial) if k), Fraction(0))
