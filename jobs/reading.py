"""Pass 1: what a task asks of a party's table, and the table as codes (semantics §3).

A source is handed a :class:`jobs.data.coding.Coding` and nothing else of the task.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from anonymize.errors import DataError
from anonymize.table import CodedTable, Codes, Ints, Schema, coded_table
from jobs.data.coding import Coded, Coding
from jobs.data.counted import counted
from jobs.data.tables import Loaded
from jobs.data.worded import Worded
from jobs.file.columns import Column
from jobs.task import Task

if TYPE_CHECKING:
    from jobs.data.sources import Source


def coding_of(task: Task, me: str | None, *, matched: bool) -> Coding:
    """Return the coding with which pass 1 reads the columns of party ``me``; None: of all parties.

    matched: peers find records by id. A peer would then notice a table without rows or with a repeated id,
             so such a table is refused for every model.
    """
    job, held, reading = task.job, task.held_by(me), task.model.reading
    return Coding(
        {n: reading.coder(task, n) for n in job.names("qid", "class", "sensitive", "party") if n in held},
        job.names("id"),
        checked=matched or reading.checked,
        outside=reading.outside or any(column.outside is not None for column in job.columns.values()),
        matched=matched,
        persons=not matched and reading.per_person(job),
        id_forms={n: form.form for n in job.names("id") if (form := job.columns[n].normalize) is not None},
    )


def load_table(source: Source, task: Task) -> Loaded:
    """Read the source once into a coded table: collapsed, but not across parties or people.

    Raises DataError for a missing column, a value that is no leaf or outside its domain, a missing class or
    sensitive cell, two rows with the same id (a row without an id, where people are told apart), or no usable row.
    """
    coding = coding_of(task, None, matched=False)
    check_columns(source, task)
    coded = source.collapse(coding)
    check_rows(coded, coding)
    return table_of(coded, task)


def table_of(coded: Coded, task: Task) -> Loaded:
    """Return the rows of pass 1 as a table: collapsed, but not across parties or people."""
    schema = task.schema_with({name: column.domain for name, column in coded.columns.items()})
    # A holder of everything counts occurring cells. Parties of a joint run need a common public numbering of cells.
    occurring = bool(schema.sensitive) and not task.job.roster
    table = row_by_row(coded, schema, classes_of(coded, schema, task), occurring=occurring)
    (name,) = task.job.names("party") or (None,)
    if name is not None:
        table, party = table.collapsed_by(coded.columns[name].codes.astype(np.int64))
        return Loaded(table, coded.rows, party=party)
    if coded.person is not None:
        table, person = table.collapsed_by(coded.person)
        return Loaded(table, coded.rows, person=person)
    return Loaded(table.collapsed(), coded.rows)


def part_of(loaded: Loaded, rows: Ints, task: Task) -> Loaded:
    """Return some rows of a table, by number, as if no other rows existed.

    Where the job leaves a domain to the data, only the values of the chosen rows and the protected values stay.
    """
    part = loaded.some(rows)
    schema = part.table.schema
    domains = [(schema.class_name, schema.classes), *((c.name, c.domain) for c in schema.sensitive)]
    found = {}
    for axis, (name, domain) in enumerate(domains):
        if name is not None and name in task.job.columns and not task.job.columns[name].is_listed:
            there = set(np.unique(part.table.axis(axis)).tolist())
            listed = task.job.columns[name].protected
            found[name] = tuple(v for i, v in enumerate(domain) if i in there or v in listed)
    return replace(part, table=part.table.recoded(task.schema_with(found))) if found else part


def classes_of(coded: Coded, schema: Schema, task: Task) -> Codes:
    """Return the target of every row: its class, or its cluster; 0 without a target."""
    if task.clusters is not None:
        return task.clusters.labels(schema.qid, [coded.columns[column.name].codes for column in schema.qid])
    if schema.class_name is None:
        return np.zeros(len(coded.weights), dtype=np.uint8)
    return coded.columns[schema.class_name].codes


def row_by_row(coded: Coded, schema: Schema, classes: Codes, *, occurring: bool) -> CodedTable:
    """Return the rows of pass 1 as a table, not collapsed. classes: of every row."""
    columns = coded.columns
    sets = {i: found for i, c in enumerate(schema.qid) if (found := columns[c.name].sets) is not None}
    table = coded_table(
        schema,
        [columns[column.name].codes for column in schema.qid],
        classes,
        [columns[column.name].codes for column in schema.sensitive],
        sets,
        occurring=occurring,
    )
    return replace(table, weights=coded.weights)


def notes_on_dates(source: Source, task: Task) -> list[str]:
    """Return the entries of the owner's `dates` for a column of the table without dates in the job, in sentences.

    Raises DataError.
    """
    if not isinstance(source, Worded) or not source.wording.dates:
        return []
    names, columns = source.column_names(), task.job.columns
    return [
        f"`dates.{name}` under `data` is for {_without_dates(columns.get(name))}"
        for name in source.wording.dates
        if name in names and (name not in columns or not columns[name].takes_dates)
    ]


def _without_dates(column: Column | None) -> str:
    if column is None:
        return "no column of the job"
    return "a column without `dates` in the job: its dates are read as YYYY-MM-DD"


_RENAME = "rename one of the columns in the table, or leave the column out of the file"


def header_of(source: Source) -> list[str]:
    """Return the names of a table's columns. Raises DataError for a table without a name."""
    names = source.column_names()
    if not any(names):
        raise DataError(
            "data-empty",
            "the table is empty",
            remedy="give the table a header line with the names of the columns, and rows",
            private=f"{source.identity} has no header",
        )
    return names


def check_columns(source: Source, task: Task, me: str | None = None) -> None:
    """Refuse a table that lacks a required column of ours, or has the column twice. Raises DataError."""
    names = header_of(source)
    wrong = [name for name in task.held_by(me) if names.count(name) != 1]
    if not wrong:
        return
    name, *others = wrong
    is_there, absent = name in names, [each for each in others if each not in names]
    twice = [each for each in dict.fromkeys(names) if names.count(each) > 1 and each != name]
    told = [f"{source.identity}: {source.about_names(names, name)}"]
    told += [f"no column {', '.join(absent)} either"] if absent else []
    told += [f"more than one column {', '.join(twice)}"] if twice else []
    raise DataError(
        "data-missing-column",
        f"the table has {'more than one' if is_there else 'no'} column {name}",
        column=name,
        remedy=_RENAME if is_there else "",
        private="; ".join(told),
    )


def check_rows(coded: Coded, coding: Coding) -> None:
    """Refuse a table without a usable row, or with a repeated id, where the coding says so. Raises DataError."""
    if not coding.checked:
        return
    if coded.rows.used == 0:
        raise DataError("data-empty", "the table has no usable row", private="; ".join(coded.rows.words()))
    if coded.n_ids is not None and coded.n_ids != coded.rows.used:
        raise DataError(
            "data-duplicate-id",
            f"two rows have the same value of {', '.join(coding.ids)}, or both have none",
            column=coding.ids[0],
            private=f"{counted(coded.rows.used, 'row', 'rows')}, "
            f"{counted(coded.n_ids, 'different id', 'different ids')}",
        )
