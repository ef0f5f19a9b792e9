"""How a column of an LKC job is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonymize.grid import Grid
from anonymize.taxonomy import MISSING
from jobs.data.coders import BAD, DROPPED, Categorical, Coder, Numeric, Unlisted, taxonomy_coder
from jobs.data.table_file import nfc
from jobs.lkc.values import values_of
from jobs.task import Task


def coder(task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
    """The rule of a column; ``found`` is the domain that pass 1 took from the data, once it is known."""
    column = task.job.columns[name]
    if column.role == "qid":
        values = task.taxonomies[name]
        if isinstance(values, Grid):
            return Numeric(values)
        return taxonomy_coder(values, drop=column.missing == "drop")
    if column.role == "sensitive":
        return _sensitive(task, name, found)
    missing = DROPPED if column.missing == "drop" else BAD
    domain = found if column.domain is None else column.domain
    return Unlisted(missing) if domain is None else _listed(_numbered(domain), missing)


def _sensitive(task: Task, name: str, found: Sequence[str] | None) -> Coder:
    """Codes are places among the published values."""
    column, hierarchy = task.job.columns[name], task.taxonomies.get(name)
    missing = DROPPED if column.missing == "drop" else BAD
    if not column.is_listed and found is None:
        return Unlisted(None if column.missing == "leaf" else missing)
    values = values_of(task, name, found or ())
    if isinstance(hierarchy, Grid):
        return Numeric(hierarchy, missing=values.read.get(MISSING, missing))
    return _listed(values.read, missing)


def _numbered(domain: Sequence[str]) -> dict[str, int]:
    return {nfc(value): i for i, value in enumerate(domain)}


def _listed(index: Mapping[str, int], missing: int) -> Categorical:
    """A class or sensitive column. A missing cell is the value `?`, or an empty one, where that is listed."""
    listed = [index[mark] for mark in (MISSING, "") if mark in index]
    return Categorical(index, listed[0] if listed else missing)
