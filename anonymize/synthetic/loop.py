"""Synthetic table from noisy marginals: the loop of measurements and choices.

1. *Leaves.* Every column by leaf, without the class. These noisy counts determine the bins of every column
and a
   noisy number of rows, and with `edges: auto` the number of measured pairs of columns.
2. *Bins.* Every column by bin and class; with more of ε if fewer pairs are measured.
3. *Choice.* A forest of pairs that differ most from the expectation of steps 1 and 2
(:mod:`anonymize.synthetic.single`).
4. *Pairs.* Two columns by bin and class.

Each table costs its rate, as every record is in a single cell; the rates of a step's tables add up to the step's
share of ε. A :class:`anonymize.synthetic.holder.Holder` answers. Everything here is a function of the job and the
opened values, in integers, so all parties and readers get the same result. The model and the table are made from the
opened counts alone (:mod:`anonymize.synthetic.fit`, :mod:`anonymize.synthetic.draw`).

Sources: a forest of noisy marginals is the model of MST (McKenna, Miklau, Sheldon, JPC 2021); with the class at every
edge, of tree-augmented naive Bayes (Friedman, Geiger, Goldszmidt, ML 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from anonymize.dp.accounting import Accountant
from anonymize.synthetic.bins import bins_of, class_totals, expected, margin, penalty
from anonymize.synthetic.holder import Holder, Question
from anonymize.synthetic.marginals import Marginal, leaf_marginals, pairs_of
from anonymize.synthetic.opened import Measured, Opened
from anonymize.synthetic.requirement import Synthetic, check_synthetic
from anonymize.table import Schema
from anonymize.tds import Observer, Turn


@dataclass(frozen=True)
class SyntheticOutcome:
    """Opened values of a run with their account."""

    schema: Schema
    opened: Opened
    accountant: Accountant


class Synthesis:
    """Public side of a run."""

    def __init__(self, schema: Schema, requirement: Synthetic, holder: Holder, observer: Observer) -> None:
        check_synthetic(schema, requirement)
        self._schema = schema
        self._requirement = requirement
        self._holder = holder
        self._observer = observer
        self.accountant = Accountant(requirement.epsilon)

    def run(self) -> Turn[SyntheticOutcome]:
        """Measure, choose, measure."""
        epsilon, design = self._requirement.epsilon, self._requirement.design
        self._observer.opening()
        marginals = leaf_marginals(self._schema)
        leaves = yield from self._measure("the columns by leaf", marginals, epsilon * design.leaves)
        n_edges = self._requirement.n_edges(self._schema, n_rows(leaves))
        marginals = bin_marginals(self._schema, self._requirement, leaves)
        share = design.bins(len(leaves), n_edges)
        bins = yield from self._measure("the columns by bin and class", marginals, epsilon * share)
        pairs: tuple[Measured, ...] = ()
        if n_edges:
            chosen = yield from self._choose(bins, n_edges)
            pairs = yield from self._measure("pairs of columns", chosen, self.accountant.rest)
        return SyntheticOutcome(self._schema, Opened(leaves, bins, pairs), self.accountant)

    def _measure(
        self, what: str, marginals: Sequence[Marginal], epsilon: Fraction
    ) -> Turn[tuple[Measured, ...]]:
        self._observer.phase("measure")
        rate = self._rate(self.accountant.charge(f"counts of {what}", epsilon), len(marginals))
        counts = yield from self._holder.measure(marginals, rate)
        return tuple(Measured(m, table, rate) for m, table in zip(marginals, counts, strict=True))

    def _rate(self, epsilon: Fraction, n_tables: int) -> Fraction:
        """Return the noise rate of ``n_tables`` tables that together cost a person ``epsilon``."""
        return self._requirement.of_a_record(epsilon) / n_tables

    def _choose(self, bins: Sequence[Measured], n_edges: int) -> Turn[list[Marginal]]:
        self._observer.phase("choose")
        epsilon = self._requirement.epsilon * self._requirement.design.choice
        spent = self.accountant.charge("choice of pairs of columns", epsilon)
        asked = question(bins, self._rate(self.accountant.rest, n_edges))
        rate = self._rate(spent, 2 * n_edges)
        chosen = yield from self._holder.choose(asked, rate, n_edges)
        return [asked.pairs[number] for number in chosen]


def n_rows(leaves: Sequence[Measured]) -> int:
    """Return the noisy number of rows, at least 0: the inverse-variance mean over columns."""
    return int(class_totals([measured.counts for measured in leaves]).sum())


def bin_marginals(schema: Schema, requirement: Synthetic, leaves: Sequence[Measured]) -> tuple[Marginal, ...]:
    """Return the marginals of every column by bin and class, with bins from the counts by leaf."""
    design = requirement.design
    theta = max(1, int(design.theta / leaves[0].rate))
    found = (
        bins_of(i, column, measured.counts[:, 0], theta, design)
        for i, (column, measured) in enumerate(zip(schema.qid, leaves, strict=True))
    )
    return tuple(Marginal((axis,), schema.n_classes) for axis in found)


def question(bins: Sequence[Measured], rate: Fraction) -> Question:
    """Return the question of a choice. rate: noise rate of the later measurement of the pairs."""
    totals = class_totals([measured.counts for measured in bins])
    margins = [margin(measured.counts, totals) for measured in bins]
    pairs = pairs_of([measured.marginal.axes[0] for measured in bins], bins[0].marginal.n_classes)
    crossed = tuple(
        expected(margins[one], margins[other], totals) for one, other in (p.columns for p in pairs)
    )
    return Question(pairs, crossed, tuple(penalty(pair, rate) for pair in pairs))
