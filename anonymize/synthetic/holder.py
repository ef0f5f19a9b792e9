"""Holders of the records of a synthetic table; in a joint run each party has one, and all are in step."""

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
    """Between which pairs a choice is, and what it is told of each; all public.

    expected:   int64, of each pair's shape.
    penalties:  of each: what its score is less by.
    """

    pairs: Sequence[Marginal]
    expected: Sequence[Ints] = field(repr=False)
    penalties: Sequence[int]


class Holder(Protocol):
    """A holder of records, as a run asks it.

    Every method says what it costs a record by the rate of its noise; the loop has charged it before.
    """

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Turn[list[Ints]]:
        """Counts of all marginals, each with discrete Laplace noise of its own, signed.

        Returns by marginal, in the order asked, int64 of its shape. One record changes one count of each by 1: it
        costs ``rate`` times the number of marginals.
        """
        ...

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Turn[tuple[int, ...]]:
        """Choose a forest by one noisy Kruskal: numbers of pairs, in the order chosen.

        Each pair's score (:func:`anonymize.synthetic.marginals.score`) gets one geometric draw; then ``n_edges``
        times the pair with the greatest noisy score of those that close no cycle, ties to the first. It costs
        2·``n_edges``·``rate``.

        n_edges:  fixed before any noise is drawn, less than the number of columns.
        """
        ...
