"""The Adult data set as a job."""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction

from anonymize.table import CodedTable
from jobs.bundle import Bundle
from jobs.data.sources import Csv
from jobs.loading import load_task, open_task
from jobs.reading import load_table
from tests.support.shared_jobs import shared_job


@functools.cache
def adult() -> tuple[Bundle, CodedTable]:
    folder = shared_job("adult")
    bundle = load_task(folder / "job.yaml").bundle
    return bundle, load_table(Csv(folder / "raw.csv"), open_task(bundle)).table


def with_confidence(table: CodedTable, c: str) -> CodedTable:
    """The same table under another C."""
    (sensitive,) = table.schema.sensitive
    column = dataclasses.replace(sensitive, confidence=Fraction(c))
    schema = dataclasses.replace(table.schema, sensitive=(column,))
    return dataclasses.replace(table, schema=schema)
