"""What an owner's policy has against a job, and the policy that has nothing against it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from jobs.errors import PolicyError
from jobs.owner.domains import digest_of_grid, domains_of
from jobs.owner.policy import Domain, Policy
from jobs.owner.refusals import only, starts_none
from jobs.task import Task

_WITHIN: Mapping[str | None, str] = {"strict": "sealed"}
"""A level of which all disclosures are among those of another: who allows the other allows it, too."""


def check_policy(policy: Policy, task: Task, me: str, coordinator: str) -> None:
    """Raise PolicyError listing everything the policy does not allow."""
    objections = list(_objections(policy, task, me, coordinator))
    if objections:
        raise PolicyError("policy-refused", "; ".join(objections), party=me)


def _objections(policy: Policy, task: Task, me: str, coordinator: str) -> Iterator[str]:
    job = task.job
    held = task.held_by(me if me in job.roster else None)
    domains = domains_of(task) if policy.domains else {}
    if coordinator not in policy.coordinators:
        yield starts_none(coordinator)
    if me not in job.roster:
        yield f"{me} is not a party of this job"
    for party in job.roster:
        if party not in (me, *policy.parties):
            yield f"{party} may not take part in a job with us (`policy.parties`)"
    if policy.jobs is not None and task.digest.hex() not in policy.jobs:
        yield f"job {task.digest.hex()} is not among those that are pinned (`policy.jobs`)"
    if me in job.roster:
        yield from _roles(policy, task, me)
    yield from task.partition.objections(job, policy)
    for name in held:
        role = job.columns[name].role
        allowed = policy.columns.get(name, ())
        if role not in allowed:
            raw = ", which publishes it as it is" if role == "plain" else ""
            yield only(f"column {name} may not be used as {role}{raw}", allowed, "columns")
        if name in policy.domains and _digest(name, policy.domains[name]) != domains.get(name):
            yield f"column {name} has another domain than our policy says (`policy.domains`)"
        if job.columns[name].shared_by == me and not policy.share_class:
            yield f"the values of class {name} may not be given to the other parties (`policy.share_class`)"
    yield from task.model.objections(task, policy, held)
    if not {job.disclosure, _WITHIN.get(job.disclosure)} & set(policy.disclosure):
        yield only(f"disclosure {job.disclosure} is not allowed", policy.disclosure, "disclosure")


def _digest(name: str, domain: Domain) -> str:
    return domain if isinstance(domain, str) else digest_of_grid(name, domain)


def _roles(policy: Policy, task: Task, me: str) -> Iterator[str]:
    """What a policy has against those who do what not every party does."""
    job, leader = task.job, task.job.leader_name
    if leader != me and leader not in _leaders(policy, task):
        yield f"{leader} may not lead a job with us (`policy.leaders`)"
    pair = {leader, job.deputy_name}
    others = task.paired and me not in pair
    if others and pair not in map(set, policy.pairs):
        yield f"{leader} and {job.deputy_name} may not be the compute pair of a job with us (`policy.pairs`)"


def _leaders(policy: Policy, task: Task) -> Collection[str]:
    """Who besides us may lead."""
    if policy.leaders is not None:
        return policy.leaders
    return () if task.job.disclosure == "leader" else task.job.roster


def allowance(task: Task, me: str, coordinator: str) -> dict[str, Any]:
    """The settings of a policy of ``me`` that allows this joint job and nothing else."""
    job, held = task.job, task.held_by(me)
    leader, pair = job.leader_name, [job.leader_name, job.deputy_name]
    leads = {"leaders": [leader]} if job.disclosure == "leader" and leader != me else {}
    paired = {"pairs": [pair]} if task.paired and me not in pair else {}
    shared = {"share_class": True} if any(job.columns[name].shared_by == me for name in held) else {}
    return {
        "coordinators": [coordinator],
        "parties": [party for party in job.roster if party != me],
        "columns": {name: [job.columns[name].role] for name in held},
        "disclosure": [job.disclosure],
        **leads,
        **paired,
        **task.model.allowance(task, held),
        **task.partition.allowance(job),
        **shared,
    }
