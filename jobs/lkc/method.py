"""Interface of a method of LKC jobs.

Requirement, ledger, writing and checking of tables and reports are the same for all methods. Each method makes its
own :class:`jobs.lkc.result.Made` of a joint run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.tds import Observer
from jobs.data.arrow import pa
from jobs.data.tables import Loaded
from jobs.file.job import Job
from jobs.lkc.settings import KD, TOP_DOWN
from jobs.task import Shown, Task

if TYPE_CHECKING:
    from anonymize.joint.disclosure import Allowed
    from jobs.data.sources import Source
    from jobs.lkc.result import Made
    from jobs.lkc.tables import Written
    from jobs.options import Noted
    from jobs.page.parts import Section


class SingleResult(Protocol):
    """Table that a method made of a single holder's table."""

    @property
    def noted(self) -> Noted:
        """Notes for the holder alone."""
        ...

    def counted(self) -> Release:
        """Return the rows of the table, in table order, without plain columns."""
        ...

    def losses(self, release: Release) -> Mapping[str, float]:
        """Return the generalization loss of every quasi-identifier of the table; release: the counted rows."""
        ...

    def again(self, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the rows with plain columns, from pass 2. Raises DataError if the table changed since pass 1."""
        ...

    def report(self, written: Written) -> dict[str, Any]:
        """Return the report of the release, except the numbers of read and suppressed rows."""
        ...


class Method(ABC):
    """Method for anonymizing a table."""

    def check_goal(self, job: Job) -> None:
        """Refuse goals unsuitable for the method before looking for further inputs. Raises ValueError."""
        return

    @abstractmethod
    def check(self, job: Job) -> None:
        """Refuse settings of the job file unsuitable for the method. Raises ValueError."""

    def check_opened(self, task: Task) -> None:
        """Refuse errors in job and taxonomies. Raises SchemaError."""
        return

    @abstractmethod
    def level(self, job: Job) -> str:
        """Return the last coordinate of the method's modes, as :meth:`jobs.task.Model.level`."""

    def reveals(self, task: Task) -> tuple[Allowed, ...]:
        """Return the reveals of a joint run beside the mode's list."""
        return ()

    def for_owner(self, task: Task, table: Loaded) -> tuple[str, ...]:
        """Return the messages for the owner alone, as :meth:`jobs.task.Model.for_owner`."""
        return ()

    @abstractmethod
    def single_result(self, task: Task, loaded: Loaded, shown: Observer) -> SingleResult:
        """Anonymize a single holder's table after pass 1. Raises PrivacyError."""

    @abstractmethod
    def decode(self, task: Task, encoded: bytes, sender: str) -> Made:
        """Read the result of a joint run. Raises PartyError."""

    @abstractmethod
    def known_labels(self, column: QidColumn) -> Callable[[str], bool]:
        """Return a test of the labels that the method prints in a column."""

    def check_groups(self, task: Task, release: Release) -> Mapping[str, str]:
        """Check a table, as readers see the table, for the properties of all tables of the method.

        Returns by key the parts that cannot be checked. Raises PartyError.
        """
        return {}

    @abstractmethod
    def readings(
        self, task: Task, release: Release, report: Mapping[str, Any], path: Path
    ) -> Iterator[dict[str, Any]]:
        """Yield the expected content of a report on the decisions and the worth of the table, once or several
        times.

        Several times if a report names a node that prints as another node. :class:`jobs.release.checking.Untold`
        stands for values that the table does not show. path: of the report. Raises PartyError.
        """

    def sections(self, task: Task, release: Release) -> Iterable[Section]:
        """Return the method's own sections of the page of a release; release: the rows that readers can make."""
        return ()

    def own_sections(self, task: Task, table: Loaded, release: Release) -> Iterable[Section]:
        """Return the method's own sections of the page of a table's owner; table: after pass 1."""
        return ()

    @abstractmethod
    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        """Return the part of a report for the console."""


METHODS: Mapping[str, str] = {TOP_DOWN: "jobs.lkc.top_down", KD: "jobs.lkc.kd.method"}
"""Module of each method, by name. A method is imported on demand."""


def method_of(job: Job) -> Method:
    """Return the method of an LKC job."""
    assert job.lkc.method is not None
    found: Method = import_module(METHODS[job.lkc.method]).METHOD
    return found
