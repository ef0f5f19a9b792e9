"""How a column of an LKC job is read."""

from __future__ import annotations

from collections.abc import Sequence

from anonymize.grid import Grid
from anonymize.taxonomy import MISSING
from jobs.data.coders import BAD, DROPPED, Categorical, Coder, Numeric, Unlisted, taxonomy_coder
from jobs.data.table_file import nfc
from jobs.task import Task


def coder(task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
    """The rule of a column; ``found`` is the domain that pass 1 took from the data, once it is known."""
    column = task.job.columns[name]
    if column.role == "qid":
        values = task.taxonomies[name]
        if isinstance(values, Grid):
            return Numeric(values)
        return taxonomy_coder(values, drop=column.missing == "drop")
    missing = DROPPED if column.missing == "drop" else BAD
    domain = found if column.domain is None else column.domain
    return Unlisted(missing) if domain is None else _listed(domain, missing)


def _listed(domain: Sequence[str], missing: int) -> Categorical:
    """A class or sensitive column. A missing cell is the value `?`, or an empty one, where the domain lists it."""
    index = {nfc(value): i for i, value in enumerate(domain)}
    listed = [index[mark] for mark in (MISSING, "") if mark in index]
    return Categorical(index, listed[0] if listed else missing)
