"""Forecast of a run's questions: the loop is answered without records, before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonymize.synthetic.holder import Question
from anonymize.synthetic.marginals import Marginal, best_forest
from anonymize.table import Ints
from anonymize.tds import Turn, at_once


class Foreseen:
    """:class:`anonymize.synthetic.holder.Holder` without records that notes its questions.

    Its answers maximize every later step. Records are spread evenly, so no bin is merged for small counts, and the
    largest tables are chosen.

    most_records:  public bound on the records.
    measured:  marginals of each measurement, and the rate.
    choice:    number of pairs in the choice, and number of chosen pairs; empty without a choice.
    """

    def __init__(self, most_records: int) -> None:
        self.most_records = most_records
        self.measured: list[tuple[Sequence[Marginal], Fraction]] = []
        self.choice: tuple[int, ...] = ()

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Turn[list[Ints]]:
        self.measured.append((marginals, rate))
        return at_once([np.full(m.shape, self.most_records // m.size, dtype=np.int64) for m in marginals])

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Turn[tuple[int, ...]]:
        pairs = question.pairs
        self.choice = (len(pairs), n_edges)
        return at_once(best_forest([pair.columns for pair in pairs], [pair.size for pair in pairs], n_edges))
