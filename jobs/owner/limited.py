"""What models answer alike whose releases do not compose: a policy limits their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anonymize.table import SensitiveColumn
from crypto.rng import Rng
from jobs.data.tables import Table
from jobs.file.schema import Domains
from jobs.file.values import sensitive_columns
from jobs.task import Spent, Task

if TYPE_CHECKING:
    from jobs.owner.account import LedgerAccount
    from jobs.owner.composition import Known
    from jobs.owner.ledger import Entry, PrivacyLedger
    from jobs.owner.policy import Policy


class Limited:
    """A release in which inferences of sensitive values are bounded, and that counts as one of so many."""

    tells_seconds = True

    def sensitive(self, task: Task, found: Domains) -> tuple[SensitiveColumn, ...]:
        return sensitive_columns(task, found)

    def known(self, task: Task) -> tuple[Known, ...]:
        """Return the quasi-identifiers of each requirement, with its L. Sequences have none."""
        return ()

    def largest_k(self, task: Task) -> int:
        """Return the largest K of a job's requirements on quasi-identifiers; 1: sequences have none."""
        return 1

    def account(self, ledger: PrivacyLedger, policy: Policy, task: Task, run: bytes) -> LedgerAccount:
        from jobs.owner.account import LedgerAccount
        from jobs.owner.charge import Release, limits_of

        return LedgerAccount(Release(ledger, task, run, limits_of(policy), self.known(task)))

    def spent(self, entries: Sequence[Entry], policy: Policy) -> Spent:
        from jobs.owner.outlook import spent

        return spent(entries, policy)

    def outlook(
        self, ledger: PrivacyLedger, policy: Policy, task: Task, me: str, table: Table | None, rng: Rng
    ) -> str:
        from jobs.owner import outlook
        from jobs.owner.composition import Published

        asked = outlook.Asked(Published.of_task(task, self.known(task), me), self.largest_k(task))
        return outlook.outlook(ledger, policy, task, me, table, asked, rng)
