"""The Adult data set as a job."""

from __future__ import annotations

import functools
from fractions import Fraction

from anonymize.lkc.requirement import AskedList
from anonymize.table import CodedTable
from jobs.data.sources import Csv
from jobs.file.bundle import Bundle
from jobs.loading import load_task, open_task
from jobs.reading import load_table
from tests.support.entries import lkc
from tests.support.shared_jobs import shared_job


@functools.cache
def adult() -> tuple[Bundle, CodedTable]:
    folder = shared_job("adult")
    bundle = load_task(folder / "job.yaml").bundle
    return bundle, load_table(Csv(folder / "raw.csv"), open_task(bundle)).table


def adult_lkc(max_known: int, min_size: int, c: str, insider: bool = False) -> AskedList:
    """LKC-privacy; c: of the sensitive column."""
    return lkc(max_known, min_size, insider, {"marital-status": Fraction(c)})
