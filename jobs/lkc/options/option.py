"""The interface of an option, and all options by key: what an entry asks for beside L, K and C.

An entry has the options whose keys it gives. Whoever goes through the options of an entry names none of them, so an
option is a key of :class:`jobs.lkc.settings.Requirement` and a file here; what it asks of groups is a criterion
(:mod:`anonymize.criteria`), and a definition of its own (:mod:`anonymize.verification.tables`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any, ClassVar

from anonymize.criteria.criterion import Demand
from anonymize.release import Release
from anonymize.table import Ints
from anonymize.tds import Observer
from anonymize.verification.tables import Claim
from jobs.data.tables import Loaded
from jobs.file.job import Job
from jobs.file.values import Values
from jobs.lkc.settings import Requirement
from jobs.task import Task


@dataclass(frozen=True)
class Figure:
    """A figure of the worst group of a table.

    name:     its key in a report.
    words:    a sentence with a place for the figure and, named, for the column.
    is_share: whether it is a share, else a count.
    """

    name: str
    words: str
    is_share: bool = False

    def rounded(self, figure: Any) -> float | int:
        """Return the figure as reports print it."""
        return round(float(figure), _DIGITS) if self.is_share else int(figure)

    def told(self, figure: Any, column: str | None) -> str:
        """Return the sentence."""
        return self.words.format(float(figure) if self.is_share else int(figure), column=column)


_DIGITS = 6
"""Decimal digits of a share."""


@dataclass(frozen=True)
class Inference:
    """A bound on inferences, as sentences speak of it.

    name:    of the key. failed: how it is with a group that breaks it. held: with all groups that do not.
    """

    name: str
    failed: str
    held: str


@dataclass(frozen=True)
class Facts:
    """Facts that an option is made from, beside what its entry says.

    where:    the key of the entry in the job file.
    job:      the job.
    bounds:   C by sensitive column, 1 being none.
    at_most:  by sensitive column that says one.
    as_read:  whether it is to be as far as readers of the release can count again.
    """

    where: str
    job: Job = field(repr=False)
    bounds: Mapping[str, Fraction]
    at_most: Mapping[str, int]
    as_read: bool


@dataclass(frozen=True)
class ByRow:
    """A table as its one holder knows it: whose each row is, where the job tells that apart.

    party, person:  numbers, shape (n_rows,).
    """

    release: Release
    party: Ints | None = field(default=None, repr=False)
    person: Ints | None = field(default=None, repr=False)


class Option(ABC):
    """One option of one entry. A method that does nothing here is for the options that have something to do there.

    key:      in the job file; of several keys the first.
    figures:  by key of :attr:`anonymize.verification.tables.Examined.worst` what a report tells of the worst group.
    weakest:  :meth:`strength` where nothing is asked.
    """

    key: ClassVar[str]
    figures: ClassVar[Mapping[str, Figure]] = {}
    weakest: ClassVar[tuple[Fraction | int, ...]] = ()

    @abstractmethod
    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        """Return what every group must meet with this option; asked: without it."""

    def check(self, job: Job, others: Mapping[str, Any]) -> None:
        """Refuse what the job file alone shows to be wrong. others: the options of the entry, by key.

        Raises ValueError.
        """
        return

    def check_values(self, name: str, values: Values) -> None:
        """Refuse what no group of a sensitive column with these values can meet. Raises SchemaError."""
        return

    def check_joint(self, job: Job, values: Mapping[str, Values]) -> None:
        """Refuse what joint runs do not test. values: of every sensitive column. Raises SchemaError."""
        return

    @property
    def asks_something(self) -> bool:
        """Return True if an entry that has nothing else asks for something."""
        return True

    def speaks_of(self, name: str) -> bool:
        """Return whether it bounds what groups tell about a sensitive column."""
        return False

    @property
    def colluders(self) -> int:
        """Return the number of parties that may subtract their records from a group; 0: the option says
        nothing of parties.
        """
        return 0

    @property
    def diversity(self) -> int:
        """l of all sensitive columns; 1: the option does not ask for diversity."""
        return 1

    def diversity_of(self, name: str) -> int:
        """Return l as far as `at_most` leaves it for a sensitive column."""
        return 1

    @property
    def looks_together(self) -> bool:
        """Return True if the option asks something of several sensitive columns together."""
        return False

    @abstractmethod
    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        """Return what the independent verifier is told, by key. looked_at: the columns that it can look at."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Return what a report says of the entry, by key."""

    @property
    def inferences(self) -> tuple[Inference, ...]:
        """Return the bounds on inferences, as sentences speak of them."""
        return ()

    @property
    def remains(self) -> tuple[str, ...]:
        """Its keys as sentences name them that say what also holds of remainders."""
        return ()

    def unread(self, task: Task, entries: Sequence[Any]) -> list[str]:
        """Return what is asked and nobody can count again in the released table, and who saw to it instead.

        entries:  those that have an option of this key.
        """
        return []

    def require_counted(self, known: ByRow, claim: Claim) -> None:
        """Check of one holder's rows what a table alone does not show. Raises PartyError.

        known:  in test values. claim: what the verifier is told of the entry.
        """
        return

    @abstractmethod
    def implied_by(self, other: Any) -> bool:
        """Return whether whatever meets another entry meets this; other: its option of this key, None: none."""

    def strength(self, name: str) -> tuple[Fraction | int, ...]:
        """Return how much is asked of a sensitive column, number by number; more is more."""
        return self.weakest


UNIT = "unit"
"""The key of an option that a job asks for of all its entries."""
OPTIONS: Mapping[tuple[str, ...], str] = {
    (UNIT,): "jobs.lkc.options.persons",
    ("distinct",): "jobs.lkc.options.distinct",
    ("t",): "jobs.lkc.options.closeness",
    ("ruled_out", "diversity"): "jobs.lkc.options.diversity",
    ("colluders",): "jobs.lkc.options.colluders",
}
"""By keys the module of an option, in the order in which options are told: it is imported for a job that asks for it.
"""


_KEYS = [key for keys in OPTIONS for key in keys]


class JobOption(ABC):
    """One option of a whole job of one holder, for whom it leaves out some of the rows that were read.

    key:    in the job file. phase: of a run, in which its work is done: how long that took is not told, since it
            depends on rows that the release does not have.
    """

    key: ClassVar[str]
    phase: ClassVar[str]

    def check_first(self, job: Job) -> None:
        """Refuse jobs that the option is not for, before the rest is looked at. Raises ValueError."""
        return

    @abstractmethod
    def check(self, job: Job) -> None:
        """Refuse what the job file alone shows to be wrong. Raises ValueError."""

    @abstractmethod
    def kept(self, task: Task, loaded: Loaded, shown: Observer | None) -> Loaded:
        """Return the part of a table that is anonymized, as if there were no other rows. Raises PrivacyError."""

    @abstractmethod
    def most_left_out(self, n_used: int) -> int:
        """Return how many rows may be left out of those that were read and used."""

    @abstractmethod
    def fields(self, task: Task, n_left_out: int, release: Release) -> dict[str, Any]:
        """Return what a report says of the rows left out, and of the release in their light."""


OF_JOBS: Mapping[str, str] = {"withhold": "jobs.lkc.options.withhold"}
"""By key the module of an option of a whole job."""


def options_of_job(job: Job) -> tuple[JobOption, ...]:
    """Return the options of a whole job: those whose keys it gives."""
    given = {key: getattr(job.lkc, key) for key in OF_JOBS}
    return tuple(import_module(OF_JOBS[key]).made(said) for key, said in given.items() if said is not None)


def in_order(options: Iterable[Option]) -> list[Option]:
    """Return options of several entries in the order in which they are told."""
    return sorted(options, key=lambda option: _KEYS.index(option.key))


def options_of(said: Requirement, facts: Facts) -> tuple[Option, ...]:
    """Return the options of an entry: their keys stand in the entry, or beside all entries."""
    said_in = (said, facts.job.lkc)
    given = (
        module
        for keys, module in OPTIONS.items()
        if any(getattr(of, key, None) is not None for of in said_in for key in keys)
    )
    return tuple(import_module(module).made(said, facts) for module in given)
