"""LKC-privacy among the models, and an index of the files of the folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymize.table import SensitiveColumn
from anonymize.tds import Observer
from jobs.data.tables import Loaded, Table
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.file.schema import Domains
from jobs.file.values import sensitive_columns
from jobs.lkc import requirement
from jobs.lkc.coders import coder
from jobs.lkc.forms.form import GROUPS, SENSITIVE
from jobs.lkc.method import method_of
from jobs.modes import no_protocol
from jobs.reading import load_table
from jobs.release.csv import PARTS_OF_TABLE, TABLE
from jobs.task import Charges, Checked, Collected, Described, Mode, Model, Reading, Rendered, Shown, Task

if TYPE_CHECKING:
    from anonymize.joint.disclosure import Allowed
    from anonymize.release import Release
    from jobs.data.sources import Source
    from jobs.lkc.result import Made
    from jobs.options import Noted, Options
    from jobs.owner.rules import Rule
    from jobs.page.parts import Section
    from jobs.stopwatch import Stopwatch


_ALONE = (
    Mode("lkc", "single", "", "lkc/single", no_protocol, least=0),
    Mode("lkc", "single", "kd", "lkc/single/kd", no_protocol, least=0),
)


class LkcPrivacy(Model):
    """Model against an attacker with at most L columns: groups have K or more records; confidence is at most C."""

    name = "lkc"
    reading = Reading(load_table, coder, per_person=lambda job: job.lkc.unit == PERSON)
    made = (TABLE, PARTS_OF_TABLE, GROUPS, SENSITIVE)
    tells_seconds = True

    @property
    def charges(self) -> Charges:
        from jobs.owner.limited import Limited

        return Limited(requirement.known, requirement.largest_k)

    def check_first(self, job: Job) -> None:
        requirement.check_partition(job)
        method_of(job).check_goal(job)

    def check(self, job: Job) -> None:
        requirement.check(job)
        method_of(job).check(job)

    def check_opened(self, task: Task) -> None:
        """Check the model of clusters and the requirement on sensitive columns; always check taxonomies and grids."""
        assert task.clusters is not None or task.job.clusters is None
        requirement.check_opened(task)
        method_of(task.job).check_opened(task)

    def rules(self, task: Task, held: Collection[str]) -> Sequence[Rule]:
        from jobs.lkc.rules import rules

        return tuple(rules(task, held))

    def sensitive(self, task: Task, found: Domains) -> tuple[SensitiveColumn, ...]:
        return sensitive_columns(task, found)

    def described(self, task: Task) -> Described:
        from jobs.lkc.sentences import notes_on, promises_of

        settings = requirement.settings(task.job)
        columns = {name: requirement.described_column(task, name) for name in task.job.columns}
        return Described(
            requirement.requirement_words(task.job),
            settings,
            columns,
            [*notes_on(task), *_warned(task)],
            "a row for each record, with generalized values",
            promises_of(task),
        )

    def modes(self, partition: str) -> tuple[Mode, ...]:
        if partition == "single":
            return _ALONE
        from jobs.lkc.modes import MODES

        return tuple(mode for mode in MODES if mode.partition == partition)

    def level(self, job: Job) -> str:
        return method_of(job).level(job)

    def reveals(self, task: Task) -> tuple[Allowed, ...]:
        if not task.job.roster:
            return ()
        from jobs.lkc.shuffled import reveals_of_rows

        return (*method_of(task.job).reveals(task), *reveals_of_rows(task))

    def for_owner(self, task: Task, table: Table) -> tuple[str, ...]:
        return method_of(task.job).for_owner(task, table) if isinstance(table, Loaded) else ()

    def run_single(
        self, task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
    ) -> Noted:
        from jobs.lkc.single import release_to_folder

        return release_to_folder(task, source, out, options, watch, shown)

    def decode(self, task: Task, encoded: bytes, sender: str) -> Made:
        from jobs.lkc.shuffled import decode

        return decode(task, encoded, sender, method_of(task.job).decode)

    def made_of(self, task: Task, collected: Collected, options: Options) -> Rendered:
        from jobs.lkc.files import made_of

        return made_of(task, collected)

    def expected_of(
        self, task: Task, result: Made, files: Mapping[str, bytes], parts: Mapping[str, bytes]
    ) -> Rendered:
        from jobs.lkc.files import expected_of

        return expected_of(task, result, files, parts)

    def most_bytes(self, task: Task, result: Made) -> int:
        from jobs.lkc.files import most_bytes

        return most_bytes(task, result)

    def verify(self, task: Task, out: Path) -> Checked:
        from jobs.lkc.checked import verify_table

        return verify_table(task, out)

    def seen(self, task: Task, folder: Path) -> Release:
        from jobs.lkc.checked import table_of_folder

        return table_of_folder(task, folder)

    def sections(self, task: Task, report: Mapping[str, Any], seen: Release) -> Iterable[Section]:
        from jobs.lkc.page import sections

        return sections(task, report, seen)

    def own_sections(
        self, task: Task, table: Table, report: Mapping[str, Any], seen: Release
    ) -> Iterable[Section]:
        from jobs.lkc.own_page import own_sections

        return own_sections(task, table, seen)

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        from jobs.lkc.sentences import promises_of

        found = method_of(task.job).shown(task, report)
        return replace(found, lines=[*found.lines, *_warned(task)], verified=promises_of(task))


def _warned(task: Task) -> list[str]:
    """Return the warnings of a weak job, for the console."""
    from jobs.lkc.sentences import weakness_of

    return [f"warning: {words}" for words in weakness_of(task)]


MODEL = LkcPrivacy()
