"""Synthetic table with differential privacy among the models, and an index of the files of the folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymize.tds import Observer
from jobs.data.sources import Source
from jobs.dp import budget
from jobs.dp.charged import Charged, reading_by
from jobs.dp.settings import MARGINALS, SYNTHETIC, SYNTHETIC_TABLE
from jobs.file.job import Job
from jobs.modes import no_protocol
from jobs.options import Noted, Options
from jobs.owner.rules import Rule
from jobs.stopwatch import Stopwatch
from jobs.synthetic import requirement
from jobs.synthetic.coders import coder
from jobs.task import Checked, Collected, Described, Mode, Rendered, Shown, Task

if TYPE_CHECKING:
    from anonymize.release import Release
    from jobs.data.tables import Table
    from jobs.page.parts import Section
    from jobs.synthetic.result import SyntheticResult


class SyntheticTables(Charged):
    """Rows drawn from noisy counts: a release tells little of whether a record was in the table."""

    name = SYNTHETIC
    reading = reading_by(coder)
    made = (SYNTHETIC_TABLE, MARGINALS)

    def check(self, job: Job) -> None:
        requirement.check(job)

    def check_opened(self, task: Task) -> None:
        requirement.check_opened(task)

    def rules(self, task: Task, held: Collection[str]) -> Sequence[Rule]:
        return tuple(budget.rules(task))

    def described(self, task: Task) -> Described:
        from jobs.dp.sentences import promises_of, warned

        settings = requirement.settings(task.job).model_dump(mode="json")
        notes = [*budget.without_effect(task.job), *requirement.about_order(task), *warned(task)]
        return Described(
            requirement.requirement_words(task),
            settings,
            notes=notes,
            release="drawn rows, of no real person, from noisy counts",
            promises=promises_of(task),
        )

    def modes(self, partition: str) -> tuple[Mode, ...]:
        if partition == "single":
            from jobs.dp.sentences import of_single_holder
            from jobs.synthetic.sentences import of_measuring

            return (
                Mode(
                    SYNTHETIC,
                    partition,
                    "",
                    "dp/single/synthetic",
                    no_protocol,
                    least=0,
                    words=of_single_holder,
                    costs=of_measuring,
                ),
            )

        from jobs.synthetic.modes import MODES

        return tuple(mode for mode in MODES if mode.partition == partition)

    def level(self, job: Job) -> str:
        return ""

    def run_single(
        self, task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
    ) -> Noted:
        from jobs.synthetic.single import synthesize_to_folder

        return synthesize_to_folder(task, source, out, options, watch, shown)

    def decode(self, task: Task, encoded: bytes, sender: str) -> SyntheticResult:
        from jobs.synthetic.result import decode_result

        return decode_result(encoded, task, sender)

    def made_of(self, task: Task, collected: Collected, options: Options) -> Rendered:
        from jobs.synthetic.files import made_of

        return made_of(task, collected)

    def expected_of(
        self, task: Task, result: SyntheticResult, files: Mapping[str, bytes], parts: Mapping[str, bytes]
    ) -> Rendered:
        from jobs.synthetic.files import render

        return render(task, result)

    def verify(self, task: Task, out: Path) -> Checked:
        from jobs.synthetic.verify import verify_synthetic

        return verify_synthetic(task, out)

    def seen(self, task: Task, folder: Path) -> tuple[Release, Release]:
        from jobs.release.csv import read_table

        return read_table(folder / SYNTHETIC_TABLE), read_table(folder / MARGINALS)

    def sections(
        self, task: Task, report: Mapping[str, Any], seen: tuple[Release, Release]
    ) -> Iterable[Section]:
        from jobs.synthetic.page import sections

        return sections(task, report, *seen)

    def own_sections(
        self, task: Task, table: Table, report: Mapping[str, Any], seen: tuple[Release, Release]
    ) -> Iterable[Section]:
        from jobs.page.own import raw_rows
        from jobs.synthetic.own_page import own_sections

        return own_sections(task, table.rows, raw_rows(task, table), seen[0])

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        from jobs.dp.sentences import warned
        from jobs.synthetic.report import shown_fields

        found = shown_fields(report)
        return replace(found, lines=[*found.lines, *warned(task)])


MODEL = SyntheticTables()
