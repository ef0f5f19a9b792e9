"""Interface of a form: the written tables, and the rows that a reader can make of the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from anonymize.lkc.metrics import Risk
from anonymize.release import LabelledColumn, Release, Rng
from anonymize.table import QidColumn
from jobs.data.counted import counted, noun
from jobs.data.tables import Loaded
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.lkc.entries import Entry, entries_of, greatest_k
from jobs.lkc.settings import IN_ROWS
from jobs.promises import found
from jobs.reading import load_table
from jobs.release.stores import CSV, Store
from jobs.task import Task

if TYPE_CHECKING:
    from jobs.data.sources import Source

GROUPS, SENSITIVE = "groups.csv", "sensitive.csv"
"""Files of an anatomy."""

Tables: TypeAlias = Mapping[str, Release]
"""Tables by file name."""
Raw: TypeAlias = Mapping[str, LabelledColumn]
"""Published raw quasi-identifiers, in a form without generalization: by name, in the order of the rows."""


class Quasi(Protocol):
    """Form of quasi-identifiers.

    stranger:  words on a value in a wrong spelling.
    agree:     words on what the records of a group share.
    """

    stranger: str
    agree: str

    def check(self, job: Job) -> None:
        """Refuse a job whose quasi-identifiers do not fit the form. Raises ValueError."""
        ...

    def generalized(self, job: Job) -> tuple[str, ...]:
        """Return the columns with generalized values in a release."""
        ...

    def lost(self, loss: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the report's fields of the loss by generalizing; empty where nothing is generalized."""
        ...

    def label_test(
        self, task: Task, column: QidColumn, printed: Callable[[QidColumn], Callable[[str], bool]]
    ) -> Callable[[str], bool]:
        """Return a test of the possible values of a column in a release; printed: the method's test."""
        ...

    def known(self, entry: Entry, groups: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        """Return the columns that tell an entry's groups, and how many of the columns an attacker may know.

        groups:  the columns in which rows of the same group agree, as readers see the rows.
        """
        ...

    def who(self, entry: Entry) -> str:
        """Name the groups that a reader counts, for a job's only entry, on all quasi-identifiers."""
        ...

    def promised(self, entry: Entry) -> list[str]:
        """Say which records a reader with knowledge of a person's quasi-identifiers cannot find."""
        ...

    def notes(self, job: Job) -> list[str]:
        """Return notes on a job with quasi-identifiers in the form."""
        ...

    def risk(self, task: Task, risk: Risk) -> str:
        """Say what K bounds, and what K does not bound."""
        ...

    def among(self, required: int, alike: int) -> int:
        """Return the number of records among which a reader within the requirement finds a person, at the least.

        required:  records of the smallest group that the requirement counts.
        alike:     the least number of records that agree on all quasi-identifiers, as published.
        """
        ...


class Generalized:
    """Quasi-identifiers as nodes, intervals or boxes. Groups are rows that print alike."""

    stranger = "is not a node of its taxonomy"
    agree = "that agree on all quasi-identifiers"

    def check(self, job: Job) -> None:
        return

    def generalized(self, job: Job) -> tuple[str, ...]:
        return job.generalized

    def lost(self, loss: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return loss()

    def label_test(
        self, task: Task, column: QidColumn, printed: Callable[[QidColumn], Callable[[str], bool]]
    ) -> Callable[[str], bool]:
        return printed(column)

    def known(self, entry: Entry, groups: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        return entry.columns, entry.max_known

    def who(self, entry: Entry) -> str:
        return f"on every subset of at most L={entry.known} quasi-identifiers"

    def promised(self, entry: Entry) -> list[str]:
        return found(entry.said.K)

    def notes(self, job: Job) -> list[str]:
        return []

    def among(self, required: int, alike: int) -> int:
        return required

    def risk(self, task: Task, risk: Risk) -> str:
        entries, n = entries_of(task.job), risk.columns
        qids, k = counted(n, "quasi-identifier", "quasi-identifiers"), greatest_k(entries)
        if not risk.below_k:
            return f"No group of records on all {qids} is smaller than K={k}.{_of_records(task)}"
        below = (
            f"then {counted(risk.unique, 'record', 'records')} ({risk.unique_share:.1%}) "
            f"{noun(risk.unique, 'is', 'are')} unique and {risk.below_k:,} ({risk.below_k_share:.1%}) "
            f"{noun(risk.below_k, 'is', 'are')} in groups below K"
        )
        if len(entries) == 1 and entries[0].of_all:
            return (
                f"K={k} holds toward a reader who knows at most L={entries[0].max_known} of the {qids}. L does not "
                f"bound a reader who knows all {n}: {below}. A larger L bounds more.{_of_records(task)}"
            )
        held = "; ".join(f"K={entry.said.K} for {entry.whom}" for entry in entries if entry.said.K > 1)
        return (
            f"The table has {held or 'no K'}. Nothing bounds a reader who knows all {qids}: "
            f"{below}={k}.{_of_records(task)}"
        )


def _of_records(task: Task) -> str:
    """Say that figures count records of the table, while K counts people."""
    if task.job.lkc.unit != PERSON:
        return ""
    return (
        " These figures count records, as the table has no ids; K counts people, and a person may have several "
        "records."
    )


GENERALIZED = Generalized()


@dataclass(frozen=True)
class Form:
    """Form of a release.

    columns:  columns of each file of a release, in order, apart from report and digests.
    groups:   columns in which rows of the same group agree, as readers see the rows.
    check:    refuses an unsuitable job. Raises ValueError.
    grouped:  a table's linked rows, with the columns for readers: job, rows, raw, coins.
    tables:   the written tables of the rows; everything that does not follow from the counts of blocks is
              drawn from the coins. A table made of counts is written in rows, in random order.
    rows:     rows that readers can make of the tables, for at most the given number of records, in no
              particular order, blocks linked arbitrarily. A row may stand for many records: there are no
              more rows than in the tables together. Raises PartyError for tables of another form.
    quasi:    form of quasi-identifiers.
    load:     pass 1 of a single holder's table. Raises DataError.
    store:    form of the files. Where not CSV, ``columns`` names a folder.
    """

    columns: Callable[[Job], Mapping[str, tuple[str, ...]]]
    groups: Callable[[Job], tuple[str, ...]]
    check: Callable[[Job], None]
    grouped: Callable[[Job, Release, Raw, Rng], Release]
    tables: Callable[[Job, Release, Rng], Tables]
    rows: Callable[[Job, Tables, int], Release]
    quasi: Quasi = GENERALIZED
    load: Callable[[Source, Task], Loaded] = load_table
    store: Store = CSV


def by_quasi_identifiers(job: Job) -> tuple[str, ...]:
    """Return the columns of groups: groups are rows that print alike."""
    return job.names("qid")


FORMS: Mapping[tuple[str | None, str | None, str | None], tuple[str, str]] = {
    (None, None, None): ("jobs.lkc.forms.rows", "ROWS"),
    (None, None, "parquet"): ("jobs.lkc.forms.parts", "IN_PARTS"),
    ("anatomy", None, None): ("jobs.lkc.forms.anatomy", "ANATOMY"),
    ("anatomy", "exact", None): ("jobs.lkc.forms.anatomy", "OF_EXACT"),
}
"""Module and name of a form, by `release`, `quasi` and `files` of a job. A form is imported on demand."""


def _named(job: Job) -> tuple[str | None, str | None, str | None]:
    return job.lkc.release, job.lkc.quasi, job.lkc.files


def form_of(job: Job) -> Form:
    """Return the form of an LKC job."""
    module, name = FORMS[_named(job)]
    form: Form = getattr(import_module(module), name)
    return form


def check(job: Job) -> None:
    """Refuse a job without a form, or with an unsuitable form. Raises ValueError."""
    if _named(job) not in FORMS and job.lkc.files is not None:
        raise ValueError("`files: parquet` is for `release: rows`; leave `release` and `quasi` out")
    if _named(job) not in FORMS:
        raise ValueError(
            "`quasi: exact` is for `release: anatomy`: raw quasi-identifiers beside sensitive values would publish "
            "the raw table"
        )
    form = form_of(job)
    form.check(job)
    form.quasi.check(job)


def release_name(job: Job) -> str:
    """Return the name of the form in policies."""
    return job.lkc.release or IN_ROWS
