"""Forecast of DP jobs from a privacy ledger: the spent ε, and whether a job may still run."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from jobs.data.tables import Table
from jobs.dp.budget import check_bound, largest_sum
from jobs.dp.charge import Epsilon
from jobs.owner.ledger import Entry, PrivacyLedger, spent_in
from jobs.owner.policy import Policy
from jobs.task import Spent, Task


def spent(entries: Sequence[Entry], policy: Policy) -> Spent:
    """Return the spent ε and the rest."""
    charged, limit = spent_in(entries), largest_sum(policy)
    left = "no DP job is allowed" if limit is None else f"{float(max(limit - charged, Fraction(0))):g}"
    return Spent(
        f"epsilon {float(charged):g} spent, left: {left}",
        {"spent": str(charged), "limit": None if limit is None else str(limit)},
    )


def forecast(ledger: PrivacyLedger, policy: Policy, task: Task, table: Table | None) -> str:
    """Say if the result of the job is kept.

    Raises BudgetError if the job exceeds the rest of the budget, DataError if the table exceeds its owner's bound.
    """
    if table is not None:
        check_bound(table, policy.max_rows)
    limit = largest_sum(policy)
    if limit is None:
        return ""  # the policy refuses the job by itself
    charge = Epsilon(ledger, task, limit)
    charge.check()
    if charge.kept is None:
        return ""
    return (
        "the result is kept: if all parties keep the result, a repeated run gives it again and costs nothing"
    )
