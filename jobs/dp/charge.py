"""A DP run at one party: what was finished earlier is given again, everything else is charged first.

Before the protocol the parties tell each other which result of this job they keep. If all keep the same one,
that is the result, and nothing is computed, opened or charged. Otherwise each reserves the job's full ε in its own
ledger, makes the charge final when the first value is about to be opened, and keeps the result before anybody
sees it (semantics §8.4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from anonymize.tds import Observer
from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError
from crypto.rng import Rng
from crypto.rounds import Round, Rounds
from jobs.data.tables import Table
from jobs.dp.budget import check_bound, settings
from jobs.owner.ledger import ChargedJob, PrivacyLedger
from jobs.owner.observing import PassedOn
from jobs.task import Result, Task

_STORED = "dp/stored"
_NOTHING = bytes(32)


class DpAccount:
    """One run's place in the ledger of one party."""

    def __init__(self, ledger: PrivacyLedger, task: Task, limit: Fraction, bound: int | None = None) -> None:
        """``limit``: of the sum of ε. ``bound``: the owner's on the rows of the table; None where there is none."""
        self._ledger = ledger
        self._bound = bound
        self._job = ChargedJob(task.model.name, task.job.name, task.digest, settings(task.job).epsilon)
        self._limit = limit
        self._number: int | None = None
        self._kept = ledger.stored_entry(task.digest)
        self._again = False

    @property
    def remark(self) -> str:
        return "gave the result of an earlier run again: nothing was charged" if self._again else ""

    @property
    def number(self) -> int | None:
        return self._number

    @property
    def keeps(self) -> bool:
        return self._kept is not None

    @property
    def stored(self) -> bytes | None:
        """The kept result of this job; None if there is none."""
        return None if self._kept is None else self._kept[1]

    def check(self) -> None:
        """Raise BudgetError if the run would have to be refused."""
        if self.stored is None:
            self._ledger.check(self._job, self._limit)

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Raise DataError if the table exceeds its owner's bound. What a job costs does not depend on the table."""
        if self._bound is not None:
            check_bound(table, self._bound)

    def reserve(self) -> None:
        """Charge the job."""
        self._number = self._ledger.reserve(self._job, self._limit)

    def open(self) -> None:
        """Make the charge final. Raises LocalProtocolError if nothing is reserved: our own bug."""
        self._ledger.open(self._charge())

    def finish(self, result: bytes) -> None:
        """Keep the result; raises likewise."""
        self._ledger.finish(self._charge(), result)

    def _charge(self) -> int:
        if self._number is None:
            raise LocalProtocolError("opened without a charge")
        return self._number

    def conducted(
        self,
        task: Task,
        peers: Sequence[str],
        protocol: Callable[[Observer], Rounds[Result]],
        shown: Observer,
    ) -> Rounds[Result]:
        """Give the kept result of the job if all parties keep the same; else charge, run the protocol, keep.

        Rounds: 1 ("dp/stored") before those of the protocol. Bytes: 32 to each other party.

        Raises BudgetError if the budget does not allow the run; what the protocol raises.
        """
        kept = _NOTHING if self.stored is None else hashlib.sha256(self.stored).digest()
        inbox = yield Round(_STORED, dict.fromkeys(peers, kept), frozenset(peers))
        for peer in peers:
            expect_length(inbox[peer], len(_NOTHING), peer, _STORED)
        if self.stored is not None and all(inbox[peer] == kept for peer in peers):
            self._again = True
            stored: Any = task.model.decode(task, self.stored, "this party")
            again: Result = replace(stored, repeated=True)
            return again
        self.reserve()
        try:
            result = yield from protocol(Charging(self, shown))
            self.finish(result.encoded)
            return result
        finally:
            self.settle()

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        """The files of the release, made in this run or an earlier one, are in place. Raises likewise."""
        number = self._kept[0] if self._number is None and self._kept is not None else self._charge()
        self._ledger.deliver(number, release, agreed=agreed)

    def settle(self) -> None:
        """The run is over: what was reserved and never opened is given back."""
        if self._number is not None:
            self._ledger.give_back(self._number)


class Charging(PassedOn):
    """Passes a run's progress on, and makes its charge final before anything is opened."""

    def __init__(self, account: DpAccount, shown: Observer) -> None:
        super().__init__(shown)
        self._account = account
        self._opened = False

    def opening(self) -> None:
        if not self._opened:
            self._account.open()
            self._opened = True
