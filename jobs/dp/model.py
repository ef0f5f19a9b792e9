"""Differential privacy among the models, and an index of the files of the folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymize.tds import Observer
from jobs.data.sources import Source
from jobs.dp import budget, requirement
from jobs.dp.charged import Charged, reading_by
from jobs.dp.coders import coder
from jobs.dp.counts import COUNTS
from jobs.file.job import Job
from jobs.modes import no_protocol
from jobs.options import Noted, Options
from jobs.owner.rules import Rule
from jobs.release.csv import TABLE
from jobs.stopwatch import Stopwatch
from jobs.task import Checked, Collected, Described, Mode, Rendered, Shown, Task

if TYPE_CHECKING:
    from anonymize.release import Release
    from jobs.data.tables import Table
    from jobs.dp.result import DpResult
    from jobs.page.parts import Section


class DifferentialPrivacy(Charged):
    """Model with releases that disclose little about a record's presence: ε."""

    name = "dp"
    reading = reading_by(coder)
    made = (COUNTS, TABLE)

    def check(self, job: Job) -> None:
        requirement.check(job)

    def check_opened(self, task: Task) -> None:
        requirement.check_opened(task)

    def rules(self, task: Task, held: Collection[str]) -> Sequence[Rule]:
        return tuple(requirement.rules(task))

    def described(self, task: Task) -> Described:
        from jobs.dp.sentences import promises_of, warned

        settings = requirement.settings(task.job).model_dump(mode="json")
        notes = [*requirement.noise_of_counts(task), *budget.without_effect(task.job), *warned(task)]
        return Described(
            requirement.requirement_words(task),
            settings,
            notes=notes,
            release="noisy counts of groups of records",
            promises=promises_of(task),
        )

    def modes(self, partition: str) -> tuple[Mode, ...]:
        if partition == "single":
            from jobs.dp.sentences import of_single_holder

            return (
                Mode("dp", partition, "circuit", "dp/single", no_protocol, least=0, words=of_single_holder),
            )

        from jobs.dp.modes import MODES

        return tuple(mode for mode in MODES if mode.partition == partition)

    def level(self, job: Job) -> str:
        return requirement.settings(job).engine

    def run_single(
        self, task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
    ) -> Noted:
        from jobs.dp.single import release_to_folder

        return release_to_folder(task, source, out, options, watch, shown)

    def decode(self, task: Task, encoded: bytes, sender: str) -> DpResult:
        from jobs.dp.result import decode_result

        return decode_result(encoded, task, sender)

    def made_of(self, task: Task, collected: Collected, options: Options) -> Rendered:
        from jobs.dp.files import made_of

        return made_of(task, collected, options)

    def expected_of(
        self, task: Task, result: DpResult, files: Mapping[str, bytes], parts: Mapping[str, bytes]
    ) -> Rendered:
        from jobs.dp.files import expected_of

        return expected_of(task, result, files)

    def verify(self, task: Task, out: Path) -> Checked:
        from jobs.dp.verify import verify_counts

        return verify_counts(task, out)

    def seen(self, task: Task, folder: Path) -> Release:
        from jobs.release.csv import read_table

        return read_table(folder / COUNTS)

    def sections(self, task: Task, report: Mapping[str, Any], seen: Release) -> Iterable[Section]:
        from jobs.dp.page import sections

        return sections(task, report, seen)

    def own_sections(
        self, task: Task, table: Table, report: Mapping[str, Any], seen: Release
    ) -> Iterable[Section]:
        from jobs.dp.own_page import own_sections
        from jobs.page.own import raw_rows

        return own_sections(task, table.rows, raw_rows(task, table), seen, report["cut"])

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        from jobs.dp.report import shown_fields
        from jobs.dp.sentences import warned

        found = shown_fields(report)
        return replace(found, lines=[*found.lines, *warned(task)])


MODEL = DifferentialPrivacy()
