"""Commons of both methods of differential privacy: checks of a job, on the owners' policies, and on a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from anonymize.dp.persons import at_most
from anonymize.errors import DataError, SchemaError
from anonymize.table import CodedTable
from anonymize.taxonomy import Taxonomy
from crypto.rng import Rng
from jobs.data.counted import counted, noun
from jobs.data.rows_read import RowsRead, Stray
from jobs.data.sources import Source
from jobs.data.table_file import as_read
from jobs.data.tables import Loaded, Table
from jobs.dp.settings import DpModel, SyntheticModel
from jobs.file.fields import DEFAULT_LEVEL
from jobs.file.job import Job, check_domains
from jobs.owner.policy import Policy
from jobs.owner.rules import AT_LEAST, AT_MOST_EXACTLY, REQUIRED, Rule, Setting
from jobs.reading import load_table
from jobs.task import Task

MOST_OUTSIDE = Fraction(1, 2)
"""Largest share of a column's cells outside its domain, by default, for a single holder's job."""
Settings: TypeAlias = DpModel | SyntheticModel


def settings(job: Job) -> Settings:
    """Return the settings under `model.dp` of the job file, of either method."""
    assert job.model.dp is not None
    return job.model.dp


_OF_INFERENCES = ("C", "at_most", "distance", "values")


def without_effect(job: Job) -> list[str]:
    """Return the keys of sensitive columns without effect: ε bounds inferences of all values alike."""
    return [
        f"columns.{name}.{key} has no effect: in a DP job ε bounds the inference of every value alike"
        for name in job.names("sensitive")
        for key in _OF_INFERENCES
        if getattr(job.columns[name], key) is not None
    ]


def check(job: Job) -> None:
    """Refuse requests impossible for DP jobs: the whole domain is public, nothing is exact. Raises ValueError."""
    for sensitive in job.names("sensitive"):
        if job.columns[sensitive].has_hierarchy:
            raise ValueError(
                f"columns.{sensitive}: a DP job generalizes a sensitive column below a single root: write "
                "`domain`; `taxonomy` and `numeric` of sensitive columns are for LKC jobs (or say `role: qid`)"
            )
    check_domains(job)
    for name in job.names("class"):
        if job.columns[name].shared_by is not None:
            raise ValueError(f"columns.{name}.shared_by: in DP jobs both parties must hold the class")
    if job.names("plain"):
        raise ValueError(
            f"columns.{job.names('plain')[0]}: a DP release holds nothing exact, so no `plain` column"
        )
    if job.names("party"):
        raise ValueError(f"columns.{job.names('party')[0]}: `role: party` is for LKC jobs with `colluders`")
    if job.roster and settings(job).max_outside is not None:
        raise ValueError(
            "model.dp.max_outside is for jobs of a single holder: in a joint job a refusal would tell peers about "
            "values"
        )
    _check_keys(job)
    _check_people(job)


def _check_keys(job: Job) -> None:
    """Refuse keys of further models."""
    for name, column in job.columns.items():
        for key in ("refine", "suppress"):
            if getattr(column, key) is not None:
                raise ValueError(f"columns.{name}.{key} is for LKC jobs: DP jobs refine all children at once")
    if job.disclosure not in (None, DEFAULT_LEVEL):
        raise ValueError("`disclosure: leader` and `disclosure: strict` are for LKC jobs")


def _check_people(job: Job) -> None:
    """Require known persons of records where people are protected."""
    if settings(job).max_records_per_person is None:
        return
    if job.partition == "vertical":
        raise ValueError(
            "model.dp.max_records_per_person: a vertical job has a single record of each id, so epsilon is per "
            "person"
        )
    if not job.names("id"):
        raise ValueError(
            "model.dp.max_records_per_person needs a column with `role: id`, the person of each row"
        )


def check_others(task: Task) -> None:
    """Refuse a value of `other` outside its taxonomy. Raises SchemaError."""
    for name, values in task.taxonomies.items():
        other = task.job.columns[name].other
        if (
            isinstance(values, Taxonomy)
            and other is not None
            and as_read(other) not in map(as_read, values.leaves)
        ):
            raise SchemaError(
                "job-invalid", f"columns.{name}: `other` must be a value of the taxonomy", column=name
            )


def per_person_words(job: Job) -> str:
    """Return the end of a line on the requirement: the protected unit of ε, if different from the record."""
    people = settings(job).max_records_per_person
    return "" if people is None else f", per person of at most {counted(people, 'record', 'records')}"


def rules(task: Task) -> Iterator[Rule]:
    """Yield a job's requirements on a policy: for ε and the bound on rows."""
    asked = settings(task.job)
    unset = "no DP job is allowed (`policy.max_epsilon` is unset)"
    yield Setting("max_epsilon", AT_MOST_EXACTLY, asked.epsilon, "epsilon", unset=unset)
    if task.job.partition != "vertical":
        words = "epsilon must be per person: the job must say `max_records_per_person`"
        yield Setting("per_person", REQUIRED, asked.max_records_per_person is not None, words)
    yield Setting("max_rows", AT_LEAST, asked.max_rows, "max_rows", whose=", our own bound", stated=True)


def counting(task: Task, loaded: Loaded, rng: Rng) -> CodedTable:
    """Return the counted records: of every person at most the job's number, chosen at random."""
    most = settings(task.job).max_records_per_person
    if most is None or loaded.person is None:
        return loaded.table
    return at_most(loaded.table, loaded.person, most, rng)


def load(source: Source, task: Task) -> Loaded:
    """Run pass 1; tell the owner the number of rows to be left out by :func:`counting`. Raises DataError."""
    loaded, most = load_table(source, task), settings(task.job).max_records_per_person
    if most is None or loaded.person is None:
        return loaded
    of_each = np.bincount(np.repeat(loaded.person, loaded.table.weights))
    return replace(loaded, rows=loaded.rows.leaving_out(int(np.maximum(of_each - most, 0).sum())))


def require_fitting(task: Task, rows: RowsRead, source: Source) -> None:
    """Refuse a single holder's table if too many cells of a column fit nowhere, before any charge.

    A joint job has no such refusal, because peers would see the refusal. Raises DataError.
    """
    assert not task.job.roster, "a refusal would tell the other parties of values"
    share = _most_outside(task.job)
    if names := rows.mostly_outside(share):
        raise DataError(
            "data-outside-domain",
            f"of {noun(len(names), 'column', 'columns')} {', '.join(names)} more than {share} of the cells fit "
            "nowhere in the domain: nothing was charged",
            column=names[0],
            remedy="correct the values or the domain, or say `max_outside` under `model.dp` (1 refuses no table)",
            private="; ".join(outside_words(task, rows, source)),
        )


def outside_words(task: Task, rows: RowsRead, source: Source) -> list[str]:
    """Return a sentence for each column with values outside its domain, for a single holder's console only."""
    return [
        f"{name}: {counted(n, 'cell', 'cells')} of {n + rows.inside.get(name, 0):,} outside the domain, the first on "
        f"{_stray_words(task, name, rows.strays[name], source)}"
        for name, n in rows.outside.items()
        if name in rows.strays
    ]


def _stray_words(task: Task, name: str, stray: Stray, source: Source) -> str:
    """Return place, value and hint, as in an LKC job."""
    return task.model.reading.coder(task, name).refused(name, stray.value, source.place(stray.row)).private


def _most_outside(job: Job) -> Fraction:
    share = settings(job).max_outside
    return MOST_OUTSIDE if share is None else share


def check_bound(table: Table, bound: int) -> None:
    """Raise DataError if a table has more rows than its owner's bound. The message does not depend on the job.

    A person's rows beyond m count, too: otherwise jobs with different m would disclose people's numbers of records.
    """
    if table.rows.usable > bound:
        raise DataError(
            "too-many-rows",
            "the table has more rows than the owner's bound for DP jobs",
            remedy="the table's owner raises `policy.max_rows`; jobs then need a `max_rows` as large",
            private=f"{counted(table.rows.usable, 'row', 'rows')}, and `policy.max_rows` is {bound:,}",
        )


def largest_sum(policy: Policy) -> Fraction | None:
    """Return the largest sum of ε over all DP jobs on a data set, or None if no DP job is allowed."""
    return policy.epsilon_budget or policy.max_epsilon
