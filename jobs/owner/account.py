"""A run's place in a privacy ledger: charged before anything is opened, kept before anybody sees the result.

Before a run the parties compare their kept results of the job. If all keep the same result, the parties give it
again: no protocol runs, and nothing is opened or charged. Otherwise each party charges the run, makes the charge
final before anything is opened, and keeps the result before anybody sees it. A run that ends before any opening
gives its charge back. So no word of a peer makes a run free. A :class:`Charge` says how a run is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from anonymize.tds import Observer
from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError
from crypto.rng import Rng
from crypto.rounds import Round, Rounds
from jobs.data.tables import Table
from jobs.owner.kept import Kept
from jobs.owner.ledger import PrivacyLedger
from jobs.task import Result, Task

_KEPT_BYTES = 32
_NOTHING = bytes(_KEPT_BYTES)

Run = Callable[[Observer], Rounds[Any]]
"""Protocol with announcements of its openings to an observer."""


class Charge(Protocol):
    """Charge of a run in a ledger.

    step:  the name of the message about kept results between parties.
    """

    step: ClassVar[str]
    ledger: PrivacyLedger

    @property
    def kept(self) -> Kept | None:
        """Result of an earlier run that may be given again."""
        ...

    def check(self) -> None:
        """Raise BudgetError or PolicyError if the run would be refused with any table."""
        ...

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Raise if the run would be refused with the given table, whatever the peers say."""
        ...

    def reserve(self) -> int:
        """Charge the run; return the number of its entry. Raises as :meth:`check`."""
        ...

    def opened(self, number: int, peers: Sequence[str], run: Run, shown: Observer) -> Rounds[Any]:
        """Run the protocol; make the charge final before anything is opened."""
        ...

    def written(self, result: Any) -> bytes | None:
        """Return a result in the form of the ledger, or None if the ledger does not keep the result."""
        ...


class LedgerAccount:
    """A run's place in the ledger of a party, or of a single holder."""

    def __init__(self, charge: Charge) -> None:
        self._charge = charge
        self._ledger = charge.ledger
        self._number: int | None = None
        self.again = False

    @property
    def remark(self) -> str:
        return "gave the result of an earlier run again: nothing was charged" if self.again else ""

    @property
    def number(self) -> int | None:
        return self._number

    @property
    def keeps(self) -> bool:
        return self._charge.kept is not None

    def check(self) -> None:
        self._charge.check()

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        self._charge.read(task, me, table, rng)

    def repeat(self) -> Kept | None:
        """Take the kept result, if any, for the result of this run: nothing is charged."""
        kept = self._charge.kept
        if kept is not None:
            self.again, self._number = True, kept.number
        return kept

    def reserve(self) -> int:
        """Charge the run; return the number of its entry."""
        self._number = self._charge.reserve()
        return self._number

    def open(self) -> None:
        """Make the charge final. Raises LocalProtocolError without a charge: our own bug."""
        self._ledger.open(self._charged("opened"))

    def finish(self, content: bytes) -> None:
        """Keep the result. Raises likewise."""
        self._ledger.finish(self._charged("finished"), content)

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        """Note that the files of the release, made in this run or an earlier run, are in place. Raises likewise."""
        self._ledger.deliver(self._charged("delivered"), release, agreed=agreed)

    def settle(self) -> None:
        """Note the end of the run: a charge that is not final is given back."""
        if self._number is not None:
            self._ledger.give_back(self._number)

    def _charged(self, what: str) -> int:
        if self._number is None:
            raise LocalProtocolError(f"{what} without a charge")
        return self._number

    def conducted(self, task: Task, peers: Sequence[str], protocol: Run, shown: Observer) -> Rounds[Result]:
        """Give the kept result of the job if all parties keep the same result; else charge, run the protocol, keep.

        Rounds: 1 (the step of the charge) before the protocol's rounds; and the rounds of the charge.
        Bytes:  32 to each peer.
        Leakage: whether a party keeps a result of the job, and which result.

        Raises BudgetError or PolicyError if the run is refused; and the protocol's errors.
        """
        kept, step = self._charge.kept, self._charge.step
        told = _NOTHING if kept is None else kept.digest
        inbox = yield Round(step, dict.fromkeys(peers, told), frozenset(peers))
        for peer in peers:
            expect_length(inbox[peer], _KEPT_BYTES, peer, step)
        if kept is not None and all(inbox[peer] == told for peer in peers):
            self.repeat()
            again: Result = kept.again(task)
            return again
        number = self.reserve()
        try:
            result: Result = yield from self._charge.opened(number, peers, protocol, shown)
            content = self._charge.written(result)
            if content is not None:
                self.finish(content)
            return result
        finally:
            self.settle()


class Unaccounted:
    """Account of a party in a simulation in a single process, without a ledger: nothing is charged or kept."""

    remark = ""
    number = None
    keeps = False

    def check(self) -> None:
        """Refuse nothing: no ledger has a limit."""

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Refuse no table: no ledger has a limit."""

    def conducted(self, task: Task, peers: Sequence[str], protocol: Run, shown: Observer) -> Rounds[Result]:
        """Run the protocol alone, without a charge or a kept result before."""
        return protocol(shown)

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        """Note nothing: no ledger has an entry of the release."""
