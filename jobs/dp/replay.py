"""A DP run followed once more from what it released: what it charged and revealed follows from that and the job.

DiffGen's public side runs as it did, with a holder that knows no records and answers with the specializations made.
So nobody has to be believed about the account of a run, or about what was opened on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from anonymize.cut import Candidate, Cut
from anonymize.dp.accounting import Accountant
from anonymize.dp.diffgen import DiffGen, Place
from anonymize.dp.noisy_table import NoisyTable
from anonymize.joint.disclosure import RevealLedger
from anonymize.table import Schema
from anonymize.tds import Observer, Step, Turn, at_once, run_alone
from jobs.dp.again import begun_reveals
from jobs.dp.asked import requirement
from jobs.task import Task


def replayed_run(task: Task, steps: Sequence[Step], table: NoisyTable) -> tuple[Accountant, RevealLedger]:
    """The charges and the reveals of the joint run that made these specializations and counts.

    Raises ValueError if no run of the job can have made them.
    """
    listed = {each.name for each in task.mode.reveals if each.to == "all"}
    reveals = begun_reveals(task)
    schema = task.schema
    holder = _Script(schema, steps, table, reveals, tells_splits="split" in listed)
    diffgen = DiffGen(schema, requirement(task), holder, Observer(), bounded=True)
    released = run_alone(diffgen.run())
    if released.outcome.steps != tuple(steps):
        raise ValueError("more specializations than the job allows")
    return released.accountant, reveals


class _Script:
    """A :class:`anonymize.dp.diffgen.Holder` that answers from a release."""

    def __init__(
        self,
        schema: Schema,
        steps: Sequence[Step],
        table: NoisyTable,
        reveals: RevealLedger,
        *,
        tells_splits: bool,
    ) -> None:
        self._schema = schema
        self._left = [step.candidate for step in reversed(steps)]
        self._table = table
        self._reveals = reveals
        self._tells_splits = tells_splits

    def enter(self, places: Sequence[Place], rate: Fraction) -> Turn[None]:
        for place in places:
            if self._tells_splits and self._schema.qid[place.column].is_numeric:
                self._reveals.reveal("split", None, "all", ())
        return at_once(None)

    def pick(self, places: Sequence[Place], rate: Fraction) -> Turn[Candidate]:
        self._reveals.iteration += 1
        if not self._left or Place(self._left[-1].column, self._left[-1].node) not in places:
            raise ValueError("a specialization that the job does not allow, or too few")
        return at_once(self._reveals.reveal("candidate", self._left.pop(), "all"))

    def specialize(self, candidate: Candidate, test: Fraction | None) -> Turn[None]:
        return at_once(None)

    def release(self, cut: Cut, rate: Fraction) -> Turn[NoisyTable]:
        if self._tells_splits:
            self._reveals.reveal("own_noisy_counts", self._table.counts, "all")
        self._reveals.reveal("noisy_counts", self._table.counts, "all")
        return at_once(self._table)
