"""The interface of a method of LKC jobs.

What a job asks, its requirement, the ledger, and how tables and reports are written and checked are the same for all;
what a method makes of a joint run is its own :class:`jobs.lkc.result.Made`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from anonymize.joint.disclosure import Allowed
from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.tds import Observer
from jobs.data.arrow import pa
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.file.job import Job
from jobs.lkc.settings import KD, TOP_DOWN
from jobs.options import Noted
from jobs.task import Shown, Task

if TYPE_CHECKING:
    from jobs.lkc.result import Made
    from jobs.lkc.tables import Written


class MadeAlone(Protocol):
    """A table that a method made of one holder's table."""

    @property
    def noted(self) -> Noted:
        """Return what the holder alone is told."""
        ...

    def counted(self) -> Release:
        """The rows of the table, in its order, without plain columns."""
        ...

    def again(self, source: Source) -> Iterator[pa.RecordBatch]:
        """The same with plain columns, from pass 2. Raises DataError where the table changed since pass 1."""
        ...

    def report(self, written: Written) -> dict[str, Any]:
        """The report of the release, but for what is read and withheld."""
        ...


class Method(ABC):
    """A way to anonymize a table."""

    def check_goal(self, job: Job) -> None:
        """Refuse goals that the method does not take, before what these need is looked for. Raises ValueError."""
        return

    @abstractmethod
    def check(self, job: Job) -> None:
        """Refuse what the job file alone shows not to be for the method. Raises ValueError."""

    def check_opened(self, task: Task) -> None:
        """Refuse what job and taxonomies show to be wrong. Raises SchemaError."""
        return

    @abstractmethod
    def level(self, job: Job) -> str:
        """Return the last coordinate of its modes, as :meth:`jobs.task.Model.level`."""

    def reveals(self, task: Task) -> tuple[Allowed, ...]:
        """Return what a joint run reveals beside what its mode lists."""
        return ()

    def for_owner(self, task: Task, table: Loaded) -> tuple[str, ...]:
        """Return what the owner alone is told, as :meth:`jobs.task.Model.for_owner`."""
        return ()

    @abstractmethod
    def made_alone(self, task: Task, loaded: Loaded, shown: Observer) -> MadeAlone:
        """Anonymize what pass 1 read of a holder's table. Raises PrivacyError."""

    @abstractmethod
    def decode(self, task: Task, encoded: bytes, sender: str) -> Made:
        """Read the result of a joint run. Raises PartyError."""

    @abstractmethod
    def known_labels(self, column: QidColumn) -> Callable[[str], bool]:
        """Return the test whether a label is one that the method prints in a column."""

    def check_groups(self, task: Task, release: Release) -> Mapping[str, str]:
        """Check of a table, as its readers see it, what the method makes of any.

        Returns by key what of it cannot be checked. Raises PartyError.
        """
        return {}

    @abstractmethod
    def readings(
        self, task: Task, release: Release, report: Mapping[str, Any], path: Path
    ) -> Iterator[dict[str, Any]]:
        """Yield what a report must say of what was done and of what the table is worth, one or several times.

        Several times where a report names a node that prints as another node. :class:`jobs.release.checking.Untold`
        stands for what the table does not tell. path: of the report. Raises PartyError.
        """

    @abstractmethod
    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        """Return what of a report the console shows."""


METHODS: Mapping[str, str] = {TOP_DOWN: "jobs.lkc.top_down", KD: "jobs.lkc.kd.method"}
"""By name the module of a method: it is imported for a job that asks for it."""


def method_of(job: Job) -> Method:
    """Return the method of an LKC job."""
    assert job.lkc.method is not None
    found: Method = import_module(METHODS[job.lkc.method]).METHOD
    return found
