"""kd table of a single holder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anonymize.kd.median import MedianHolder
from anonymize.kd.metrics import measure_loss
from anonymize.kd.single import KdOutcome, SingleHolder, anonymize_kd
from anonymize.kd.table import GroupsByLeaves, box_labels, release_of_boxed_rows
from anonymize.release import Release
from anonymize.table import CodedTable
from anonymize.tds import Observer
from jobs.data.arrow import pa
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.lkc.kd.owner import bare_middles
from jobs.lkc.kd.report import build_report
from jobs.lkc.requirement import requirement
from jobs.lkc.settings import MEDIAN, PUBLIC
from jobs.lkc.tables import Written
from jobs.options import Noted
from jobs.publishing import boxed_rows
from jobs.task import Task

_HOLDERS = {PUBLIC: SingleHolder, MEDIAN: MedianHolder}
"""Holder that places the cuts, by `split`."""


@dataclass(frozen=True)
class BoxesSingle:
    """Single holder's table, and the published boxes."""

    task: Task
    loaded: Loaded = field(repr=False)
    outcome: KdOutcome = field(repr=False)

    @property
    def noted(self) -> Noted:
        refused = self.outcome.refused if self.loaded.table.schema.sensitive else None
        return Noted(refused_for_sensitive=refused, of_table=bare_middles(self.task, self.loaded))

    def counted(self) -> Release:
        return release_of_boxed_rows(self.loaded.table, self.outcome.table.boxes, self.outcome.group)

    def losses(self, release: Release) -> Mapping[str, float]:
        return measure_loss(self.loaded.table.schema, self.outcome.table).generalization_loss

    def again(self, source: Source) -> Iterator[pa.RecordBatch]:
        table = self.loaded.table
        known = GroupsByLeaves(table.schema, table.qid, self.outcome.group)
        labels = box_labels(table.schema, self.outcome.table.boxes)
        return boxed_rows(source, self.task, table.schema, labels, known.of)

    def report(self, written: Written) -> dict[str, Any]:
        schema, table, cuts = self.loaded.table.schema, self.outcome.table, self.outcome.cuts
        return build_report(self.task, schema, table, cuts, written.release, written.verified)


def made(task: Task, loaded: Loaded, shown: Observer) -> BoxesSingle:
    """Anonymize a single holder's table after pass 1. Raises PrivacyError."""
    return BoxesSingle(task, loaded, anonymized(task, loaded.table, shown))


def anonymized(task: Task, table: CodedTable, shown: Observer) -> KdOutcome:
    """Anonymize a single holder's table after pass 1. Raises PrivacyError."""
    assert task.job.lkc.split is not None
    return anonymize_kd(table, requirement(task), shown, _HOLDERS[task.job.lkc.split])
