"""Rules of a policy: the request of a job under a key, and the permitting values of the key.

A rule is written once and read in two ways: :func:`objections` returns a policy's objections to a job, and
:func:`allowance` the policy that allows just the job. No sentence tells further entries or protected values of a
policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import eq, ge, le
from typing import Any, Protocol

from jobs.owner.policy import Policy


class Rule(Protocol):
    """Part of a job's requirements on a policy."""

    def objections(self, policy: Policy) -> Iterable[str]:
        """Return a sentence for each request against the policy."""
        ...

    def settings(self) -> Sequence[Setting]:
        """Return the settings of a policy for just the job."""
        ...


@dataclass(frozen=True)
class Comparison:
    """Comparison of a job's request with the value of a key in a policy.

    allows:   returns True if a request and a value of the policy agree.
    loosest:  returns the value, in the form of files, that just allows several requests.
    usual:    returns True if the policy that allows just the job may leave out a value. Takes the default, too.
    refusal:  returns the refusal of a rule by a value of the policy.
    """

    allows: Callable[[Any, Any], bool]
    loosest: Callable[[Sequence[Any]], Any]
    usual: Callable[[Any, Any], bool]
    refusal: Callable[[Setting, Any], str]


@dataclass(frozen=True)
class Setting:
    """Rule about a key of a policy.

    asked:   the request of the job.
    words:   the name of the compared quantity, or the whole refusal.
    column:  the column, for a key with a value for each column.
    most:    the largest value that makes sense for the job: a larger value of the policy counts as this value.
    unset:   the refusal by a policy without a value; empty: such a policy allows the job.
    whose:   words after the value of the policy in a refusal.
    more:    the end of the refusal.
    stated:  True if the policy that allows just the job has the key, False if not; None: unless the value is usual.
    """

    key: str
    compared: Comparison
    asked: Any = None
    words: str = ""
    column: str | None = None
    most: int | None = None
    unset: str = ""
    whose: str = ""
    more: str = ""
    stated: bool | None = None

    def objections(self, policy: Policy) -> Iterator[str]:
        allowed = self.value(policy)
        if allowed is None:
            if self.unset:
                yield self.unset
        elif not self.compared.allows(self.asked, allowed):
            yield f"{self.compared.refusal(self, allowed)} (`policy.{self.key}`){self.more}"

    def settings(self) -> Sequence[Setting]:
        return () if self.stated is False else (self,)

    def value(self, policy: Policy) -> Any:
        """Return a policy's value as far as relevant to the job, or None."""
        value = getattr(policy, self.key)
        if self.column is not None:
            return value.get(self.column, ())
        return value if self.most is None else min(value, self.most)


def _bound(rule: Setting, words: str, allowed: Any) -> str:
    return f"{rule.words} must be {words} {allowed}{rule.whose}, not {rule.asked}"


def _only(rule: Setting, allowed: Sequence[str]) -> str:
    return f"{rule.words}, only {' or '.join(allowed)}" if allowed else rule.words


def _are_in(values: Sequence[Any], default: Sequence[Any]) -> bool:
    return all(each in default for each in values)


AT_LEAST = Comparison(ge, min, eq, lambda rule, least: _bound(rule, "at least", least))
"""Comparison: the request is at least the value of the policy."""
AT_MOST = Comparison(le, max, le, lambda rule, most: _bound(rule, "at most", most))
AT_MOST_EXACTLY = replace(AT_MOST, loosest=lambda asked: str(max(asked)), usual=lambda value, default: False)
"""Comparison of fractions: the request is at most the value of the policy."""
REQUIRED = replace(AT_LEAST, refusal=lambda rule, _: rule.words)
"""Comparison: the job has the property that the policy may require."""
PERMITTED = replace(AT_MOST, refusal=lambda rule, _: rule.words)
"""Comparison: the policy permits a property that the job may have."""
LISTED = Comparison(lambda asked, among: asked in among, list, _are_in, lambda rule, _: rule.words)
"""Comparison: the policy lists the job's request."""
AMONG = replace(LISTED, refusal=_only)
"""Comparison: the policy lists the job's request, and a refusal quotes the list."""
ANY = replace(LISTED, allows=lambda asked, allowed: True, loosest=lambda asked: asked[0], usual=eq)
"""No value of the key refuses a job."""
PROTECTED = replace(LISTED, allows=lambda protects, listed: all(map(protects, listed)))
"""Comparison: the job protects the policy's listed values."""


def confidence_rule(name: str, bound: Fraction) -> Setting:
    """Return the rule of the C of a sensitive column."""
    column = f"sensitive column {name}"
    unset = f"{column}: no C is allowed (`policy.max_c` is unset)"
    return Setting("max_c", AT_MOST_EXACTLY, bound, f"{column}: C", unset=unset)


def protection_rule(name: str, protects: Callable[[str], bool]) -> Setting:
    """Return the rule of the protected values of a sensitive column."""
    words = f"sensitive column {name}: values that must be protected are not"
    return Setting("protected", PROTECTED, protects, words, column=name, stated=False)


def unprotected(rules: Iterable[Rule], policy: Policy) -> Iterator[str]:
    """Yield the values that the policy protects and the job does not, for the owner alone."""
    for rule in rules:
        if isinstance(rule, Setting) and rule.compared is PROTECTED:
            yield from (f"{rule.column} = {each!r}" for each in rule.value(policy) if not rule.asked(each))


def coordinator_rule(name: str) -> Setting:
    """Return the rule of the coordinators allowed to start jobs."""
    return Setting("coordinators", LISTED, name, f"{name} may not start jobs here")


def objections(rules: Iterable[Rule], policy: Policy) -> Iterator[str]:
    """Yield a policy's objections to a job with the given rules."""
    for rule in rules:
        yield from rule.objections(policy)


def allowance(rules: Iterable[Rule]) -> dict[str, Any]:
    """Return the settings of a policy for a job with the given rules and nothing more."""
    by_place: dict[tuple[str, str | None], list[Setting]] = {}
    for setting in (each for rule in rules for each in rule.settings()):
        by_place.setdefault((setting.key, setting.column), []).append(setting)
    found: dict[str, Any] = {}
    for (key, column), (first, *others) in by_place.items():
        value = first.compared.loosest([first.asked, *(each.asked for each in others)])
        if first.stated or not first.compared.usual(value, first.value(_UNSAID)):
            within = found if column is None else found.setdefault(key, {})
            within[key if column is None else column] = value
    return found


_UNSAID = Policy()
"""Policy without a statement."""
