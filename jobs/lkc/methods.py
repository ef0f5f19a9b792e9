"""The methods of LKC jobs: one row for each, and the only place that knows all of them.

What a job asks, its requirement, the ledger, and how tables and reports are written and checked are the same for all;
what a method makes of a joint run is its own :class:`jobs.lkc.result.Made`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from anonymize.joint.disclosure import Allowed
from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.tds import Observer
from jobs.data.arrow import pa
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.job import Job
from jobs.later import later
from jobs.lkc import top_down
from jobs.lkc.blocks import counted_apart
from jobs.lkc.kd import asked as kd_asked
from jobs.lkc.kd.owner import bare_middles
from jobs.lkc.settings import KD, TOP_DOWN
from jobs.options import Noted
from jobs.task import Shown, Task

if TYPE_CHECKING:
    from jobs.lkc import alone, cuts, report, result
    from jobs.lkc.files import Written
    from jobs.lkc.kd import alone as kd_alone
    from jobs.lkc.kd import checked as kd_checked
    from jobs.lkc.kd import report as kd_report
    from jobs.lkc.kd import run as kd_run
    from jobs.lkc.result import Made
else:
    alone, cuts = later("jobs.lkc.alone"), later("jobs.lkc.cuts")
    report, result = later("jobs.lkc.report"), later("jobs.lkc.result")
    kd_alone, kd_checked = later("jobs.lkc.kd.alone"), later("jobs.lkc.kd.checked")
    kd_report, kd_run = later("jobs.lkc.kd.report"), later("jobs.lkc.kd.run")


def _nothing(_: Task) -> None:
    return None


def _any_goal(_: Job) -> None:
    return None


def _no_groups(_: Task, __: Release) -> Mapping[str, str]:
    return {}


def _no_reveals(_: Task) -> tuple[Allowed, ...]:
    return ()


def _no_words(_: Task, __: Loaded) -> tuple[str, ...]:
    return ()


def _decode(task: Task, encoded: bytes, sender: str) -> Made:
    return result.decode_result(encoded, task.result_schema, sender, counted_apart(task.job))


class MadeAlone(Protocol):
    """What a method made of one holder's table."""

    @property
    def noted(self) -> Noted:
        """What the holder alone is told."""
        ...

    def counted(self) -> Release:
        """The rows of the table without plain columns: an entry for each row of what pass 1 read."""
        ...

    def again(self, source: Source) -> Iterator[pa.RecordBatch]:
        """The same with plain columns, from pass 2. Raises DataError where the table changed since pass 1."""
        ...

    def report(self, written: Written) -> dict[str, Any]:
        """The report of the release, but for what is read and withheld."""
        ...


@dataclass(frozen=True)
class Method:
    """One row for a method.

    check_goal:   refuses goals that the method does not take, before what these need is looked for. Raises
                  ValueError.
    check:        refuses what the job file alone shows to be wrong, of what the method does not take. Raises
                  ValueError.
    level:        as :meth:`jobs.task.Model.level`: the last coordinate of its modes.
    made_alone:   anonymizes what pass 1 read of a holder's table. Raises PrivacyError.
    decode:       reads a joint run's result: task, bytes, sender. Raises PartyError.
    known_labels: what tells whether a label is one that it prints in a column.
    check_told:   compares what a report says of the method's own with the table: task, table, report, its place.
                  Raises PartyError.
    decided:      the keys of a report that say what was done.
    shown:        what of a report the console shows.
    check_groups: checks of a table, as its readers see it, what the method makes of any: task, table. Returns by key
                  what of it cannot be checked. Raises PartyError.
    check_opened: refuses what job and taxonomies show to be wrong. Raises SchemaError.
    reveals:      what a joint run reveals beside what its mode lists.
    for_owner:    as :meth:`jobs.task.Model.for_owner`.
    compared:     the keys of a report that check_told compares; not_compared: what of these it does not.
    """

    check: Callable[[Job], None]
    level: Callable[[Job], str]
    made_alone: Callable[[Task, Loaded, Observer], MadeAlone]
    decode: Callable[[Task, bytes, str], Made]
    known_labels: Callable[[QidColumn], Callable[[str], bool]]
    check_told: Callable[[Task, Release, Mapping[str, Any], Path], None]
    decided: Callable[[Task], tuple[str, ...]]
    compared: Callable[[Task], tuple[str, ...]]
    shown: Callable[[Task, Mapping[str, Any]], Shown]
    check_groups: Callable[[Task, Release], Mapping[str, str]] = _no_groups
    check_goal: Callable[[Job], None] = _any_goal
    check_opened: Callable[[Task], None] = _nothing
    reveals: Callable[[Task], tuple[Allowed, ...]] = _no_reveals
    for_owner: Callable[[Task, Loaded], tuple[str, ...]] = _no_words
    not_compared: tuple[str, ...] = ()


METHODS: Mapping[str, Method] = {
    TOP_DOWN: Method(
        top_down.check,
        top_down.level,
        alone.made,
        _decode,
        cuts.known_labels,
        cuts.check_told,
        report.decided_keys,
        cuts.compared,
        report.shown_fields,
        check_groups=cuts.check_groups,
        reveals=top_down.reveals,
        not_compared=top_down.NOT_OF_STEPS,
    ),
    KD: Method(
        kd_asked.check,
        kd_asked.level,
        kd_alone.made,
        kd_run.decode,
        kd_checked.known_labels,
        kd_checked.check_told,
        kd_report.decided_keys,
        kd_checked.compared,
        kd_report.shown_fields,
        check_groups=kd_checked.check_groups,
        check_goal=kd_asked.check_goal,
        check_opened=kd_asked.check_opened,
        for_owner=bare_middles,
    ),
}


def method_of(job: Job) -> Method:
    """The row of an LKC job."""
    assert job.method is not None
    return METHODS[job.method]
