"""The choice of a forest: one noisy Kruskal, which pays for T pairs with one draw a pair.

Scores of neighbouring tables differ by 1 at most (:func:`anonymize.synthetic.marginals.score`). *The choice is
2·T·rate-DP.* Fix the noise of one table. For the other, add 1 + s − s′ ∈ [0, 2] to the noise of the T chosen pairs, s
and s′ being their scores in the two tables: the noisy scores of the chosen move up by exactly 1, those of all others
by at most 1, so none of these overtakes a chosen one; a pair that was skipped closes a cycle with pairs chosen before
it, so it is skipped again or comes after. One-sided noise stays in its support, and the shift costs at most
e^(rate · 2T). T is fixed before the draw. Ties go to the first in both tables alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from anonymize.dp.noise import Noise
from anonymize.synthetic.marginals import best_forest


def choose_forest(
    scores: Sequence[int], pairs: Sequence[tuple[int, ...]], rate: Fraction, n_edges: int, noise: Noise
) -> tuple[int, ...]:
    """Numbers of the chosen pairs, in the order chosen.

    pairs:    the columns of each pair, of all that there are over some columns, more than ``n_edges``.
    scores:   by pair.
    """
    drawn = noise.geometric(rate, len(scores))
    noisy = [score + g for score, g in zip(scores, drawn, strict=True)]
    return best_forest(pairs, noisy, n_edges)
