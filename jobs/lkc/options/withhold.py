"""`withhold`: a share of the rows may be left out, where others can keep more detail then."""

from __future__ import annotations

import numpy as np

from anonymize.criteria.criterion import Beside
from anonymize.lkc.withholding import withheld_rows
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from jobs.data.tables import Loaded
from jobs.lkc.requirement import beside, job_score, requirement
from jobs.reading import part_of
from jobs.task import Task


def kept(task: Task, loaded: Loaded, shown: Observer | None = None) -> Loaded:
    """Return a table without the rows that are left out, as if it never had them. Raises PrivacyError."""
    assert task.job.lkc.withhold is not None
    table, asked = loaded.table, requirement(task)
    most = int(task.job.lkc.withhold * table.n_records)

    def part(rows: Ints) -> tuple[CodedTable, Beside]:
        some = part_of(loaded, rows, task)
        return some.table, beside(task, some, some.party)

    gone = withheld_rows(table, asked, job_score(task.job), most, part, shown)
    return part_of(loaded, np.setdiff1d(np.arange(len(table.cells)), gone), task)
