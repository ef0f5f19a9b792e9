"""What a privacy ledger says of LKC jobs: how many releases are charged, and whether a job may still be run."""

from __future__ import annotations

from collections.abc import Sequence

from crypto.rng import Rng
from jobs.charge import charged_releases, check_releases, table_digest
from jobs.data.tables import Table
from jobs.kept import keeps
from jobs.ledger import Entry, PrivacyLedger
from jobs.policy import Policy
from jobs.task import Spent, Task


def spent(entries: Sequence[Entry], policy: Policy) -> Spent:
    """Releases charged and left."""
    charged, limit = len(charged_releases(entries)), policy.max_lkc_releases
    left = "no limit" if limit is None else f"left: {max(limit - charged, 0)}"
    return Spent(
        f"LKC releases: {charged} charged, {left}", {"lkc_releases": charged, "max_lkc_releases": limit}
    )


def outlook(ledger: PrivacyLedger, policy: Policy, task: Task, me: str, table: Table | None, rng: Rng) -> str:
    """Say whether a result of the job is kept. Raises PolicyError if no further release is allowed."""
    if table is not None and _repeats(ledger, task, me, table, rng):
        return "the result of this job on this table is kept: if all parties keep it, it is given again, uncharged"
    check_releases(ledger.entries(), policy.max_lkc_releases)
    return ""


def _repeats(ledger: PrivacyLedger, task: Task, me: str, table: Table, rng: Rng) -> bool:
    """Return whether a result of this job on this very table is kept. Looking makes no ledger."""
    if not (keeps(task) and ledger.exists):
        return False
    digest = table_digest(ledger.key(rng), table, task, me, rng)
    return ledger.kept_run(task.digest, digest) is not None
