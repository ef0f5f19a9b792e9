"""`withhold`: a share of the rows may be suppressed, if the remaining rows then keep more detail."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from anonymize.criteria.criterion import SideInputs
from anonymize.lkc.outliers import outlier_rows
from anonymize.release import Release
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from jobs.data.counted import counted, noun
from jobs.data.tables import Loaded
from jobs.file.job import Job
from jobs.lkc.options.option import JobOption
from jobs.task import Task


@dataclass(frozen=True)
class Withhold(JobOption):
    """Suppression option. share: largest part of the read and used rows."""

    share: Fraction
    key: ClassVar[str] = "withhold"
    phase: ClassVar[str] = "withhold"

    def check_first(self, job: Job) -> None:
        """Refuse joint jobs: parties would be told the rows that block a specialization."""
        if job.partition != "single":
            raise ValueError(
                "`withhold` is for the table of a single holder: a joint run would have to tell which rows block a "
                "specialization"
            )

    def check(self, job: Job) -> None:
        """Refuse plain columns, which are read after the suppression."""
        for name in job.names("plain"):
            raise ValueError(
                f"columns.{name}: plain columns are read after rows were withheld, without knowing the rows; leave "
                "out `withhold` or the column"
            )

    def kept(self, task: Task, loaded: Loaded, shown: Observer | None) -> Loaded:
        from jobs.lkc.requirement import job_score, requirement, side_inputs
        from jobs.reading import part_of

        def part(rows: Ints) -> tuple[CodedTable, SideInputs]:
            some = part_of(loaded, rows, task)
            return some.table, side_inputs(task, some, some.party)

        table = loaded.table
        most = self.most_left_out(table.n_records)
        gone = outlier_rows(table, requirement(task), job_score(task.job), most, part, shown)
        return part_of(loaded, np.setdiff1d(np.arange(len(table.cells)), gone), task)

    def most_left_out(self, n_used: int) -> int:
        return int(self.share * n_used)

    def fields(self, task: Task, n_left_out: int, release: Release) -> dict[str, Any]:
        """Return the number of suppressed rows, and the risk of the kept rows; no more of suppressed rows."""
        from jobs.lkc.report import risk_of

        n = n_left_out + release.n_records
        told = {"limit": str(self.share), "rows": n_left_out, "share": n_left_out / n}
        return {
            "withheld": told | {"meaning": _meaning(n_left_out, n)},
            "risk": risk_of(task, release, {"withheld": n_left_out}, _without(n_left_out)),
        }


def _meaning(n_withheld: int, n_used: int) -> str:
    """Return the sentence on the number of suppressed rows, and on the meaning of the table's figures."""
    if not n_withheld:
        return (
            "Nothing was withheld: within the limit of `withhold`, no rows would have freed more than the rows are "
            "worth."
        )
    return (
        f"{counted(n_withheld, 'row', 'rows')} of {n_used:,} ({n_withheld / n_used:.1%}) "
        f"{noun(n_withheld, 'was', 'were')} withheld (`withhold`): records in groups that blocked specializations. "
        "The table leaves these rows out. Counts, shares and risks of the table describe the rest, without rare "
        "combinations."
    )


def _without(n_withheld: int) -> str:
    """Return the sentence on the records behind figures of risk; empty without suppressed rows."""
    if not n_withheld:
        return ""
    return (
        f" {counted(n_withheld, 'record was', 'records were')} withheld and {noun(n_withheld, 'is', 'are')} "
        "missing in these figures, which describe the records in the table."
    )


def made(share: Fraction) -> Withhold:
    """Make the option of a job with the key."""
    return Withhold(share)
