"""Entries of an LKC job's requirement, completed from the columns, and the implication between entries.

An entry is redundant if a second entry asks at least as much of the same and further columns: a table that meets
the second entry meets the first ([CLU] Observation 3.1). A run does not test a redundant entry, but verifies and
reports the entry.
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
    """Entry of a requirement.

    place:    position in the list, from 0.
    where:    key in the file.
    qid:      all quasi-identifiers of the job.
    columns:  quasi-identifiers of the entry.
    bounds:   C by sensitive column; 1 is no bound.
    options:  demands beside L, K and C.
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
        """True if the entry covers all quasi-identifiers."""
        return set(self.columns) >= set(self.qid)

    @property
    def max_known(self) -> int:
        """L as a number, possibly above the number of columns."""
        return len(self.columns) if isinstance(self.said.L, str) else self.said.L

    @property
    def known(self) -> int:
        """L as far as effective: at most the number of columns."""
        return min(self.max_known, len(self.columns))

    @cached_property
    def by_key(self) -> dict[str, Any]:
        """Options, by key."""
        return {option.key: option for option in self.options}

    @property
    def colluders(self) -> int:
        """Number of parties that may subtract their records from a group."""
        return max((option.colluders for option in self.options), default=0)

    @property
    def diversity(self) -> int:
        """Diversity l of the demand on all sensitive columns; 1 is no demand."""
        return max((option.diversity for option in self.options), default=1)

    def diversity_of(self, name: str) -> int:
        """Return l as far as ``at_most`` allows for a sensitive column: one more than its values in an attack."""
        return max((option.diversity_of(name) for option in self.options), default=1)

    @property
    def looks_together(self) -> bool:
        """True if the entry asks something of several sensitive columns together."""
        return any(option.looks_together for option in self.options)

    @property
    def bounded(self) -> tuple[str, ...]:
        """Sensitive columns with a C below 1."""
        return tuple(name for name, c in self.bounds.items() if c < 1)

    def speaks_of(self, name: str) -> bool:
        """Return True if the entry limits what groups show about a sensitive column."""
        return name in self.bounded or any(option.speaks_of(name) for option in self.options)

    @property
    def asks_something(self) -> bool:
        of_options = any(option.asks_something for option in self.options)
        return self.said.K > 1 or bool(self.bounded) or of_options

    @cached_property
    def demands(self) -> tuple[Demand, ...]:
        """Demands on every group, in the order for messages."""
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
        """Return True if the entry asks for nothing beyond a second entry."""
        return (
            set(self.columns) <= set(other.columns)
            and self.known <= other.known
            and self.said.K <= other.said.K
            and all(c >= other.bounds[name] for name, c in self.bounds.items())
            and all(option.implied_by(other.by_key.get(option.key)) for option in self.options)
        )

    @property
    def who(self) -> str:
        """L and the columns of the entry: "L=2 of age, sex"; "L=2" for all quasi-identifiers."""
        known = f"L={self.said.L if self.said.L == ALL else self.max_known}"
        return known if self.of_all else f"{known} of {', '.join(self.columns)}"

    @property
    def whom(self) -> str:
        """Number and names of columns that an attacker may know: "at most L=2 of age, sex"."""
        if self.said.L != ALL:
            return f"at most {self.who}"
        return f"any of {'the quasi-identifiers' if self.of_all else ', '.join(self.columns)}"

    @property
    def words(self) -> str:
        """L and the demands on groups, in a line."""
        return " ".join([self.who, *(demand.setting for demand in self.demands if demand.setting)])


def entries_read(job: Job) -> tuple[Entry, ...]:
    """Return the entries as far as readers of the release can count again. Readers have the blocks, not the links."""
    return entries_of(job, as_read=True)


def entries_of(job: Job, *, as_read: bool = False) -> tuple[Entry, ...]:
    """Return the entries, in the order of the file.

    as_read:  as far as readers can count again (:func:`entries_read`).
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
    """Return True if the only entry is about the records that print alike in all quasi-identifiers."""
    return len(entries) == 1 and entries[0].of_all and entries[0].known == len(entries[0].columns)


def greatest_k(entries: Sequence[Entry]) -> int:
    return max(entry.said.K for entry in entries)


def covering(entries: Sequence[Entry]) -> dict[int, int]:
    """Map every redundant entry to the non-redundant entry that implies it, by place; of equals the first stays."""
    tested = uncovered(entries)
    return {
        entry.place: next(other.place for other in tested if entry.is_met_with(other))
        for entry in entries
        if entry not in tested
    }


def uncovered(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries that no further entry implies."""
    return tuple(entry for entry in entries if not any(_covers(other, entry) for other in entries))


def _covers(other: Entry, entry: Entry) -> bool:
    if other is entry or not entry.is_met_with(other):
        return False
    return other.place < entry.place or not other.is_met_with(entry)


def least_bounds(entries: Sequence[Entry], names: Collection[str]) -> dict[str, Fraction]:
    """Return the smallest C of all entries for each sensitive column given; 1 without any C."""
    return {name: min(entry.bounds[name] for entry in entries) for name in names}
