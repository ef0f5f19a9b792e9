"""Rest of a data set for further jobs, as the owner's ledger and policy say."""

from __future__ import annotations

from anonymize.errors import DataError
from crypto.rng import SystemRng
from jobs.data.tables import Table
from jobs.errors import BudgetError, PartyError, PolicyError, problem_of
from jobs.owner.answers import Answers, check_answers
from jobs.task import Task
from party.owner.config import PartyConfig


def left(
    config: PartyConfig, task: Task, coordinator: str, table: Table | None = None
) -> tuple[list[str], PartyError | DataError | None]:
    """Say what the owner's ledger leaves for a job; return the lines, and the error that refuses the job, if any.

    table:  of pass 1, if it was read.
    """
    ledger, policy, model = config.ledger.asked_by(coordinator), config.policy, task.model
    lines: list[str] = []
    try:
        lines.append(model.charges.spent(ledger.entries(), policy).words)
        lines.append(Answers(ledger, policy).words())
    except BudgetError as error:
        problem = error.problem
        return [*lines, f"{problem.error_id}: {problem.message} [{problem.cause}]"], error
    try:
        known = model.charges.forecast(ledger, policy, task, config.name, table, SystemRng())
        check_answers(ledger, policy, task, config.source)
    except (BudgetError, PolicyError, DataError) as error:
        problem = problem_of(error)
        return [*lines, f"{problem.error_id}: {problem.message}", *filter(None, [problem.private])], error
    return [*lines, *known.splitlines()], None
