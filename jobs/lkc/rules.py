"""Rules of LKC jobs: the requirements of a job on an owner's policy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.file.values import values_of
from jobs.lkc.entries import Entry, entries_of
from jobs.lkc.forms import form as forms
from jobs.lkc.linked_columns import counted_apart
from jobs.lkc.settings import ALL
from jobs.owner.policy import Policy
from jobs.owner.rules import (
    AMONG,
    ANY,
    AT_LEAST,
    PERMITTED,
    REQUIRED,
    Rule,
    Setting,
    confidence_rule,
    objections,
    protection_rule,
)
from jobs.task import Task


def rules(task: Task, held: Collection[str]) -> Iterator[Rule]:
    """Yield the rules of a job: for its requirement, and for C and protected values in the columns ``held``."""
    job = task.job
    names = tuple(name for name in job.names("sensitive") if name in held)
    yield Setting("min_k", ANY, unset="no LKC job is allowed (`policy.min_k` is unset)", stated=False)
    yield _of_entries(job, names)
    if job.partition != "vertical":
        words = "K must count people: the job must say `unit: person`"
        yield Setting("per_person", REQUIRED, job.lkc.unit == PERSON, words)
    yield Setting("methods", AMONG, job.lkc.method, f"method {job.lkc.method} is not allowed")
    written, is_said = forms.release_name(job), job.lkc.release is not None
    yield Setting("releases", AMONG, written, f"release {written} is not allowed", stated=is_said or None)
    if (sums := job.lkc.secure_sum) is not None:
        yield Setting("secure_sum", AMONG, sums, f"counts may not be summed by secure_sum {sums}")
    for name in job.published_clusters:
        words = f"clusters of records may not be published (as {name})"
        yield Setting("cluster_labels", PERMITTED, True, words)
    for name in names:
        yield protection_rule(name, values_of(task, name).protects)


def _of_entries(job: Job, names: Sequence[str]) -> Rule:
    """Return the rule of all entries. names: the owner's sensitive columns."""
    entries = entries_of(job)
    whole = [tuple(_of_entry(job, e, names, _diversity([e], names))) for e in entries if e.of_all]
    least, every = _diversity(entries, names), list[Rule]()
    for entry in entries:
        every += _of_entry(job, entry, [name for name in names if name in entry.bounded], least)
    unbounded = [name for name in names if not any(name in entry.bounded for entry in entries)]
    every += [confidence_rule(name, Fraction(1)) for name in unbounded]
    every += _of_diversity(job, entries, unbounded, least)
    return _Entries(tuple(whole), tuple(every))


@dataclass(frozen=True)
class _Entries:
    """Rules of the nearest entry of all quasi-identifiers; or of every entry, if a policy accepts partial ones.

    whole:  the rules of each entry of all quasi-identifiers.
    every:  the rules of every entry. A sensitive column may lack a C in some entries, but not in all.
    """

    whole: Sequence[Sequence[Rule]]
    every: Sequence[Rule]

    def objections(self, policy: Policy) -> Iterable[str]:
        if policy.partial_requirements:
            return _each_once(objections(self.every, policy))
        return min((list(objections(rules, policy)) for rules in self.whole or [[_PARTIAL]]), key=len)

    def settings(self) -> Sequence[Setting]:
        rules = self.whole[0] if self.whole else (_PARTIAL, *self.every)
        return [setting for rule in rules for setting in rule.settings()]


_PARTIAL = Setting(
    "partial_requirements",
    PERMITTED,
    True,
    "no requirement covers all quasi-identifiers, and partial requirements are not allowed",
)


def _each_once(found: Iterable[str]) -> Iterable[str]:
    """Keep the first of the objections with the same wish on different entries."""
    by_wanted: dict[str, str] = {}
    for each in found:
        by_wanted.setdefault(each.partition(", not ")[0], each)
    return by_wanted.values()


def _of_entry(job: Job, entry: Entry, names: Sequence[str], least: int) -> Iterator[Rule]:
    """Yield the rules of an entry.

    names:  the sensitive columns whose C in the entry counts.
    least:  as in :class:`_Diverse`.
    """
    most = None if entry.of_all and entry.said.L != ALL else len(entry.columns)
    yield Setting("min_k", AT_LEAST, entry.said.K, "K")
    yield Setting("min_l", AT_LEAST, entry.max_known, "L", most=most, stated=True)
    if job.partition == "horizontal":
        yield Setting("min_colluders", AT_LEAST, entry.colluders, "colluders")
    yield from _of_diversity(job, [entry], names, least)
    for name in names:
        yield confidence_rule(name, entry.bounds[name])


def _of_diversity(job: Job, entries: Sequence[Entry], names: Sequence[str], least: int) -> Iterator[Rule]:
    if names:
        yield _Diverse(_least_diversity(entries, names), least, by_block=bool(counted_apart(job)))


@dataclass(frozen=True)
class _Diverse:
    """Least diversity of some sensitive columns, each with the largest l of some entries. A C below 1 counts as 2.

    asked:     the diversity of the columns.
    least:     the job's diversity by the key. The narrowest policy for the job asks for no more.
    by_block:  True if values are ruled out within a single block. Across all blocks at most 2 then holds.
    """

    asked: int
    least: int
    by_block: bool

    def objections(self, policy: Policy) -> Iterator[str]:
        more = _BY_BLOCK if self.by_block and self.asked >= policy.min_diversity else ""
        return self._setting(self.asked, "diversity", more).objections(policy)

    def settings(self) -> Sequence[Setting]:
        return (self._setting(self.least),)

    def _setting(self, asked: int, words: str = "", more: str = "") -> Setting:
        counted = min(asked, 2) if self.by_block else asked
        return Setting("min_diversity", AT_LEAST, counted, words, more=more)


_BY_BLOCK = ": with `link` in a joint job values of one block alone are ruled out, so more than 2 counts as 2"


def _diversity(entries: Sequence[Entry], names: Sequence[str]) -> int:
    """Return the least diversity of entries if all ask for diversity; otherwise 1."""
    is_asked = names and all(entry.diversity > 1 for entry in entries)
    return min(_least_diversity([entry], names) for entry in entries) if is_asked else 1


def _least_diversity(entries: Sequence[Entry], names: Sequence[str]) -> int:
    """Return the diversity that holds for each of some sensitive columns. With a C below 1 no value is certain."""
    return min(max(max(e.diversity_of(n), 2 if e.bounds[n] < 1 else 1) for e in entries) for n in names)
