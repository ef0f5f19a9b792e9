"""A synthetic table with differential privacy among the models: which file of this folder answers what."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymize.tds import Observer
from jobs.data.coders import Coder
from jobs.data.sources import Source
from jobs.dp import budget
from jobs.dp.charged import Charged
from jobs.job import Job
from jobs.later import later
from jobs.options import Noted, Options
from jobs.policy import Policy
from jobs.release_csv import REPORT
from jobs.stopwatch import Stopwatch
from jobs.sums import SUMS
from jobs.synthetic import asked, coders
from jobs.synthetic.settings import MARGINALS, SYNTHETIC, SYNTHETIC_TABLE
from jobs.task import Checked, Collected, Shown, Task

if TYPE_CHECKING:
    from jobs.dp.words import promised
    from jobs.pages.blocks import Told
    from jobs.synthetic import page
    from jobs.synthetic.alone import synthesize_to_folder
    from jobs.synthetic.files import check_delivery, write_joint_release
    from jobs.synthetic.marginals import marginals_csv
    from jobs.synthetic.report import shown_fields
    from jobs.synthetic.result import SyntheticResult, decode_result
    from jobs.synthetic.table import synthetic_csv
    from jobs.synthetic.verify import verify_synthetic
else:
    page = later("jobs.synthetic.page")
    promised = later("jobs.dp.words").promised
    synthesize_to_folder = later("jobs.synthetic.alone").synthesize_to_folder
    check_delivery = later("jobs.synthetic.files").check_delivery
    write_joint_release = later("jobs.synthetic.files").write_joint_release
    marginals_csv = later("jobs.synthetic.marginals").marginals_csv
    shown_fields = later("jobs.synthetic.report").shown_fields
    decode_result = later("jobs.synthetic.result").decode_result
    synthetic_csv = later("jobs.synthetic.table").synthetic_csv
    verify_synthetic = later("jobs.synthetic.verify").verify_synthetic


class SyntheticTables(Charged):
    """Rows drawn from noisy counts: a release tells little of whether a record was in the table."""

    name = SYNTHETIC
    delivered = (SYNTHETIC_TABLE, MARGINALS, REPORT, SUMS)
    made = (SYNTHETIC_TABLE, MARGINALS)

    def check(self, job: Job) -> None:
        asked.check(job)

    def check_opened(self, task: Task) -> None:
        asked.check_opened(task)

    def objections(self, task: Task, policy: Policy, held: Collection[str]) -> Iterator[str]:
        return budget.objections(task, policy)

    def allowance(self, task: Task, held: Collection[str]) -> dict[str, Any]:
        return budget.allowance(task)

    def requirement_words(self, task: Task) -> str:
        return asked.requirement_words(task)

    def promise(self, task: Task) -> list[str]:
        return promised(task)

    def settings(self, job: Job) -> dict[str, Any]:
        return asked.settings(job).model_dump(mode="json")

    def coder(self, task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
        """All domains are listed: nothing is left to be found."""
        return coders.coder(task, name)

    def level(self, job: Job) -> str:
        return ""

    def run_alone(
        self, task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
    ) -> Noted:
        return synthesize_to_folder(task, source, out, options, watch, shown)

    def decode(self, task: Task, encoded: bytes, sender: str) -> SyntheticResult:
        return decode_result(encoded, task, sender)

    def write(
        self, task: Task, folder: Path, collected: Collected, options: Options, watch: Stopwatch
    ) -> bytes:
        return write_joint_release(task, folder, collected, options, watch)

    def check_delivery(
        self, task: Task, result: SyntheticResult, files: Mapping[str, bytes], parts: Mapping[str, bytes]
    ) -> None:
        check_delivery(task, result, files)

    def most_bytes(self, task: Task, result: SyntheticResult) -> int:
        return len(synthetic_csv(task, result.outcome)) + len(marginals_csv(result.outcome))

    def verify(self, task: Task, out: Path) -> Checked:
        return verify_synthetic(task, out)

    def told(self, task: Task, report: Mapping[str, Any]) -> Told:
        return page.told(task, report)

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        return shown_fields(report)
