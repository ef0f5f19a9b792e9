"""How an owner's policy says what it has against a job: what it wants, what the job asks, and the key that says so.

Who else is listed in a policy, and which values it protects, is not told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import Any

from jobs.file.values import values_of
from jobs.owner.policy import Policy
from jobs.task import Task

_NOT = ", not "


def none_allowed(model: str) -> str:
    """model: what a job asks that has a K."""
    return f"no {model} job is allowed (`policy.min_k` is unset)"


def too_small(what: str, least: Any, asked: Any, key: str) -> str:
    return f"{what} must be at least {least}{_NOT}{asked} (`policy.{key}`)"


def too_large(what: str, most: Any, asked: Any, key: str) -> str:
    return f"{what} must be at most {most}{_NOT}{asked} (`policy.{key}`)"


def each_once(found: Iterable[str]) -> list[str]:
    """Of those that want the same of different requirements the first."""
    by_wanted: dict[str, str] = {}
    for each in found:
        by_wanted.setdefault(each.partition(_NOT)[0], each)
    return list(by_wanted.values())


def only(what: str, allowed: Collection[str], key: str) -> str:
    """what: that the job asks something, and that it may not."""
    instead = f", only {' or '.join(allowed)}" if allowed else ""
    return f"{what}{instead} (`policy.{key}`)"


def starts_none(caller: str) -> str:
    return f"{caller} may not start jobs here (`policy.coordinators`)"


def too_confident(name: str, asked: Fraction, policy: Policy) -> Iterator[str]:
    """What is against the C of a sensitive column."""
    if policy.max_c is None:
        yield f"sensitive column {name}: no C is allowed (`policy.max_c` is unset)"
    elif asked > policy.max_c:
        yield too_large(f"sensitive column {name}: C", policy.max_c, asked, "max_c")


def unprotected(task: Task, name: str, policy: Policy) -> Iterator[str]:
    """What is against the protected values of a sensitive column."""
    if not all(map(values_of(task, name).protects, policy.protected.get(name, ()))):
        yield f"sensitive column {name}: values that must be protected are not (`policy.protected`)"
