"""Replay of a DP run from its release. Account, reveals and δ follow from the release and the job.

DiffGen's public side runs again, with a holder without records that answers with the specializations made. So
nobody has to believe the maker about the account, the threshold, δ, or the openings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from anonymize.cut import Candidate, Cut
from anonymize.dp.accounting import Dp
from anonymize.dp.diffgen import DiffGen, DpOutcome, Holder, Place, split_points
from anonymize.dp.noisy_table import NoisyTable
from anonymize.dp.sparse import filter_for
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp.run import DpRequest, JointDpOutcome
from anonymize.table import Schema
from anonymize.tds import Observer, Step, Turn, at_once, run_single
from jobs.dp.repetition import begun_reveals
from jobs.dp.requirement import request, requirement, settings
from jobs.task import Task


def replayed_single(task: Task, steps: Sequence[Step], table: NoisyTable) -> DpOutcome:
    """Return the single holder's run with the given specializations and counts, with its charges.

    Raises ValueError if no run of the job can have made them.
    """
    asked = requirement(task)
    return _followed(task.schema, asked, steps, _Script(steps, table, asked.max_cells), bounded=False)


def replayed_run(task: Task, steps: Sequence[Step], table: NoisyTable) -> JointDpOutcome:
    """Return the joint run with the given specializations and counts, with its charges, reveals and δ.

    Raises ValueError if no run of the job can have made them.
    """
    asked = request(task)
    holder = _JointScript(asked, steps, table, begun_reveals(task), _draws(task))
    released = _followed(asked.schema, asked.requirement, steps, holder, bounded=True)
    return JointDpOutcome(released, holder.reveals, holder.plans.delta, asked.noise_for(table.n_cells))


def _followed(
    schema: Schema, asked: Dp, steps: Sequence[Step], holder: Holder, *, bounded: bool
) -> DpOutcome:
    released = run_single(DiffGen(schema, asked, holder, Observer(), bounded=bounded).run())
    if released.outcome.steps != tuple(steps):
        raise ValueError("more specializations than the job allows")
    return released


@dataclass(frozen=True)
class _Draws:
    """Noise of a mode drawn inside circuits, beside counts; and True if all parties learn split points."""

    choices: bool
    splits: bool
    tells_splits: bool


def _draws(task: Task) -> _Draws:
    """Return the draws: published protocols draw outside circuits; a vertical party splits with exact noise."""
    in_circuits = settings(task.job).engine == "circuit"
    listed = {each.name for each in task.mode.reveals if each.to == "all"}
    return _Draws(in_circuits, in_circuits and not task.partition.matched, "split" in listed)


class _Script:
    """Stand-in :class:`anonymize.dp.diffgen.Holder` that answers from a release. most: cells without a threshold."""

    def __init__(self, steps: Sequence[Step], table: NoisyTable, most: int) -> None:
        self._left = [step.candidate for step in reversed(steps)]
        self._table = table
        self._most = most

    def enter(self, places: Sequence[Place], rate: Fraction) -> Turn[None]:
        return at_once(None)

    def pick(self, places: Sequence[Place], rate: Fraction) -> Turn[Candidate]:
        if not self._left or Place(self._left[-1].column, self._left[-1].node) not in places:
            raise ValueError("a forbidden specialization, or too few")
        return at_once(self._left.pop())

    def specialize(self, candidate: Candidate, test: Fraction | None) -> Turn[None]:
        return at_once(None)

    def release(self, cut: Cut, rate: Fraction) -> Turn[NoisyTable]:
        table = self._table
        if (table.threshold is not None) != (table.n_cells > self._most):
            raise ValueError("a threshold is for more cells than a release lists")
        if table.threshold is not None and filter_for(rate, table.n_cells).threshold != table.threshold:
            raise ValueError("not the threshold of so many cells")
        return at_once(table)


class _JointScript(_Script):
    """Stand-in with the noise and the reveals of a joint run. Both follow from the shapes of the questions."""

    def __init__(
        self,
        asked: DpRequest,
        steps: Sequence[Step],
        table: NoisyTable,
        reveals: RevealLedger,
        draws: _Draws,
    ) -> None:
        super().__init__(steps, table, asked.requirement.max_cells)
        self._asked = asked
        self._draws = draws
        self.reveals = reveals
        self.plans = asked.plans()

    def enter(self, places: Sequence[Place], rate: Fraction) -> Turn[None]:
        schema = self._asked.schema
        points = sum(split_points(schema, place) for place in places)
        if self._draws.splits and points:
            self.plans.geometric(rate, points)
        for place in places:
            if self._draws.tells_splits and schema.qid[place.column].is_numeric:
                self.reveals.reveal("split", None, "all", ())
        return at_once(None)

    def pick(self, places: Sequence[Place], rate: Fraction) -> Turn[Candidate]:
        self.reveals.iteration += 1
        if self._draws.choices:
            self.plans.geometric(rate, len(places))
        candidate = yield from super().pick(places, rate)
        return self.reveals.reveal("candidate", candidate, "all")

    def release(self, cut: Cut, rate: Fraction) -> Turn[NoisyTable]:
        if self._asked.noise_for(self._table.n_cells) == "joint":
            self.plans.laplace(rate, self._table.n_cells)
        if self._draws.tells_splits:
            self.reveals.reveal("own_noisy_counts", self._table.counts, "all")
        self.reveals.reveal("noisy_counts", self._table.counts, "all")
        return at_once(self._table)
