"""The entries of an LKC job's requirement, with what its columns say; and which of them another one covers.

An entry that asks of some columns no more than another asks of these and further ones is met whenever that one is
([CLU] Observation 3.1): it is not tested in a run, but verified and reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from anonymize.blocks import Blocks
from anonymize.criteria.closeness import CloseValues
from anonymize.criteria.criterion import Demand
from anonymize.criteria.persons import Persons
from anonymize.criteria.size import Size
from anonymize.lkc.requirement import Ask
from jobs.file.columns import ORDERED
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.lkc.blocks import blocks_of, ruled_together
from jobs.lkc.settings import ALL, Requirement


@dataclass(frozen=True)
class Entry:
    """One entry.

    place:    in the list, from 0; where: its key in the file.
    qid:      all quasi-identifiers of the job. columns: those it speaks of.
    bounds:   C by sensitive column, 1 being none. at_most: by sensitive column that says one.
    blocks:   the sensitive columns that are looked at together.
    distances:  t by sensitive column that has one below 1. ordered: the columns whose values lie in a row.
    counts_people: whether K is one of people, not of records.
    """

    place: int
    where: str
    said: Requirement
    qid: tuple[str, ...]
    columns: tuple[str, ...]
    bounds: Mapping[str, Fraction] = field(hash=False)
    at_most: Mapping[str, int] = field(hash=False)
    distances: Mapping[str, Fraction] = field(hash=False)
    ordered: frozenset[str] = frozenset()
    blocks: Blocks = ()
    counts_people: bool = False

    @property
    def of_all(self) -> bool:
        """Whether it speaks of all quasi-identifiers."""
        return set(self.columns) >= set(self.qid)

    @property
    def max_known(self) -> int:
        """L as a number; it may be above that of the columns."""
        return len(self.columns) if isinstance(self.said.L, str) else self.said.L

    @property
    def known(self) -> int:
        """L as far as it has effect: nobody knows more columns than there are."""
        return min(self.max_known, len(self.columns))

    @property
    def colluders(self) -> int:
        return self.said.colluders or 0

    @property
    def diversity(self) -> int:
        """l of what is asked of all sensitive columns; 1 is nothing."""
        return self.said.diversity or 1

    def diversity_of(self, name: str) -> int:
        """l as far as ``at_most`` leaves it for a sensitive column: one more than its values in one attack."""
        return min(self.diversity, self.at_most.get(name, self.diversity) + 1)

    @property
    def most_together(self) -> int:
        """How many values are ruled out and inferred together at most: 0 without `ruled_out` and `diversity`."""
        return max(self.said.ruled_out + 1 if self.said.ruled_out else 0, self.diversity - 1)

    @property
    def looks_together(self) -> bool:
        """Whether it asks something of several sensitive columns together."""
        return bool(self.said.ruled_out) or self.diversity > 2

    @property
    def bounded(self) -> tuple[str, ...]:
        """The sensitive columns that it has a C below 1 for."""
        return tuple(name for name, c in self.bounds.items() if c < 1)

    @property
    def asks_something(self) -> bool:
        said = self.said
        of_values = said.distinct is not None or said.diversity is not None or bool(self.distances)
        return said.K > 1 or bool(self.bounded) or of_values

    @cached_property
    def demands(self) -> tuple[Demand, ...]:
        """What every group must meet, in the order in which it is told."""
        close = None if self.said.t is None else CloseValues(tuple(self.distances.items()), self.ordered)
        asked = self.said.demands(self.bounds, self.at_most, self.blocks, close)
        if not self.counts_people:
            return asked
        return tuple(Persons(demand.least) if isinstance(demand, Size) else demand for demand in asked)

    @property
    def ask(self) -> Ask:
        columns = None if self.of_all else self.columns
        return Ask(self.max_known, self.demands, columns, f"{self.words} ({self.where})")

    def is_met_with(self, other: Entry) -> bool:
        """Whether it asks for nothing that another entry does not ask for."""
        least, of_other = self.said.distinct or {}, other.said.distinct or {}
        return (
            set(self.columns) <= set(other.columns)
            and self.known <= other.known
            and self.said.K <= other.said.K
            and self.colluders <= other.colluders
            and (self.said.ruled_out or 0) <= (other.said.ruled_out or 0)
            and all(c >= other.bounds[name] for name, c in self.bounds.items())
            and all(n <= of_other.get(name, 1) for name, n in least.items())
            and all(t >= other.distances.get(name, 1) for name, t in self.distances.items())
            and self.diversity <= other.diversity
        )

    @property
    def who(self) -> str:
        """Of what it speaks: "L=2 of age, sex"; of all quasi-identifiers "L=2"."""
        known = f"L={self.said.L if self.said.L == ALL else self.max_known}"
        return known if self.of_all else f"{known} of {', '.join(self.columns)}"

    @property
    def whom(self) -> str:
        """How many of which columns somebody may know: "at most L=2 of age, sex"."""
        if self.said.L != ALL:
            return f"at most {self.who}"
        return f"any of {'the quasi-identifiers' if self.of_all else ', '.join(self.columns)}"

    @property
    def words(self) -> str:
        """L and what groups must meet, in a line."""
        return " ".join([self.who, *(demand.setting for demand in self.demands if demand.setting)])


def entries_read(job: Job) -> tuple[Entry, ...]:
    """The entries as far as readers of the release can count them again, who have its blocks and not their links."""
    return entries_of(job, blocks_of(job))


def entries_of(job: Job, blocks: Blocks | None = None) -> tuple[Entry, ...]:
    """The entries, in the order of the file.

    blocks:  of sensitive columns that they look at together; None: those that the job asks for.
    """
    blocks = ruled_together(job) if blocks is None else blocks
    own = {name: job.columns[name].C for name in job.names("sensitive")}
    limits = {name: job.columns[name].at_most for name in job.names("sensitive")}
    at_most = {name: limit for name, limit in limits.items() if limit is not None}
    ordered = frozenset(name for name in job.names("sensitive") if job.columns[name].distance == ORDERED)
    qid, found = job.names("qid"), []
    for place, (where, said) in enumerate(job.model.entries):
        columns = qid if said.columns is None else tuple(name for name in qid if name in said.columns)
        bounds, people = said.bounds(own), job.model.unit == PERSON
        distances = said.distances(job.names("sensitive"))
        found.append(
            Entry(place, where, said, qid, columns, bounds, at_most, distances, ordered, blocks, people)
        )
    return tuple(found)


def is_one_of_all(entries: Sequence[Entry]) -> bool:
    """Whether all that is asked is asked of the records that print alike in all quasi-identifiers."""
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
