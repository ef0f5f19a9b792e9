"""`method: kd` among the methods of LKC jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymize.release import Release
from anonymize.table import QidColumn
from anonymize.tds import Observer
from jobs.data.tables import Loaded
from jobs.file.job import Job
from jobs.lkc.kd import requirement
from jobs.lkc.kd.owner import bare_middles
from jobs.lkc.method import Method, SingleResult
from jobs.task import Shown, Task

if TYPE_CHECKING:
    from jobs.lkc.result import Made
    from jobs.page.parts import Section


class Kd(Method):
    """Boxes, each cut by itself."""

    def check_goal(self, job: Job) -> None:
        requirement.check_goal(job)

    def check(self, job: Job) -> None:
        requirement.check(job)

    def check_opened(self, task: Task) -> None:
        requirement.check_opened(task)

    def level(self, job: Job) -> str:
        return requirement.level(job)

    def for_owner(self, task: Task, table: Loaded) -> tuple[str, ...]:
        return bare_middles(task, table)

    def single_result(self, task: Task, loaded: Loaded, shown: Observer) -> SingleResult:
        from jobs.lkc.kd.single import made

        return made(task, loaded, shown)

    def decode(self, task: Task, encoded: bytes, sender: str) -> Made:
        from jobs.lkc.kd.run import decode

        return decode(task, encoded, sender)

    def known_labels(self, column: QidColumn) -> Callable[[str], bool]:
        from jobs.lkc.kd.checked import known_labels

        return known_labels(column)

    def check_groups(self, task: Task, release: Release) -> Mapping[str, str]:
        from jobs.lkc.kd.checked import check_groups

        return check_groups(task, release)

    def readings(
        self, task: Task, release: Release, report: Mapping[str, Any], path: Path
    ) -> Iterator[dict[str, Any]]:
        from jobs.lkc.kd.checked import readings

        return readings(task, release, report, path)

    def sections(self, task: Task, release: Release) -> Iterable[Section]:
        from jobs.lkc.kd.page import sections

        return sections(task, release)

    def own_sections(self, task: Task, table: Loaded, release: Release) -> Iterable[Section]:
        from jobs.lkc.kd.page import own_sections

        return own_sections(task, table.table, release)

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        from jobs.lkc.kd.report import shown_fields

        return shown_fields(task, report)


METHOD = Kd()
