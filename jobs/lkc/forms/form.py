"""The interface of a form: tables that are written, and the rows that whoever reads them can make of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from anonymize.release import LabelledColumn, Release, Rng
from jobs.file.job import Job
from jobs.lkc.forms.quasi import GENERALIZED, Quasi

Tables: TypeAlias = Mapping[str, Release]
"""By name of a file its table."""
Raw: TypeAlias = Mapping[str, LabelledColumn]
"""Quasi-identifiers that are not generalized, where a form publishes these: by name, in the order of the rows."""


@dataclass(frozen=True)
class Form:
    """One row for a form.

    columns:  by file of a release, besides report and digests, its columns in their order.
    groups:   the columns in which rows of one group agree, as readers see them.
    check:    refuses what it cannot write. Raises ValueError.
    grouped:  a table's rows, which are linked, with the columns that readers see: job, rows, raw, coins.
    tables:   what is written of these; what does not follow from the counts of blocks is drawn from the coins.
    rows:     the rows that readers can make of the tables, for at most so many records, in no particular order,
              blocks linked in any way. A row may stand for many records: there are no more rows than in the tables
              together. Raises PartyError for tables that are none of this form.
    quasi:    how it writes quasi-identifiers.
    """

    columns: Callable[[Job], Mapping[str, tuple[str, ...]]]
    groups: Callable[[Job], tuple[str, ...]]
    check: Callable[[Job], None]
    grouped: Callable[[Job, Release, Raw, Rng], Release]
    tables: Callable[[Job, Release, Rng], Tables]
    rows: Callable[[Job, Tables, int], Release]
    quasi: Quasi = GENERALIZED


def by_quasi_identifiers(job: Job) -> tuple[str, ...]:
    """Groups are rows that print alike."""
    return job.names("qid")
