"""Holders of the records of a synthetic table; in a joint run one per party, all in step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from anonymize.synthetic.marginals import Marginal
from anonymize.table import Ints
from anonymize.tds import Turn


@dataclass(frozen=True)
class Question:
    """Question of a choice between pairs; all public.

    expected:   int64, of each pair's shape.
    penalties:  amount subtracted from each pair's score.
    """

    pairs: Sequence[Marginal]
    expected: Sequence[Ints] = field(repr=False)
    penalties: Sequence[int]


class Holder(Protocol):
    """Holder of records for a run.

    The rate of the noise of every method determines its cost for a record, which the loop has charged before.
    """

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Turn[list[Ints]]:
        """Count all marginals, each with independent discrete Laplace noise, signed.

        Returns int64 of the marginal's shape for each marginal, in order. A record changes a count of each marginal
        by 1, so the cost is ``rate`` times the number of marginals.
        """
        ...

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Turn[tuple[int, ...]]:
        """Choose a forest by a noisy Kruskal: numbers of pairs, in the order chosen.

        Each pair's score (:func:`anonymize.synthetic.marginals.score`) gets a geometric draw. Then, ``n_edges``
        times, the pair with the greatest noisy score among the pairs that close no cycle is chosen, ties to the
        first. The cost is 2·``n_edges``·``rate``.

        n_edges:  fixed before any noise is drawn, less than the number of columns.
        """
        ...
