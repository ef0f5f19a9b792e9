"""Charge of a DP run: the job's full ε, final before the first value is opened (semantics §8.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar

from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Table
from jobs.dp.budget import check_bound, settings
from jobs.owner.account import Run
from jobs.owner.kept import Kept
from jobs.owner.ledger import ChargedJob, PrivacyLedger
from jobs.owner.observing import PassedOn
from jobs.task import Result, Task


class Epsilon:
    """Charge of ε for a run, with any table."""

    step: ClassVar[str] = "dp/stored"

    def __init__(self, ledger: PrivacyLedger, task: Task, limit: Fraction, bound: int | None = None) -> None:
        """``limit``: of the sum of ε. ``bound``: the owner's, on the rows of the table, or None."""
        self.ledger = ledger
        self._bound = bound
        self._job = ChargedJob(task.model.name, task.job.name, task.digest, settings(task.job).epsilon)
        self._limit = limit
        stored = ledger.stored_entry(task.digest)
        self.kept = None if stored is None else Kept(stored[0], {}, stored[1])

    def check(self) -> None:
        """Raise BudgetError if the run would have to be refused."""
        if self.kept is None:
            self.ledger.check(self._job, self._limit)

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Raise DataError if the table exceeds its owner's bound."""
        if self._bound is not None:
            check_bound(table, self._bound)

    def reserve(self) -> int:
        return self.ledger.reserve(self._job, self._limit)

    def opened(self, number: int, peers: Sequence[str], run: Run, shown: Observer) -> Rounds[Result]:
        return run(Charging(lambda: self.ledger.open(number), shown))

    def written(self, result: Result) -> bytes:
        return result.encoded


class Charging(PassedOn):
    """Observer that passes a run's progress on, and makes its charge final before any opening."""

    def __init__(self, open_charge: Callable[[], None], shown: Observer) -> None:
        super().__init__(shown)
        self._open_charge = open_charge
        self._opened = False

    def opening(self) -> None:
        if not self._opened:
            self._open_charge()
            self._opened = True
