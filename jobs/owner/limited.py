"""Charges of models whose releases do not compose: a policy limits their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crypto.rng import Rng
from jobs.data.tables import Table
from jobs.task import Spent, Task

if TYPE_CHECKING:
    from jobs.owner.account import LedgerAccount
    from jobs.owner.composition import Known
    from jobs.owner.ledger import Entry, PrivacyLedger
    from jobs.owner.policy import Policy


@dataclass(frozen=True)
class Limited:
    """Charges that count releases.

    known:      the quasi-identifiers of each requirement, with its L. Sequences have no quasi-identifiers.
    largest_k:  the largest K of the requirements on quasi-identifiers.
    """

    known: Callable[[Task], tuple[Known, ...]] = lambda task: ()
    largest_k: Callable[[Task], int] = lambda task: 1

    def account(self, ledger: PrivacyLedger, policy: Policy, task: Task, run: bytes) -> LedgerAccount:
        from jobs.owner.account import LedgerAccount
        from jobs.owner.charge import Release, limits_of

        return LedgerAccount(Release(ledger, task, run, limits_of(policy), self.known(task)))

    def spent(self, entries: Sequence[Entry], policy: Policy) -> Spent:
        from jobs.owner.forecast import spent

        return spent(entries, policy)

    def forecast(
        self, ledger: PrivacyLedger, policy: Policy, task: Task, me: str, table: Table | None, rng: Rng
    ) -> str:
        from jobs.owner import forecast
        from jobs.owner.composition import Published

        asked = forecast.Asked(Published.of_task(task, self.known(task), me), self.largest_k(task))
        return forecast.forecast(ledger, policy, task, me, table, asked, rng)
