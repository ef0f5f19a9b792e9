"""Single holder of a whole table, with exact noise; choice of a forest of pairs by a noisy Kruskal."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonymize.dp.accounting import check_rows
from anonymize.dp.noise import Noise
from anonymize.synthetic.holder import Question
from anonymize.synthetic.loop import Synthesis, SyntheticOutcome
from anonymize.synthetic.marginals import Marginal, best_forest, score
from anonymize.synthetic.requirement import Synthetic
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer, Turn, at_once, run_single


def choose_forest(
    scores: Sequence[int], pairs: Sequence[tuple[int, ...]], rate: Fraction, n_edges: int, noise: Noise
) -> tuple[int, ...]:
    """Return the numbers of the chosen pairs, in the order chosen: T pairs from a draw of noise per pair.

    pairs:    columns of each pair, all pairs of some columns; more than ``n_edges``, which is T.
    scores:   by pair.

    Scores of neighbouring tables differ by at most 1 (:func:`anonymize.synthetic.marginals.score`). *The choice is
    2·T·rate-DP.* Fix the noise of a table. For a neighbouring table, add 1 + s − s′ ∈ [0, 2] to the noise of the T
    chosen pairs, with scores s and s′ in the two tables. The noisy scores of the chosen pairs rise by exactly 1, all
    others by at most 1, so no other pair overtakes a chosen pair. A skipped pair closes a cycle with pairs chosen
    before, so it is skipped again or comes after. One-sided noise stays in its support, and the shift costs at most
    e^(rate · 2T). T is fixed before the draw. Ties go to the first in both tables.
    """
    drawn = noise.geometric(rate, len(scores))
    noisy = [score + g for score, g in zip(scores, drawn, strict=True)]
    return best_forest(pairs, noisy, n_edges)


class SingleHolder:
    """:class:`anonymize.synthetic.holder.Holder` of a whole table."""

    def __init__(self, table: CodedTable, noise: Noise) -> None:
        self._table = table
        self._noise = noise

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Turn[list[Ints]]:
        return at_once([self._noisy(marginal, rate) for marginal in marginals])

    def _noisy(self, marginal: Marginal, rate: Fraction) -> Ints:
        drawn = np.array(self._noise.laplace(rate, marginal.size), dtype=np.int64)
        return marginal.counts(self._table) + drawn.reshape(marginal.shape)

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Turn[tuple[int, ...]]:
        pairs = question.pairs
        counts = (pair.counts(self._table) for pair in pairs)
        scores = [
            score(*of_pair) for of_pair in zip(counts, question.expected, question.penalties, strict=True)
        ]
        return at_once(choose_forest(scores, [pair.columns for pair in pairs], rate, n_edges, self._noise))


def synthesize_single(
    table: CodedTable, requirement: Synthetic, noise: Noise, observer: Observer | None = None
) -> SyntheticOutcome:
    """Measure a holder's table with ε-differential privacy.

    Exactly ε-DP for adding or removing a record (``per_person`` records), with ideal coins behind ``noise``. Rows are
    coded as in :mod:`anonymize.synthetic.marginals`.

    Raises SchemaError for an unsupported schema; PrivacyError if the table has more than ``max_rows`` records.
    """
    check_rows(table.n_records, requirement.max_rows)
    holder = SingleHolder(table, noise)
    return run_single(Synthesis(table.schema, requirement, holder, observer or Observer()).run())
