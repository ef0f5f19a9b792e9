"""LKC-privacy of sequences among the models, and an index of the files of the folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymize.table import SensitiveColumn
from anonymize.tds import Observer
from jobs.data.sources import Source
from jobs.file.job import Job
from jobs.file.schema import Domains
from jobs.file.values import sensitive_columns
from jobs.modes import no_protocol
from jobs.options import Noted, Options
from jobs.owner.rules import Rule
from jobs.release.csv import TABLE
from jobs.sequences import requirement
from jobs.sequences.coders import coder
from jobs.sequences.reading import load_tracks, settings
from jobs.stopwatch import Stopwatch
from jobs.task import Charges, Checked, Collected, Described, Mode, Model, Reading, Rendered, Shown, Task

if TYPE_CHECKING:
    from jobs.data.tables import Table
    from jobs.page.parts import Section
    from jobs.sequences.reread import Reread
    from jobs.sequences.result import SequencesResult


class Sequences(Model):
    """Model against an attacker with at most L items: K or more records have the items; confidence is at most C."""

    name = "sequences"
    reading = Reading(load_tracks, coder)
    made = (TABLE,)
    tells_seconds = True

    @property
    def charges(self) -> Charges:
        from jobs.owner.limited import Limited

        return Limited()

    def check_first(self, job: Job) -> None:
        requirement.check_partition(job)

    def check(self, job: Job) -> None:
        requirement.check(job)

    def check_opened(self, task: Task) -> None:
        requirement.check_opened(task)

    def sensitive(self, task: Task, found: Domains) -> tuple[SensitiveColumn, ...]:
        return sensitive_columns(task, found)

    def rules(self, task: Task, held: Collection[str]) -> Sequence[Rule]:
        return tuple(requirement.rules(task, held))

    def described(self, task: Task) -> Described:
        in_words = {"L", "K", "C"}
        others = settings(task.job).model_dump(mode="json", exclude=in_words, exclude_none=True)
        columns = {name: requirement.described_column(task, name) for name in task.job.columns}
        from jobs.sequences.sentences import promises_of

        return Described(
            requirement.requirement_words(task.job),
            others,
            columns,
            [*requirement.notes(task), *_warned(task)],
            "a row for each record, without the items of rare sequences",
            promises_of(task),
        )

    def modes(self, partition: str) -> tuple[Mode, ...]:
        if partition == "single":
            return (Mode("sequences", partition, "", "sequences/single", no_protocol, least=0),)
        from jobs.sequences.modes import MODES

        return tuple(mode for mode in MODES if mode.partition == partition)

    def level(self, job: Job) -> str:
        return job.disclosure or ""

    def run_single(
        self, task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
    ) -> Noted:
        from jobs.sequences.single import release_to_folder

        return release_to_folder(task, source, out, options, watch, shown)

    def decode(self, task: Task, encoded: bytes, sender: str) -> SequencesResult:
        from jobs.sequences.result import decode_result

        return decode_result(task, encoded, sender)

    def made_of(self, task: Task, collected: Collected, options: Options) -> Rendered:
        from jobs.sequences.files import made_of

        return made_of(task, collected)

    def expected_of(
        self, task: Task, result: SequencesResult, files: Mapping[str, bytes], parts: Mapping[str, bytes]
    ) -> Rendered:
        from jobs.sequences.files import render

        return render(task, result)

    def verify(self, task: Task, out: Path) -> Checked:
        from jobs.sequences.checked import verify_table

        return verify_table(task, out)

    def seen(self, task: Task, folder: Path) -> Reread:
        from jobs.release.csv import read_csv
        from jobs.sequences.release import published
        from jobs.sequences.reread import reread

        return reread(read_csv(folder / TABLE, published(task.job)), task)

    def sections(self, task: Task, report: Mapping[str, Any], seen: Reread) -> Iterable[Section]:
        from jobs.sequences.page import sections
        from jobs.sequences.sentences import promises_of

        return sections(task, report, promises_of(task), seen)

    def own_sections(
        self, task: Task, table: Table, report: Mapping[str, Any], seen: Reread
    ) -> Iterable[Section]:
        from jobs.sequences.own_page import own_sections
        from jobs.sequences.reading import Tracks

        assert isinstance(table, Tracks), "as the model reads tables"
        return own_sections(task, table, table.paths, None)

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        from jobs.sequences.report import shown_fields
        from jobs.sequences.sentences import promises_of

        found = shown_fields(report)
        return replace(found, lines=[*found.lines, *_warned(task)], verified=promises_of(task))


def _warned(task: Task) -> list[str]:
    """Return the warnings of a weak job, for the console."""
    from jobs.promises import weakness

    return [f"warning: {words}" for words in weakness([settings(task.job).K])]


MODEL = Sequences()
