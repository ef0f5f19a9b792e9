"""`release: rows`: a row for every record. Several blocks are shuffled inside each group."""

from __future__ import annotations

from collections.abc import Mapping

from anonymize.release import Release, Rng
from jobs.file.job import Job
from jobs.lkc.forms.form import Form, Raw, Tables, by_quasi_identifiers
from jobs.lkc.linked_columns import blocks_of
from jobs.release.csv import TABLE


def _columns(job: Job) -> Mapping[str, tuple[str, ...]]:
    return {TABLE: job.published}


def _check(job: Job) -> None:
    """Accept every job: all tables have rows."""


def _grouped(job: Job, rows: Release, raw: Raw, rng: Rng) -> Release:
    return rows


def _tables(job: Job, rows: Release, rng: Rng) -> Tables:
    """Return the tables. Class and plain columns stay with the quasi-identifiers. Vertical holders have shuffled."""
    blocks = blocks_of(job)
    if job.lkc.link is not None and len(blocks) > 1:
        from anonymize.lkc.linked_columns import groups_of, shuffled_apart

        rows = rows.in_rows()
        rows = shuffled_apart(rows, groups_of(rows, job.names("qid")), blocks, rng)
    return {TABLE: rows.ordered(job.published).merged()}


def _rows(job: Job, tables: Tables, most: int) -> Release:
    return tables[TABLE].merged()


ROWS = Form(_columns, by_quasi_identifiers, _check, _grouped, _tables, _rows)
