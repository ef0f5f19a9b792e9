"""How the quasi-identifiers of a release are written, one row for each way: what everybody else asks of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from anonymize.grid import Grid
from anonymize.lkc.metrics import Risk
from anonymize.table import QidColumn
from jobs.data.coders import canonical
from jobs.data.counted import counted, noun
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.lkc.entries import Entry, entries_of, greatest_k, is_one_of_all
from jobs.promises import found
from jobs.task import Task


class Quasi(Protocol):
    """How quasi-identifiers are written.

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
        """What a report says of the loss by generalizing, which is not measured where nothing is generalized."""
        ...

    def label_test(
        self, task: Task, column: QidColumn, printed: Callable[[QidColumn], Callable[[str], bool]]
    ) -> Callable[[str], bool]:
        """What tells whether a column may have a value in a release; printed: the same of what a method prints."""
        ...

    def known(self, entry: Entry, groups: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        """The columns by which an entry's groups are told, and how many of them somebody may know.

        groups:  the columns in which rows of one group agree, as readers see them.
        """
        ...

    def who(self, entry: Entry) -> str:
        """Which groups a reader counts, of a job's only entry, which is of all quasi-identifiers."""
        ...

    def promised(self, entry: Entry) -> list[str]:
        """Say which records no reader finds who knows quasi-identifiers of a person in the table."""
        ...

    def notes(self, job: Job) -> list[str]:
        """What to know of a job whose quasi-identifiers are written so."""
        ...

    def risk(self, task: Task, risk: Risk) -> str:
        """What K bounds, and what it does not."""
        ...


class Generalized:
    """As nodes, intervals or boxes: groups are rows that print alike."""

    stranger = "is not a node of its taxonomy"

    def check(self, job: Job) -> None:
        if job.accept_exact_quasi_identifiers:
            raise ValueError("`accept_exact_quasi_identifiers` is for `quasi: exact`")

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
                f"K={k} holds for whoever knows at most L={entries[0].max_known} of the {qids}. L does not bound "
                f"who knows all {n}: {below}. A larger L bounds more.{_of_records(task)}"
            )
        held = "; ".join(f"K={entry.said.K} for {entry.whom}" for entry in entries if entry.said.K > 1)
        return (
            f"What holds is {held or 'no K'}. Nothing bounds who knows all {qids}: {below}={k}."
            f"{_of_records(task)}"
        )


def _of_records(task: Task) -> str:
    """Where K counts people, the figures still count what the table shows."""
    if task.job.model.unit != PERSON:
        return ""
    return " These figures count records, as the table has no ids; K counts people, who may have several."


class Exact:
    """As the source has them, numbers in canonical form; readers tell groups by number."""

    stranger = "is not in its domain"

    def check(self, job: Job) -> None:
        if job.partition != "single":
            raise ValueError(
                "`quasi: exact` is for one holder's table: parties of a joint job would give each other their "
                "records' raw quasi-identifiers"
            )
        if not job.accept_exact_quasi_identifiers:
            raise ValueError(
                "`quasi: exact` publishes the raw quasi-identifiers of every record: who is in the table is public "
                "then, and K bounds inference only; if that is what you want, say "
                "`accept_exact_quasi_identifiers: true`"
            )
        entries = entries_of(job)
        if not is_one_of_all(entries):
            raise ValueError(
                "`quasi: exact` needs one requirement with `L: all`, and no `columns`: whoever knows a person's "
                "quasi-identifiers knows the group"
            )
        if entries[0].colluders or entries[0].counts_people or job.withhold is not None:
            raise ValueError(
                "`quasi: exact` is for K of records, without `colluders`, `unit: person` and `withhold`"
            )
        if job.clusters is not None:
            raise ValueError(
                "`quasi: exact` is not for goal clusters: clusters follow from the raw quasi-identifiers"
            )

    def generalized(self, job: Job) -> tuple[str, ...]:
        return ()

    def lost(self, loss: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return {}

    def label_test(
        self, task: Task, column: QidColumn, printed: Callable[[QidColumn], Callable[[str], bool]]
    ) -> Callable[[str], bool]:
        """Whether a cell with this text would be kept, and is written as releases write it."""
        reading = task.model.coder(task, column.name).begin()
        grid = column.values if isinstance(column.values, Grid) else None

        def is_known(label: str) -> bool:
            kept = bool(reading.codes([label])[0] >= 0)
            return kept and (grid is None or canonical([label], grid) == [label])

        return is_known

    def known(self, entry: Entry, groups: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        return groups, len(groups)

    def who(self, entry: Entry) -> str:
        return "with one number"

    def promised(self, entry: Entry) -> list[str]:
        """Speak of the group: the record itself is public."""
        return [f"finds a group of fewer than {entry.said.K} records"] if entry.said.K > 1 else []

    def notes(self, job: Job) -> list[str]:
        return [
            "`quasi: exact`: the raw quasi-identifiers of every record are published, with its group. Who is in the "
            "table is public; K and the requirement on sensitive columns bound what is inferred of a person, not "
            "identity"
        ]

    def risk(self, task: Task, risk: Risk) -> str:
        return (
            "The release has the raw quasi-identifiers of every record "
            f"({risk.unique_share:.1%} are unique on them): who is in it is public. "
            f"K={greatest_k(entries_of(task.job))} bounds what is inferred of a person from the group, nothing else."
        )


GENERALIZED, EXACT = Generalized(), Exact()
