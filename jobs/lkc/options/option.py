"""Interface of an option, and all options by key: demands of an entry beside L, K and C.

An entry has the options of its keys. No other code names an option. A new option is a key of
:class:`jobs.lkc.settings.Requirement`, a file here, a criterion for its demand on groups
(:mod:`anonymize.criteria`), and a separate definition (:mod:`anonymize.verification.tables`).
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
    """Figure of the worst group of a table.

    name:     its key in a report.
    words:    a sentence with a place for the figure and, named, for the column.
    is_share: True for a share, False for a count.
    """

    name: str
    words: str
    is_share: bool = False

    def rounded(self, figure: Any) -> float | int:
        """Return the figure as printed in reports."""
        return round(float(figure), _DIGITS) if self.is_share else int(figure)

    def told(self, figure: Any, column: str | None) -> str:
        """Return the sentence."""
        return self.words.format(float(figure) if self.is_share else int(figure), column=column)


_DIGITS = 6
"""Decimal digits of a share."""


@dataclass(frozen=True)
class Inference:
    """Bound on inferences, in the words of sentences.

    name:    of the key.
    failed:  clause on a group that breaks the bound.
    held:    clause on all groups that keep the bound.
    """

    name: str
    failed: str
    held: str


@dataclass(frozen=True)
class Facts:
    """Facts for making an option, beside the statements of its entry.

    where:    the key of the entry in the job file.
    job:      the job.
    bounds:   C by sensitive column; 1 is no bound.
    at_most:  by sensitive column, where stated.
    as_read:  True to limit the option to demands that readers of the release can count again.
    """

    where: str
    job: Job = field(repr=False)
    bounds: Mapping[str, Fraction]
    at_most: Mapping[str, int]
    as_read: bool


@dataclass(frozen=True)
class ByRow:
    """Table as a single holder knows the table: with the party or person of each row, if the job tells parties or
    people apart.

    party, person:  numbers, shape (n_rows,).
    """

    release: Release
    party: Ints | None = field(default=None, repr=False)
    person: Ints | None = field(default=None, repr=False)


class Option(ABC):
    """Option of an entry. An empty method here is for the options with work at that step.

    key:      in the job file; of several keys the first.
    figures:  the report's figures of the worst group, by key of
              :attr:`anonymize.verification.tables.Examined.worst`.
    weakest:  :meth:`strength` where nothing is asked.
    """

    key: ClassVar[str]
    figures: ClassVar[Mapping[str, Figure]] = {}
    weakest: ClassVar[tuple[Fraction | int, ...]] = ()

    @abstractmethod
    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        """Return the demands on every group with the option; asked: without the option."""

    def check(self, job: Job, others: Mapping[str, Any]) -> None:
        """Refuse errors that the job file alone shows. others: the options of the entry, by key.

        Raises ValueError.
        """
        return

    def check_values(self, name: str, values: Values) -> None:
        """Refuse a demand that no group of a sensitive column with the given values can meet. Raises SchemaError."""
        return

    def check_joint(self, job: Job, values: Mapping[str, Values]) -> None:
        """Refuse demands that joint runs do not test. values: of every sensitive column. Raises SchemaError."""
        return

    @property
    def asks_something(self) -> bool:
        """True if an entry with nothing else asks for something."""
        return True

    def speaks_of(self, name: str) -> bool:
        """Return True if the option limits what groups show about a sensitive column."""
        return False

    @property
    def colluders(self) -> int:
        """Number of parties that may subtract their records from a group; 0: the option says nothing of parties."""
        return 0

    @property
    def diversity(self) -> int:
        """l of all sensitive columns; 1: the option does not ask for diversity."""
        return 1

    def diversity_of(self, name: str) -> int:
        """Return l as far as `at_most` allows for a sensitive column."""
        return 1

    @property
    def looks_together(self) -> bool:
        """True if the option asks something of several sensitive columns together."""
        return False

    @abstractmethod
    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        """Return the claims for the independent verifier, by key. looked_at: the columns visible to the verifier."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Return the report's fields of the entry, by key."""

    @property
    def inferences(self) -> tuple[Inference, ...]:
        """Bounds on inferences, in the words of sentences."""
        return ()

    @property
    def remains(self) -> tuple[str, ...]:
        """Keys of the option, as in sentences, with a demand that also holds for remainders."""
        return ()

    def unread(self, task: Task, entries: Sequence[Any]) -> list[str]:
        """Return sentences on demands that nobody can count again in the released table, and on who checked
        instead.

        entries:  the entries with an option of the key.
        """
        return []

    def require_counted(self, known: ByRow, claim: Claim) -> None:
        """Check a single holder's rows for demands invisible in the table alone. Raises PartyError.

        known:  in categories.
        claim:  the verifier's claims of the entry.
        """
        return

    @abstractmethod
    def implied_by(self, other: Any) -> bool:
        """Return True if every table that meets a second entry meets the option; other: the second's option or
        None.
        """

    def strength(self, name: str) -> tuple[Fraction | int, ...]:
        """Return how much is asked of a sensitive column, number by number; more is more."""
        return self.weakest


UNIT = "unit"
"""Key of an option that a job sets for all entries."""
OPTIONS: Mapping[tuple[str, ...], str] = {
    (UNIT,): "jobs.lkc.options.persons",
    ("distinct",): "jobs.lkc.options.distinct",
    ("t",): "jobs.lkc.options.closeness",
    ("ruled_out", "diversity"): "jobs.lkc.options.diversity",
    ("colluders",): "jobs.lkc.options.colluders",
}
"""Module of an option, by keys, in the order for messages. An option is imported on demand."""


_KEYS = [key for keys in OPTIONS for key in keys]


class JobOption(ABC):
    """Option of a single holder's whole job: some of the read rows are left out.

    key:    in the job file.
    phase:  phase of the work in a run. Its seconds are not disclosed, since the time depends on rows
            outside the release.
    """

    key: ClassVar[str]
    phase: ClassVar[str]

    def check_first(self, job: Job) -> None:
        """Refuse unsuitable jobs before the remaining checks. Raises ValueError."""
        return

    @abstractmethod
    def check(self, job: Job) -> None:
        """Refuse errors that the job file alone shows. Raises ValueError."""

    @abstractmethod
    def kept(self, task: Task, loaded: Loaded, shown: Observer | None) -> Loaded:
        """Return the part of a table to anonymize, as if no other rows existed. Raises PrivacyError."""

    @abstractmethod
    def most_left_out(self, n_used: int) -> int:
        """Return the largest number of rows that may be left out, from the number of read and used rows."""

    @abstractmethod
    def fields(self, task: Task, n_left_out: int, release: Release) -> dict[str, Any]:
        """Return the report's fields of the left-out rows, and of the release in that light."""


OF_JOBS: Mapping[str, str] = {"withhold": "jobs.lkc.options.withhold"}
"""Module of an option of a whole job, by key."""


def options_of_job(job: Job) -> tuple[JobOption, ...]:
    """Return the options of a whole job, by the job's keys."""
    given = {key: getattr(job.lkc, key) for key in OF_JOBS}
    return tuple(import_module(OF_JOBS[key]).made(said) for key, said in given.items() if said is not None)


def in_order(options: Iterable[Option]) -> list[Option]:
    """Return options of several entries in the order for messages."""
    return sorted(options, key=lambda option: _KEYS.index(option.key))


def options_of(said: Requirement, facts: Facts) -> tuple[Option, ...]:
    """Return the options of an entry, from keys in the entry or beside all entries."""
    said_in = (said, facts.job.lkc)
    given = (
        module
        for keys, module in OPTIONS.items()
        if any(getattr(of, key, None) is not None for of in said_in for key in keys)
    )
    return tuple(import_module(module).made(said, facts) for module in given)
