"""`method: top-down` among the methods of LKC jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.tds import Observer
from jobs.data.tables import Loaded
from jobs.file.job import Job
from jobs.lkc.linked_columns import counted_apart
from jobs.lkc.method import Method, SingleResult
from jobs.lkc.options.option import options_of_job
from jobs.lkc.requirement import check_score
from jobs.lkc.settings import KD
from jobs.task import Shown, Task

if TYPE_CHECKING:
    from anonymize.joint.disclosure import Allowed
    from jobs.lkc.result import Made


class TopDown(Method):
    """Method with a single cut of every column, specialized step by step."""

    def check(self, job: Job) -> None:
        if job.lkc.split is not None:
            raise ValueError(f"`split` is for `method: {KD}`: a top-down table has one cut of every column")
        check_score(job)
        for option in options_of_job(job):
            option.check(job)

    def level(self, job: Job) -> str:
        return job.disclosure or ""

    def reveals(self, task: Task) -> tuple[Allowed, ...]:
        """Return the reveals of the score."""
        from jobs.lkc.joint_score import joint_score

        return tuple(joint_score(task.job).reveals.get(task.mode.name, ()))

    def single_result(self, task: Task, loaded: Loaded, shown: Observer) -> SingleResult:
        from jobs.lkc.single import made

        return made(task, loaded, shown)

    def decode(self, task: Task, encoded: bytes, sender: str) -> Made:
        from jobs.lkc.result import decode_result

        return decode_result(encoded, task.result_schema, sender, counted_apart(task.job))

    def known_labels(self, column: QidColumn) -> Callable[[str], bool]:
        from jobs.lkc.cuts import known_labels

        return known_labels(column)

    def readings(
        self, task: Task, release: Release, report: Mapping[str, Any], path: Path
    ) -> Iterator[dict[str, Any]]:
        from jobs.lkc.cuts import readings

        return readings(task, release, report, path)

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        from jobs.lkc.report import shown_fields

        return shown_fields(task, report)


METHOD = TopDown()
