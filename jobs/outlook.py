"""What a privacy ledger says of LKC jobs: how many releases are charged, and whether a job may still be run."""

from __future__ import annotations

from collections.abc import Sequence

from crypto.rng import Rng
from jobs.charge import charged_releases, check_releases, table_digest
from jobs.data.tables import Table
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
    """Whether the job was charged with this table. Raises PolicyError if no further release is allowed."""
    if table is not None and _repeats(ledger, task, me, table, rng):
        return "this job was charged with this table: if no party's table has changed, it counts once"
    check_releases(ledger.entries(), policy.max_lkc_releases)
    return ""


def _repeats(ledger: PrivacyLedger, task: Task, me: str, table: Table, rng: Rng) -> bool:
    """Whether a charged run of this job had this very table. Looking makes no ledger."""
    if not ledger.exists:
        return False
    digest = table_digest(ledger.key(rng), table, task, me, rng)
    return ledger.charged_run(task.digest, digest) is not None
