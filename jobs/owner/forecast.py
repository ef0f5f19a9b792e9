"""Forecast of LKC jobs from a privacy ledger: the charged releases, and whether a job may still run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crypto.rng import Rng
from jobs.data.counted import counted
from jobs.data.tables import Loaded, Table
from jobs.errors import PolicyError
from jobs.owner.charge import charged_releases, check_run, limits_of, noted, table_digest
from jobs.owner.composition import Published, Together, check_tested
from jobs.owner.kept import keeps
from jobs.owner.ledger import Entry, History, PrivacyLedger
from jobs.owner.policy import Policy
from jobs.task import Spent, Task


@dataclass(frozen=True)
class Asked:
    """Part of a job for comparison with earlier releases. largest_k: the largest K of its requirements."""

    published: Published
    largest_k: int


def spent(entries: Sequence[Entry], policy: Policy) -> Spent:
    """Return the charged releases and the rest."""
    charged, limit = len(charged_releases(entries)), policy.max_lkc_releases
    return Spent(
        f"LKC releases: {charged} charged, left: {max(limit - charged, 0)}",
        {"lkc_releases": charged, "max_lkc_releases": limit},
    )


def forecast(
    ledger: PrivacyLedger, policy: Policy, task: Task, me: str, table: Table | None, asked: Asked, rng: Rng
) -> str:
    """Forecast in lines a run of the job beside earlier releases. Raises PolicyError if no run is allowed.

    Shows numbers of our own table; for its owner.
    """
    if table is not None and _repeats(ledger, task, me, table, rng):
        return "the result of this job on this table is kept: if all parties keep it, it is given again, uncharged"
    history = ledger.history()
    matched = task.partition.matched
    said = [] if table is None or matched else _few(history, task, table, asked)
    try:
        check_run(history, limits_of(policy), asked.published, matched=matched)
    except PolicyError as error:
        raise _saying(error, said) from error
    return "\n".join([*_pinned(history, policy, asked), *said])


def _saying(error: PolicyError, said: list[str]) -> PolicyError:
    """Return the refusal with more for the owner."""
    problem = error.problem
    private = "; ".join([problem.private, *said]) if problem.private else "; ".join(said)
    return PolicyError(problem.error_id, problem.message, private=private, remedy=problem.remedy)


def _pinned(history: History, policy: Policy, asked: Asked) -> list[str]:
    """Say which columns keep the domains of earlier releases."""
    earlier = [Published.read(content) for content in noted(history)]
    names = [name for name in asked.published.domains if any(name in each.domains for each in earlier)]
    if policy.other_domains or not names:
        return []
    return [f"domains as in earlier releases: {', '.join(names)}"]


def _few(history: History, task: Task, table: Table, asked: Asked) -> list[str]:
    """Say how many of our records stand in small groups of ours over all releases so far."""
    earlier = [Published.read(content) for content in noted(history)]
    if not earlier or not isinstance(table, Loaded):
        return []
    try:
        check_tested(earlier, asked.published)
    except PolicyError as error:
        return [error.problem.message]
    few = Together(table, asked.published, earlier).records_below(asked.largest_k)
    words = ("person", "people") if task.model.reading.per_person(task.job) else ("record", "records")
    in_groups = f"in a group of fewer than K = {asked.largest_k} of ours, over the releases so far"
    return [f"{counted(few, *words)} of ours: {in_groups}"]


def _repeats(ledger: PrivacyLedger, task: Task, me: str, table: Table, rng: Rng) -> bool:
    """Return True if a result of the job on the same table is kept. Looking makes no ledger."""
    if not (keeps(task) and ledger.exists):
        return False
    digest = table_digest(ledger.key(rng), table, task, me, rng)
    return ledger.kept_run(task.digest, digest) is not None
