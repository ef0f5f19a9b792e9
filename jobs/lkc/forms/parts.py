"""`files: parquet`: a row for every record, in a folder of Parquet files, for tables larger than memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anonymize.release import Release, Rng
from jobs.file.job import Job
from jobs.lkc.forms.form import Tables
from jobs.lkc.forms.rows import ROWS
from jobs.release.csv import PARTS_OF_TABLE, TABLE
from jobs.release.parts import PARTS


def _columns(job: Job) -> Mapping[str, tuple[str, ...]]:
    return {PARTS_OF_TABLE: job.published}


def _check(job: Job) -> None:
    if job.partition != "single":
        raise ValueError("`files: parquet` is for the table of a single holder: parties deliver CSV")


def _tables(job: Job, rows: Release, rng: Rng) -> Tables:
    return {PARTS_OF_TABLE: ROWS.tables(job, rows, rng)[TABLE]}


def _rows(job: Job, tables: Tables, most: int) -> Release:
    return tables[PARTS_OF_TABLE]


IN_PARTS = replace(ROWS, columns=_columns, check=_check, tables=_tables, rows=_rows, store=PARTS)
