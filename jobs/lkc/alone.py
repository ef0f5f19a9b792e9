"""What top-down specialization makes of one holder's table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from anonymize.lkc.metrics import why_stopped
from anonymize.lkc.requirement import criteria_of_size
from anonymize.lkc.single import anonymize_alone
from anonymize.release import Release, release_of_rows
from anonymize.tds import Observer, Outcome
from jobs.data.arrow import pa
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.lkc.report import build_report
from jobs.lkc.requirement import beside, job_score, requirement
from jobs.lkc.tables import Written
from jobs.options import Noted
from jobs.task import Task


@dataclass(frozen=True)
class CutAlone:
    """One holder's table, and the cut that it is published at."""

    task: Task
    loaded: Loaded = field(repr=False)
    outcome: Outcome = field(repr=False)

    @property
    def noted(self) -> Noted:
        return Noted()

    def counted(self) -> Release:
        return release_of_rows(self.loaded.table, self.outcome.cut)

    def again(self, source: Source) -> Iterator[pa.RecordBatch]:
        from jobs.publishing import generalized_rows

        return generalized_rows(source, self.task, self.outcome.schema, self.outcome.cut)

    def report(self, written: Written) -> dict[str, Any]:
        table = self.loaded.table
        histograms = [table.class_histogram(i) for i in range(len(table.schema.qid))]
        of_size = criteria_of_size(table.schema, requirement(self.task).entries(table.schema))
        stopped = why_stopped(table, self.outcome, job_score(self.task.job), of_size)
        release, verified = written.release, written.verified
        return build_report(self.task, self.outcome, release, verified, histograms, stopped=stopped)


def made(task: Task, loaded: Loaded, shown: Observer) -> CutAlone:
    """Anonymize what pass 1 read of a holder's table. Raises PrivacyError."""
    return CutAlone(task, loaded, anonymized(task, loaded, shown))


def without_withheld(task: Task, loaded: Loaded, shown: Observer | None = None) -> Loaded:
    """Return the table without the rows that `withhold` leaves out. Raises PrivacyError."""
    if task.job.withhold is None:
        return loaded
    from jobs.lkc.options.withhold import kept

    return kept(task, loaded, shown)


def anonymized(task: Task, loaded: Loaded, shown: Observer) -> Outcome:
    """Anonymize what pass 1 read of a holder's table. Raises PrivacyError."""
    counted = beside(task, loaded, loaded.party)
    return anonymize_alone(loaded.table, requirement(task), job_score(task.job), shown, beside=counted)
