"""Page of an LKC release for the owner of raw rows: risk, worth and values, before and after."""

from __future__ import annotations

from collections.abc import Iterator

from anonymize.release import Release
from jobs.data.tables import Loaded, Table
from jobs.lkc.entries import entries_of, greatest_k
from jobs.lkc.forms.form import form_of
from jobs.lkc.linked_columns import parts_apart
from jobs.lkc.method import method_of
from jobs.page.own import (
    IN_CELLS,
    columns_section,
    model_section,
    predicted_by_own,
    raw_rows,
    risk_section,
    rows_section,
    sizes_of,
)
from jobs.page.parts import Section
from jobs.task import Task


def own_sections(task: Task, table: Table, released: Release) -> Iterator[Section]:
    """Yield the sections.

    table:     the owner's, after pass 1: of a joint job with columns of its own, only these columns.
    released:  the rows that readers can make of the release.
    """
    raw = raw_rows(task, table)
    yield rows_section(table.rows.words())
    if not raw.n_records:
        return
    known = [name for name in task.job.names("qid") if name in raw.columns]
    yield risk_section(
        sizes_of(raw, known),
        sizes_of(released, known),
        greatest_k(entries_of(task.job)),
        known=known,
        note=IN_CELLS if form_of(task.job).quasi.generalized(task.job) else "",
    )
    yield from _model(task, raw, released, known)
    if isinstance(table, Loaded):
        yield from method_of(task.job).own_sections(task, table, released)
    yield columns_section(raw, released, raw.columns)


def _model(task: Task, raw: Release, released: Release, known: list[str]) -> Iterator[Section]:
    """Yield the section on the class, where a reader can link a record's class and quasi-identifiers."""
    classes = [
        name for name in task.job.names("class") if {name} <= raw.columns.keys() & released.columns.keys()
    ]
    if classes and known and not parts_apart(task.job):
        share = predicted_by_own(released, classes[0], known)
        meaning = "Each released record is predicted from all other released records."
        yield model_section(raw, classes[0], known, share, meaning)
