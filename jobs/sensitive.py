"""Sensitive columns of LKC-privacy, whatever the model's form: how one is read, and what the schema has of it."""

from __future__ import annotations

from collections.abc import Sequence

from anonymize.errors import DataError
from anonymize.grid import Grid
from anonymize.table import SensitiveColumn
from anonymize.taxonomy import MISSING
from jobs.data.coders import BAD, DROPPED, Coder, Numeric, Unlisted, listed_coder
from jobs.file.schema import Domains
from jobs.file.values import values_of
from jobs.task import Task


def sensitive_coder(task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
    """Codes are places among the published values; ``found``: the domain that pass 1 took from the data."""
    column, hierarchy = task.job.columns[name], task.taxonomies.get(name)
    missing = DROPPED if column.missing == "drop" else BAD
    if not column.is_listed and found is None:
        return Unlisted(None if column.missing == "leaf" else missing, column.may_differ)
    values = values_of(task, name, found or ())
    if isinstance(hierarchy, Grid):
        return Numeric(hierarchy, missing=values.read.get(MISSING, missing))
    return listed_coder(values.read, missing)


def sensitive_columns(task: Task, found: Domains) -> tuple[SensitiveColumn, ...]:
    """The sensitive columns of the schema. Raises DataError if a protected value is not in a domain ``found``."""
    return tuple(_sensitive_column(task, name, found) for name in task.job.names("sensitive"))


def _sensitive_column(task: Task, name: str, found: Domains) -> SensitiveColumn:
    values = values_of(task, name, found.get(name, ()))
    for value in sorted(set(values.protected) - set(values.tested)):  # only where the data gave the domain
        raise DataError(
            "data-unknown-value",
            f"column {name}: the protected value {value!r} is in no row, so nothing would protect it",
            column=name,
            remedy="correct `values` or the data; or list all values of the column in `domain`",
        )
    places = tuple(values.tested.index(value) for value in values.protected)
    return SensitiveColumn(name, values.published, places, values.categories)
