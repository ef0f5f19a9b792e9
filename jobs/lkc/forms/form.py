"""The interface of a form: tables that are written, and the rows that whoever reads them can make of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from anonymize.lkc.metrics import Risk
from anonymize.release import LabelledColumn, Release, Rng
from anonymize.table import QidColumn
from jobs.data.counted import counted, noun
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.lkc.entries import Entry, entries_of, greatest_k
from jobs.lkc.settings import IN_ROWS
from jobs.promises import found
from jobs.reading import load_table
from jobs.task import Task

GROUPS, SENSITIVE = "groups.csv", "sensitive.csv"
"""The files of an anatomy."""

Tables: TypeAlias = Mapping[str, Release]
"""By name of a file its table."""
Raw: TypeAlias = Mapping[str, LabelledColumn]
"""Quasi-identifiers that are not generalized, where a form publishes these: by name, in the order of the rows."""


class Quasi(Protocol):
    """The form of quasi-identifiers.

    stranger:  what is said of a value that is not written so.
    """

    stranger: str

    def check(self, job: Job) -> None:
        """Refuse a job whose quasi-identifiers cannot be written so. Raises ValueError."""
        ...

    def generalized(self, job: Job) -> tuple[str, ...]:
        """The columns whose values a release generalizes."""
        ...

    def lost(self, loss: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the report's fields of the loss by generalizing, which is not measured where nothing is
        generalized.
        """
        ...

    def label_test(
        self, task: Task, column: QidColumn, printed: Callable[[QidColumn], Callable[[str], bool]]
    ) -> Callable[[str], bool]:
        """Return a test of the values that a column may have in a release; printed: the same of what a method
        prints.
        """
        ...

    def known(self, entry: Entry, groups: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        """The columns by which an entry's groups are told, and how many of them somebody may know.

        groups:  the columns in which rows of one group agree, as readers see them.
        """
        ...

    def who(self, entry: Entry) -> str:
        """Name the groups that a reader counts, of a job's only entry, which is of all quasi-identifiers."""
        ...

    def promised(self, entry: Entry) -> list[str]:
        """Say which records no reader finds who knows quasi-identifiers of a person in the table."""
        ...

    def notes(self, job: Job) -> list[str]:
        """Say what to know of a job whose quasi-identifiers are written so."""
        ...

    def risk(self, task: Task, risk: Risk) -> str:
        """Say what K bounds, and what it does not."""
        ...


class Generalized:
    """As nodes, intervals or boxes: groups are rows that print alike."""

    stranger = "is not a node of its taxonomy"

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
    """Say that figures count what the table shows, where K counts people."""
    if task.job.lkc.unit != PERSON:
        return ""
    return (
        " These figures count records, as the table has no ids; K counts people, and a person may have several "
        "records."
    )


GENERALIZED = Generalized()


@dataclass(frozen=True)
class Form:
    """One row for a form.

    columns:  by file of a release, besides report and digests, its columns in their order.
    groups:   the columns in which rows of one group agree, as readers see them.
    check:    refuses what it cannot write. Raises ValueError.
    grouped:  a table's rows, which are linked, with the columns that readers see: job, rows, raw, coins.
    tables:   what is written of these; what does not follow from the counts of blocks is drawn from the coins.
    rows:     the rows that readers can make of the tables, for at most so many records, in no particular order,
              blocks linked in any way. A row may stand for many records: there are no more rows than in the tables
              together. Raises PartyError for tables that are none of this form.
    quasi:    how it writes quasi-identifiers.
    load:     pass 1 of one holder's table. Raises DataError.
    """

    columns: Callable[[Job], Mapping[str, tuple[str, ...]]]
    groups: Callable[[Job], tuple[str, ...]]
    check: Callable[[Job], None]
    grouped: Callable[[Job, Release, Raw, Rng], Release]
    tables: Callable[[Job, Release, Rng], Tables]
    rows: Callable[[Job, Tables, int], Release]
    quasi: Quasi = GENERALIZED
    load: Callable[[Source, Task], Loaded] = load_table


def by_quasi_identifiers(job: Job) -> tuple[str, ...]:
    """Groups are rows that print alike."""
    return job.names("qid")


FORMS: Mapping[tuple[str | None, str | None], tuple[str, str]] = {
    (None, None): ("jobs.lkc.forms.rows", "ROWS"),
    ("anatomy", None): ("jobs.lkc.forms.anatomy", "ANATOMY"),
    ("anatomy", "exact"): ("jobs.lkc.forms.anatomy", "OF_EXACT"),
}
"""By `release` and `quasi` of a job, where it says them, module and name of a form: it is imported for a job that
asks for it.
"""


def form_of(job: Job) -> Form:
    """The row of an LKC job."""
    module, name = FORMS[job.lkc.release, job.lkc.quasi]
    form: Form = getattr(import_module(module), name)
    return form


def check(job: Job) -> None:
    """Refuse what there is no row for, or what that does not take. Raises ValueError."""
    if (job.lkc.release, job.lkc.quasi) not in FORMS:
        raise ValueError(
            "`quasi: exact` is for `release: anatomy`: raw quasi-identifiers beside sensitive values would publish "
            "the raw table"
        )
    form = form_of(job)
    form.check(job)
    form.quasi.check(job)


def release_name(job: Job) -> str:
    """As policies list it."""
    return job.lkc.release or IN_ROWS
