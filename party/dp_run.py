"""A DP run at one party: what was finished earlier is given again, everything else is charged first.

Before the protocol the parties tell each other which result of this job they keep. If all keep the same one,
that is the result, and nothing is computed, opened or charged. Otherwise each reserves the job's full ε in its own
ledger, makes the charge final when the first value is about to be opened, and keeps the result before anybody
sees it (dp-notes, section 2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from anonymize.joint.dp import JointDpOutcome
from anonymize.tds import Observer, Step
from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError
from crypto.rounds import Round, Rounds
from party.budget import Budget, Job
from party.bundle import Bundle
from party.dp_result import DpResult, decode_dp_result, encode_dp_result

_STORED = "dp/stored"
_NOTHING = bytes(32)


class Account:
    """One run's place in the ledger of one party."""

    def __init__(self, budget: Budget, bundle: Bundle, limit: Fraction) -> None:
        self._budget = budget
        self._job = Job(bundle.job.name, bundle.digest, bundle.dp.epsilon)
        self._limit = limit
        self._number: int | None = None
        self.stored = budget.stored(bundle.digest)

    def check(self) -> None:
        """Raise BudgetError if the run would have to be refused."""
        if self.stored is None:
            self._budget.check(self._job, self._limit)

    def reserve(self) -> None:
        """Charge the job."""
        self._number = self._budget.reserve(self._job, self._limit)

    def open(self) -> None:
        """Make the charge final. Raises LocalProtocolError if there is none: our own bug."""
        self._budget.open(self._charge())

    def finish(self, result: bytes) -> None:
        """Keep the result; raises likewise."""
        self._budget.finish(self._charge(), result)

    def _charge(self) -> int:
        if self._number is None:
            raise LocalProtocolError("opened without a charge")
        return self._number

    def settle(self) -> None:
        """The run is over: what was reserved and never opened is given back."""
        if self._number is not None:
            self._budget.give_back(self._number)


class Charging(Observer):
    """Passes a run's progress on, and makes its charge final before anything is opened."""

    def __init__(self, account: Account, shown: Observer) -> None:
        self._account = account
        self._shown = shown
        self._opened = False

    def phase(self, name: str) -> None:
        self._shown.phase(name)

    def gates(self, count: int) -> None:
        self._shown.gates(count)

    def turn(self, iteration: int, step: Step) -> None:
        self._shown.turn(iteration, step)

    def opening(self) -> None:
        if not self._opened:
            self._account.open()
            self._opened = True


def charged_run(
    peers: Sequence[str], bundle: Bundle, account: Account, protocol: Rounds[JointDpOutcome]
) -> Rounds[DpResult]:
    """Give the kept result of the job if all parties keep the same, marked so; else charge, run the protocol, keep.

    Rounds: 1 ("dp/stored") before those of the protocol. Bytes: 32 to each other party.

    Raises BudgetError if the budget does not allow the run; what the protocol raises.
    """
    kept = _NOTHING if account.stored is None else hashlib.sha256(account.stored).digest()
    inbox = yield Round(_STORED, dict.fromkeys(peers, kept), frozenset(peers))
    for peer in peers:
        expect_length(inbox[peer], len(_NOTHING), peer, _STORED)
    if account.stored is not None and all(inbox[peer] == kept for peer in peers):
        protocol.close()
        return replace(decode_dp_result(account.stored, bundle, "this party"), repeated=True)
    account.reserve()
    try:
        outcome = yield from protocol
        encoded = encode_dp_result(outcome)
        account.finish(encoded)
        return decode_dp_result(encoded, bundle, "this party")
    finally:
        account.settle()
