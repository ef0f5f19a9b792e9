"""The one holder of a whole table, with exact noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonymize.dp.accounting import check_rows
from anonymize.dp.noise import Noise
from anonymize.synthetic.choice import choose_forest
from anonymize.synthetic.holder import Question
from anonymize.synthetic.loop import Synthesis, SyntheticOutcome
from anonymize.synthetic.marginals import Marginal, score
from anonymize.synthetic.requirement import Synthetic
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer, Turn, at_once, run_alone


class SingleHolder:
    """A :class:`anonymize.synthetic.holder.Holder`."""

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


def synthesize_alone(
    table: CodedTable, requirement: Synthetic, noise: Noise, observer: Observer | None = None
) -> SyntheticOutcome:
    """Measure one holder's table with ε-differential privacy.

    Exactly ε-DP for adding or removing one record (``per_person`` of them), with ideal coins behind ``noise``. Rows
    are coded as :mod:`anonymize.synthetic.marginals` says.

    Raises SchemaError for a schema that the method cannot publish; PrivacyError if the table has more than
    ``max_rows`` records.
    """
    check_rows(table.n_records, requirement.max_rows)
    holder = SingleHolder(table, noise)
    return run_alone(Synthesis(table.schema, requirement, holder, observer or Observer()).run())
