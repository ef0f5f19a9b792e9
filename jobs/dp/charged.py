"""Commons of models with differential privacy, of all releases."""

from __future__ import annotations

from collections.abc import Sequence

from anonymize.table import SensitiveColumn
from crypto.rng import Rng
from jobs.data.tables import Table
from jobs.dp import budget, forecast
from jobs.dp.charge import Epsilon
from jobs.file.schema import Domains
from jobs.owner.account import LedgerAccount
from jobs.owner.ledger import Entry, PrivacyLedger
from jobs.owner.policy import Policy
from jobs.task import Coders, Model, Reading, Spent, Task


def reading_by(coder: Coders) -> Reading:
    """Return how tables are read by the rules of a model."""
    return Reading(
        budget.load,
        coder,
        checked=False,
        outside=True,
        per_person=lambda job: budget.settings(job).max_records_per_person is not None,
    )


class Budgeted:
    """Charges of ε for each run."""

    def account(self, ledger: PrivacyLedger, policy: Policy, task: Task, run: bytes) -> LedgerAccount:
        limit = budget.largest_sum(policy)
        assert limit is not None, "the policy allows the job"
        return LedgerAccount(Epsilon(ledger, task, limit, policy.max_rows))

    def spent(self, entries: Sequence[Entry], policy: Policy) -> Spent:
        return forecast.spent(entries, policy)

    def forecast(
        self, ledger: PrivacyLedger, policy: Policy, task: Task, me: str, table: Table | None, rng: Rng
    ) -> str:
        return forecast.forecast(ledger, policy, task, table)


class Charged(Model):
    """Release with a charge of ε, which discloses little about a record's presence in the table."""

    charges = Budgeted()
    tells_seconds = False

    def sensitive(self, task: Task, found: Domains) -> tuple[SensitiveColumn, ...]:
        """Return no columns: a sensitive column is treated like a quasi-identifier."""
        return ()
