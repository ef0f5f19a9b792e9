"""The owner's policy: everything a job asks for must be listed, or it is refused (DESIGN §9)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from party.config import Policy
from party.errors import PolicyError
from party.job import Job


def check_policy(policy: Policy, job: Job, me: str, coordinator: str) -> None:
    """Raise PolicyError listing everything the policy does not allow."""
    objections = list(_objections(policy, job, me, coordinator))
    if objections:
        raise PolicyError("policy-refused", "; ".join(objections), party=me)


def _objections(policy: Policy, job: Job, me: str, coordinator: str) -> Iterator[str]:
    if coordinator not in policy.coordinators:
        yield f"{coordinator} may not start jobs here"
    if me not in job.roster:
        yield f"{me} is not a party of this job"
    for party in job.roster:
        if party not in (me, *policy.parties):
            yield f"{party} may not take part in a job with us"
    if job.partition == "vertical":
        yield from _matching(policy, job)
    held = job.held_by(me) if me in job.roster else tuple(job.columns)
    for name in held:
        role = job.columns[name].role
        if role not in policy.columns.get(name, ()):
            yield f"column {name} may not be used as {role}"
        if job.columns[name].shared_by == me and not policy.share_class:
            yield f"the values of class {name} may not be given to the other parties"
    yield from _sizes(policy, job)
    for name in (name for name in job.names("sensitive") if name in held):
        yield from _confidence(policy.max_c, name, job.columns[name].C or job.model.lkc.C)
        if set(policy.protected.get(name, ())) - set(job.columns[name].protected):
            yield f"sensitive column {name}: values that must be protected are not"
    if job.disclosure not in policy.disclosure:
        yield f"disclosure {job.disclosure} is not allowed"


def _matching(policy: Policy, job: Job) -> Iterator[str]:
    if not policy.match_ids:
        yield "ids may not be matched with those of other parties"
    if policy.require_insider and not job.insider:
        yield "vertical jobs need `insider: true`"


def _confidence(allowed: Fraction | None, name: str, asked: Fraction) -> Iterator[str]:
    if allowed is None:
        yield f"sensitive column {name}: no C is allowed"
    elif asked > allowed:
        yield f"sensitive column {name}: C must be at most {allowed}"


def _sizes(policy: Policy, job: Job) -> Iterator[str]:
    asked = job.model.lkc
    if policy.min_k is None:
        yield "no LKC job is allowed"
    elif asked.K < policy.min_k:
        yield f"K must be at least {policy.min_k}"
    if asked.L < policy.min_l:
        yield f"L must be at least {policy.min_l}"
