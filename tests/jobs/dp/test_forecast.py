"""Forecasts of a ledger for DP jobs before they are run."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from jobs.dp.forecast import forecast, spent
from jobs.errors import BudgetError
from jobs.owner.ledger import ChargedJob, PrivacyLedger
from jobs.owner.policy import Policy
from tests.support import jobs
from tests.support.dp_jobs import dp_joint

TASK = jobs.task_of(dp_joint("horizontal"))
JOB = ChargedJob("dp", TASK.job.name, TASK.digest, Fraction(1))


@pytest.fixture
def ledger(tmp_path: Path) -> PrivacyLedger:
    return PrivacyLedger(tmp_path / "privacy.sqlite", "patients")


def policy(most: str | None) -> Policy:
    return Policy.model_validate({} if most is None else {"max_epsilon": "1", "epsilon_budget": most})


def test_what_is_spent_and_left(ledger: PrivacyLedger) -> None:
    ledger.reserve(JOB, None)
    ledger.give_back(ledger.reserve(JOB, None))
    found = spent(ledger.entries(), policy("2.5"))
    assert (found.words, found.fields) == ("epsilon 1 spent, left: 1.5", {"spent": "1", "limit": "5/2"})
    none = spent(ledger.entries(), policy(None))
    assert (none.words, none.fields["limit"]) == ("epsilon 1 spent, left: no DP job is allowed", None)


def test_a_job_beyond_the_budget_is_refused(ledger: PrivacyLedger) -> None:
    assert forecast(ledger, policy("1"), TASK, None) == ""
    assert not ledger.exists  # looking begins none
    ledger.reserve(JOB, None)
    with pytest.raises(BudgetError):
        forecast(ledger, policy("1"), TASK, None)
    assert forecast(ledger, policy(None), TASK, None) == ""  # the policy refuses it, and says why


def test_a_kept_result_costs_nothing(ledger: PrivacyLedger) -> None:
    number = ledger.reserve(JOB, None)
    ledger.open(number)
    ledger.finish(number, b"the counts")
    assert "the result is kept" in forecast(ledger, policy("1"), TASK, None)
