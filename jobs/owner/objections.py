"""Policy of an owner and a job: the policy's objections, and the policy without objections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobs.errors import PolicyError
from jobs.owner import rules
from jobs.owner.domains import digest_of_grid, domain_of
from jobs.owner.policy import Domain, Policy
from jobs.owner.rules import AMONG, LISTED, PERMITTED, Rule, Setting, coordinator_rule, unprotected
from jobs.task import Task


def check_policy(policy: Policy, task: Task, me: str, coordinator: str) -> None:
    """Raise PolicyError listing everything the policy does not allow."""
    asked = list(_rules(task, me, coordinator))
    objections = list(rules.objections(asked, policy))
    if objections:
        private = ", ".join(unprotected(asked, policy))
        private = private and f"not protected: {private}; a value must be spelled as in the job"
        raise PolicyError("policy-refused", "; ".join(objections), party=me, private=private)


def allowance(task: Task, me: str, coordinator: str) -> dict[str, Any]:
    """Return the settings of a policy of ``me`` for the joint job and nothing else."""
    return rules.allowance(_rules(task, me, coordinator))


def _rules(task: Task, me: str, coordinator: str) -> Iterator[Rule]:
    job, is_party = task.job, me in task.job.roster
    held = task.held_by(me if is_party else None)
    yield coordinator_rule(coordinator)
    if not is_party:
        yield _Stranger(me)
    for party in job.roster:
        if party != me:
            yield Setting("parties", LISTED, party, f"{party} may not take part in a job with us")
    yield _Pinned(task.digest.hex())
    if is_party:
        yield from _of_roles(task, me)
    yield from task.partition.rules(job)
    for name in held:
        yield from _of_column(task, name, me)
    yield from task.model.rules(task, held)
    yield Setting("disclosure", _LEVEL, job.disclosure, f"disclosure {job.disclosure} is not allowed")


@dataclass(frozen=True)
class _Stranger:
    """Owner who is no party of a job, and can have no policy for the job."""

    me: str

    def objections(self, policy: Policy) -> tuple[str, ...]:
        return (f"{self.me} is not a party of the job",)

    def settings(self) -> tuple[Setting, ...]:
        return ()


@dataclass(frozen=True)
class _Pinned:
    """Rule on the jobs that an owner pins. If the owner approves jobs, a job that is not pinned waits instead."""

    digest: str

    def objections(self, policy: Policy) -> Iterator[str]:
        if policy.approval == "automatic":
            words = f"job {self.digest} is not among the pinned jobs"
            yield from Setting("jobs", LISTED, self.digest, words).objections(policy)

    def settings(self) -> tuple[Setting, ...]:
        return ()


def _of_roles(task: Task, me: str) -> Iterator[Rule]:
    """Yield rules on the roles of particular parties."""
    leader, deputy = task.job.leader_name, task.job.deputy_name
    if leader != me:
        words, learns = f"{leader} may not lead a job with us", task.job.disclosure == "leader"
        unset = f"{words} (`policy.leaders`)" if learns else ""
        yield Setting("leaders", LISTED, leader, words, unset=unset, stated=learns)
    if task.paired and me not in (leader, deputy):
        words = f"{leader} and {deputy} may not be the compute pair of a job with us"
        yield Setting("pairs", _PAIR, [leader, deputy], words)


_PAIR = replace(LISTED, allows=lambda pair, pairs: set(pair) in map(set, pairs))


def _of_column(task: Task, name: str, me: str) -> Iterator[Rule]:
    role = task.job.columns[name].role
    raw = ", which publishes the column unchanged" if role == "plain" else ""
    yield Setting("columns", AMONG, role, f"column {name} may not be used as {role}{raw}", column=name)
    words = f"the domain of column {name} differs from our policy"
    yield Setting("domains", _DOMAIN, (task, name), words, column=name, stated=False)
    if task.job.columns[name].shared_by == me:
        words = f"the values of class {name} may not be given to peers"
        yield Setting("share_class", PERMITTED, True, words)


def _has_domain(of: tuple[Task, str], pinned: Domain | None) -> bool:
    task, name = of
    if not pinned:
        return True
    return domain_of(task, name) == (pinned if isinstance(pinned, str) else digest_of_grid(name, pinned))


_DOMAIN = replace(LISTED, allows=_has_domain)
_WITHIN: Mapping[str, str] = {"strict": "sealed"}
"""Looser level that includes all disclosures of a stricter level: a policy with the first allows the second."""
_LEVEL = replace(AMONG, allows=lambda level, levels: not {level, _WITHIN.get(level)}.isdisjoint(levels))
