"""What an owner's policy says of LKC jobs: what it refuses of one, and which policy allows just that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import Any

from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.lkc.blocks import counted_apart
from jobs.lkc.entries import Entry, entries_of
from jobs.lkc.forms import form as forms
from jobs.lkc.settings import TOP_DOWN
from jobs.owner.policy import Policy
from jobs.owner.refusals import each_once, none_allowed, only, too_confident, too_small, unprotected
from jobs.task import Task


def objections(task: Task, policy: Policy, held: Collection[str]) -> Iterator[str]:
    """What a policy does not allow of L, K and `colluders`, of C and the protected values in the columns ``held``.

    It must be allowed of one entry of all quasi-identifiers; where the policy accepts partial requirements, of every
    entry.
    """
    job = task.job
    entries, names = entries_of(job), _sensitive(job, held)
    if policy.min_k is None:
        yield none_allowed("LKC")
    if policy.partial_requirements:
        yield from _of_every_entry(job, entries, policy, names)
    else:
        yield from _of_one_entry(job, entries, policy, names)
    if policy.per_person and job.partition != "vertical" and job.lkc.unit != PERSON:
        yield "K must count people: the job must say `unit: person` (`policy.per_person`)"
    if job.lkc.method not in policy.methods:
        yield only(f"method {job.lkc.method} is not allowed", policy.methods, "methods")
    if (written := forms.release_name(job)) not in policy.releases:
        yield only(f"release {written} is not allowed", policy.releases, "releases")
    if (sums := job.lkc.secure_sum) not in (None, *policy.secure_sum):
        yield only(f"counts may not be summed by secure_sum {sums}", policy.secure_sum, "secure_sum")
    for name in job.published_clusters:
        if not policy.cluster_labels:
            yield f"clusters of records may not be published (as {name}) (`policy.cluster_labels`)"
    for name in names:
        yield from unprotected(task, name, policy)


def _of_one_entry(job: Job, entries: Sequence[Entry], policy: Policy, names: Sequence[str]) -> list[str]:
    """What is against the entry of all quasi-identifiers that comes nearest."""
    against = [_of_entry(job, entry, policy, names) for entry in entries if entry.of_all]
    if not against:
        return [
            "no requirement is of all quasi-identifiers, and partial requirements are not allowed "
            "(`policy.partial_requirements`)"
        ]
    return min(against, key=len)


def _of_every_entry(job: Job, entries: Sequence[Entry], policy: Policy, names: Sequence[str]) -> list[str]:
    """What is against any entry, each once; a sensitive column may be without a C in some of them, but not in all."""
    found = [each for e in entries for each in _of_entry(job, e, policy, _bounded_of(e, names))]
    found += [each for n in _unbounded(entries, names) for each in too_confident(n, Fraction(1), policy)]
    found += _too_uniform(job, entries, policy, _unbounded(entries, names))
    return each_once(found)


def _too_uniform(job: Job, entries: Sequence[Entry], policy: Policy, names: Sequence[str]) -> list[str]:
    """What is against the diversity of sensitive columns: the largest of some entries, where C below 1 is 2."""
    least, by_block = policy.min_diversity, bool(counted_apart(job))
    asked = _least_diversity(entries, names, by_block=by_block) if names else least
    if asked >= least:
        return []
    refused = too_small("diversity", least, asked, "min_diversity")
    if by_block and _least_diversity(entries, names) >= least:
        refused += (
            ": with `link` in a joint job values of one block alone are ruled out, so more than 2 counts as 2"
        )
    return [refused]


def _least_diversity(entries: Sequence[Entry], names: Sequence[str], *, by_block: bool = False) -> int:
    """What each of some sensitive columns, one at least, can count on; where C is below 1 no value is certain.

    by_block:  values are ruled out of one block alone, so that of all blocks nothing more holds than that.
    """
    found = {
        name: max(max(e.diversity_of(name), 2 if e.bounds[name] < 1 else 1) for e in entries)
        for name in names
    }
    least = min(found.values())
    return min(least, 2) if by_block else least


def _bounded_of(entry: Entry, names: Sequence[str]) -> list[str]:
    return [name for name in names if name in entry.bounded]


def _unbounded(entries: Sequence[Entry], names: Sequence[str]) -> list[str]:
    """The sensitive columns that no entry has a C below 1 for."""
    return [name for name in names if not any(name in entry.bounded for entry in entries)]


def _of_entry(job: Job, entry: Entry, policy: Policy, names: Sequence[str]) -> list[str]:
    """What is against one entry; names: the sensitive columns whose C in it counts."""
    found = []
    if policy.min_k is not None and entry.said.K < policy.min_k:
        found.append(too_small("K", policy.min_k, entry.said.K, "min_k"))
    least = policy.min_l if entry.of_all else min(policy.min_l, len(entry.columns))
    if entry.max_known < least:
        found.append(too_small("L", least, entry.max_known, "min_l"))
    if job.partition == "horizontal" and entry.colluders < policy.min_colluders:
        found.append(too_small("colluders", policy.min_colluders, entry.colluders, "min_colluders"))
    found += _too_uniform(job, [entry], policy, names)
    of_columns = (too_confident(name, entry.bounds[name], policy) for name in names)
    return [*found, *(each for of_column in of_columns for each in of_column)]


def _sensitive(job: Job, held: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in job.names("sensitive") if name in held)


def allowance(job: Job, held: Collection[str]) -> dict[str, Any]:
    """The settings of a policy that allows just this: by the first entry of all quasi-identifiers, if any is."""
    entries, names = entries_of(job), _sensitive(job, held)
    whole = [entry for entry in entries if entry.of_all][:1]
    if whole:
        entries, partial = tuple(whole), {}
        bounds = [whole[0].bounds[name] for name in names]
    else:
        partial = {"partial_requirements": True}
        bounds = [entry.bounds[name] for entry in entries for name in _bounded_of(entry, names)]
        bounds += [Fraction(1) for _ in _unbounded(entries, names)]
    largest = {"max_c": str(max(bounds))} if bounds else {}
    sums = {"secure_sum": ["ring"]} if job.lkc.secure_sum == "ring" else {}
    colluders = {"min_colluders": most} if (most := min(entry.colluders for entry in entries)) else {}
    is_asked = names and all(entry.diversity > 1 for entry in entries)
    apart = bool(counted_apart(job))
    diverse = min(_least_diversity([entry], names, by_block=apart) for entry in entries) if is_asked else 1
    diversity: dict[str, Any] = {"min_diversity": diverse} if diverse > 1 else {}
    least = {"min_l": min(e.max_known for e in entries), "min_k": min(e.said.K for e in entries)}
    people = {"per_person": True} if job.lkc.unit == PERSON else {}
    clusters = {"cluster_labels": True} if job.published_clusters else {}
    method = {} if job.lkc.method == TOP_DOWN else {"methods": [job.lkc.method]}
    written = {} if job.lkc.release is None else {"releases": [job.lkc.release]}
    return {
        **least,
        **people,
        **largest,
        **diversity,
        **colluders,
        **partial,
        **sums,
        **clusters,
        **method,
        **written,
    }
