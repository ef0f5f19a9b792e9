"""Replay of a run from its openings. Account, reveals and δ follow from the openings and the job.

The public side of the loop runs again, with a holder without records that answers with the given counts and pairs.
So nobody has to believe the maker about the account, the bins, δ, or the openings.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp.noise import Plans
from anonymize.joint.synthetic.run import JointSyntheticOutcome
from anonymize.synthetic.holder import Question
from anonymize.synthetic.loop import Synthesis, SyntheticOutcome
from anonymize.synthetic.marginals import Marginal, is_forest
from anonymize.table import Ints
from anonymize.tds import Observer, Turn, at_once, run_single
from jobs.dp.repetition import begun_reveals
from jobs.synthetic.requirement import request, requirement
from jobs.task import Task

_SCALES = 128
"""Largest possible noise in scales: of 2^100 draws not a single draw exceeds the number."""


def replayed(task: Task, edges: Sequence[int], counts: Ints) -> SyntheticOutcome:
    """Return the run with the given openings, marginal after marginal, and the given pairs.

    Raises ValueError if no run of the job can have opened the counts.
    """
    return _followed(task, _Script(edges, counts, _most_rows(task)))


def replayed_run(task: Task, edges: Sequence[int], counts: Ints) -> JointSyntheticOutcome:
    """Return the joint run, with its reveals and its δ."""
    script = _JointScript(edges, counts, _most_rows(task), request(task).plans(), begun_reveals(task))
    outcome = _followed(task, script)
    return JointSyntheticOutcome(outcome, script.reveals, script.plans.delta)


def _most_rows(task: Task) -> int:
    return requirement(task).max_rows * max(1, len(task.job.roster))


def _followed(task: Task, script: _Script) -> SyntheticOutcome:
    outcome = run_single(Synthesis(task.schema, requirement(task), script, Observer()).run())
    script.require_end()
    return outcome


class _Script:
    """Stand-in for :class:`anonymize.synthetic.holder.Holder` that answers from the openings."""

    def __init__(self, edges: Sequence[int], counts: Ints, most_rows: int) -> None:
        self._edges = edges
        self._counts = counts
        self._most_rows = most_rows
        self._chosen = False

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Turn[list[Ints]]:
        return at_once([self._next(marginal, rate) for marginal in marginals])

    def _next(self, marginal: Marginal, rate: Fraction) -> Ints:
        if len(self._counts) < marginal.size:
            raise ValueError("fewer counts than the job opens")
        found, self._counts = self._counts[: marginal.size], self._counts[marginal.size :]
        most = self._most_rows + int(_SCALES / rate)
        if found.min() < -most or found.max() > most:
            raise ValueError("no noise of the job makes the count")
        # So nobody can make a table with too many rows and fill the memory of readers.
        if abs(int(found.sum())) > self._most_rows + _SCALES * marginal.size**0.5 / float(rate):
            raise ValueError("no noise of the job makes the sum of counts")
        return found.reshape(marginal.shape)

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Turn[tuple[int, ...]]:
        self._chosen = True
        if len(self._edges) != n_edges:
            raise ValueError("not as many pairs as the job measures")
        if not is_forest([pair.columns for pair in question.pairs], self._edges):
            raise ValueError("a pair is missing, or closes a cycle")
        return at_once(tuple(self._edges))

    def require_end(self) -> None:
        """Raise ValueError if more was opened than was asked for."""
        if len(self._counts) or (self._edges and not self._chosen):
            raise ValueError("more than the job opens")


class _JointScript(_Script):
    """Stand-in with the further draws and reveals of a joint run. Both follow from the shapes of the questions."""

    def __init__(
        self, edges: Sequence[int], counts: Ints, most_rows: int, plans: Plans, reveals: RevealLedger
    ) -> None:
        super().__init__(edges, counts, most_rows)
        self.plans = plans
        self.reveals = reveals

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Turn[list[Ints]]:
        found = yield from super().measure(marginals, rate)
        self.plans.laplace(rate, sum(marginal.size for marginal in marginals))
        for marginal in marginals:
            self.reveals.reveal("noisy_marginal", None, "all", marginal.shape)
        return found

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Turn[tuple[int, ...]]:
        chosen = yield from super().choose(question, rate, n_edges)
        self.plans.geometric(rate, len(question.pairs))
        for _ in chosen:
            self.reveals.iteration += 1
            self.reveals.reveal("edge", None, "all", ())
        return chosen


def counts_of(outcome: SyntheticOutcome) -> Ints:
    """Return all openings, marginal after marginal: int64, shape (n_cells_in_all,)."""
    opened = outcome.opened
    return np.concatenate([m.counts.reshape(-1) for m in (*opened.leaves, *opened.bins, *opened.pairs)])


def edges_of(outcome: SyntheticOutcome) -> list[int]:
    """Return the chosen pairs, by their numbers among all pairs of columns."""
    n = len(outcome.schema.qid)
    return [edge_number(n, *measured.marginal.columns) for measured in outcome.opened.pairs]


def edge_number(n_columns: int, one: int, other: int) -> int:
    """Return the number of a pair of columns in :func:`anonymize.synthetic.marginals.pairs_of`."""
    return one * n_columns - one * (one + 1) // 2 + other - one - 1
