"""The entries of an LKC job's requirement, with what its columns say; and which of them another one covers.

An entry that asks of some columns no more than another asks of these and further ones is met whenever that one is
([CLU] Observation 3.1): it is not tested in a run, but verified and reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.criteria.size import Size
from anonymize.lkc.requirement import Ask
from jobs.file.job import Job
from jobs.lkc.options.option import Facts, Option, options_of
from jobs.lkc.settings import ALL, Requirement


@dataclass(frozen=True)
class Entry:
    """One entry.

    place:    in the list, from 0; where: its key in the file.
    qid:      all quasi-identifiers of the job. columns: those it speaks of.
    bounds:   C by sensitive column, 1 being none.
    options:  what it asks for beside L, K and C.
    """

    place: int
    where: str
    said: Requirement
    qid: tuple[str, ...]
    columns: tuple[str, ...]
    bounds: Mapping[str, Fraction] = field(hash=False)
    options: tuple[Option, ...] = ()

    @property
    def of_all(self) -> bool:
        """Return True if the entry speaks of all quasi-identifiers."""
        return set(self.columns) >= set(self.qid)

    @property
    def max_known(self) -> int:
        """L as a number; it may be above that of the columns."""
        return len(self.columns) if isinstance(self.said.L, str) else self.said.L

    @property
    def known(self) -> int:
        """L as far as it has effect: nobody knows more columns than there are."""
        return min(self.max_known, len(self.columns))

    @cached_property
    def by_key(self) -> dict[str, Any]:
        """The options, by key."""
        return {option.key: option for option in self.options}

    @property
    def colluders(self) -> int:
        """Return the number of parties that may subtract their records from a group."""
        return max((option.colluders for option in self.options), default=0)

    @property
    def diversity(self) -> int:
        """l of what is asked of all sensitive columns; 1 is nothing."""
        return max((option.diversity for option in self.options), default=1)

    def diversity_of(self, name: str) -> int:
        """l as far as ``at_most`` leaves it for a sensitive column: one more than its values in one attack."""
        return max((option.diversity_of(name) for option in self.options), default=1)

    @property
    def looks_together(self) -> bool:
        """Return True if the entry asks something of several sensitive columns together."""
        return any(option.looks_together for option in self.options)

    @property
    def bounded(self) -> tuple[str, ...]:
        """The sensitive columns that it has a C below 1 for."""
        return tuple(name for name, c in self.bounds.items() if c < 1)

    def speaks_of(self, name: str) -> bool:
        """Return whether it bounds what groups tell about a sensitive column."""
        return name in self.bounded or any(option.speaks_of(name) for option in self.options)

    @property
    def asks_something(self) -> bool:
        of_options = any(option.asks_something for option in self.options)
        return self.said.K > 1 or bool(self.bounded) or of_options

    @cached_property
    def demands(self) -> tuple[Demand, ...]:
        """Return the demands on every group, in the order in which they are told."""
        most = None if isinstance(self.said.C, Mapping) else self.said.C
        asked: tuple[Demand, ...] = (Size(self.said.K), Confidences(most, tuple(self.bounds.items())))
        for option in self.options:
            asked = option.demanded(asked)
        return asked

    @property
    def ask(self) -> Ask:
        columns = None if self.of_all else self.columns
        return Ask(self.max_known, self.demands, columns, f"{self.words} ({self.where})")

    def is_met_with(self, other: Entry) -> bool:
        """Return True if the entry asks for nothing that another entry does not ask for."""
        return (
            set(self.columns) <= set(other.columns)
            and self.known <= other.known
            and self.said.K <= other.said.K
            and all(c >= other.bounds[name] for name, c in self.bounds.items())
            and all(option.implied_by(other.by_key.get(option.key)) for option in self.options)
        )

    @property
    def who(self) -> str:
        """Of what it speaks: "L=2 of age, sex"; of all quasi-identifiers "L=2"."""
        known = f"L={self.said.L if self.said.L == ALL else self.max_known}"
        return known if self.of_all else f"{known} of {', '.join(self.columns)}"

    @property
    def whom(self) -> str:
        """Say how many of which columns somebody may know: "at most L=2 of age, sex"."""
        if self.said.L != ALL:
            return f"at most {self.who}"
        return f"any of {'the quasi-identifiers' if self.of_all else ', '.join(self.columns)}"

    @property
    def words(self) -> str:
        """L and what groups must meet, in a line."""
        return " ".join([self.who, *(demand.setting for demand in self.demands if demand.setting)])


def entries_read(job: Job) -> tuple[Entry, ...]:
    """The entries as far as readers of the release can count them again, who have its blocks and not their links."""
    return entries_of(job, as_read=True)


def entries_of(job: Job, *, as_read: bool = False) -> tuple[Entry, ...]:
    """The entries, in the order of the file.

    as_read:  as far as readers can count them again (:func:`entries_read`).
    """
    own = {name: job.columns[name].C for name in job.names("sensitive")}
    limits = {name: job.columns[name].at_most for name in job.names("sensitive")}
    at_most = {name: limit for name, limit in limits.items() if limit is not None}
    qid, found = job.names("qid"), []
    for place, (where, said) in enumerate(job.lkc.entries):
        columns = qid if said.columns is None else tuple(name for name in qid if name in said.columns)
        bounds = said.bounds(own)
        facts = Facts(where, job, bounds, at_most, as_read)
        options = options_of(said, facts)
        found.append(Entry(place, where, said, qid, columns, bounds, options))
    return tuple(found)


def is_one_of_all(entries: Sequence[Entry]) -> bool:
    """Return True if all that is asked is asked of the records that print alike in all quasi-identifiers."""
    return len(entries) == 1 and entries[0].of_all and entries[0].known == len(entries[0].columns)


def greatest_k(entries: Sequence[Entry]) -> int:
    return max(entry.said.K for entry in entries)


def covering(entries: Sequence[Entry]) -> dict[int, int]:
    """By place of each entry that another one covers the place of that one, which none covers; of equals the first
    stays.
    """
    tested = uncovered(entries)
    return {
        entry.place: next(other.place for other in tested if entry.is_met_with(other))
        for entry in entries
        if entry not in tested
    }


def uncovered(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries that no other one covers."""
    return tuple(entry for entry in entries if not any(_covers(other, entry) for other in entries))


def _covers(other: Entry, entry: Entry) -> bool:
    if other is entry or not entry.is_met_with(other):
        return False
    return other.place < entry.place or not other.is_met_with(entry)


def least_bounds(entries: Sequence[Entry], names: Collection[str]) -> dict[str, Fraction]:
    """The smallest C that any entry has for each of some sensitive columns; 1 where none has one."""
    return {name: min(entry.bounds[name] for entry in entries) for name in names}
