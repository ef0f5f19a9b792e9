"""Public schema of a table from a job and its taxonomy files: contents, errors, and holders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from anonymize.dates import ISO, DateGrid, calendar_cells, calendar_tree, from_dates
from anonymize.errors import SchemaError
from anonymize.grid import Grid, from_cuts, from_step
from anonymize.table import OTHER, QidColumn, Schema, SensitiveColumn, SetRule
from anonymize.taxonomy import Taxonomy, from_arx_csv, from_nested
from jobs.data.table_file import as_read
from jobs.data.texts import alike, fault_of
from jobs.dp.settings import CELL, NEVER
from jobs.file.columns import Column, DateDomain, NumericDomain
from jobs.file.job import Job
from jobs.file.makers import ROOT

if TYPE_CHECKING:
    from anonymize.joint.columns import Columns

Taxonomies = Mapping[str, Taxonomy | Grid]
"""Value hierarchy of every column that is specialized or has a hierarchy."""
Domains = Mapping[str, tuple[str, ...]]
"""Domains that a single holder's job leaves to its data, by column."""


def taxonomies_of(job: Job, files: Mapping[str, str]) -> Taxonomies:
    """Raises SchemaError."""
    found = {*job.generalized, *(name for name, column in job.columns.items() if column.has_hierarchy)}
    return {name: _values(name, column, files) for name, column in job.columns.items() if name in found}


def _values(name: str, column: Column, files: Mapping[str, str]) -> Taxonomy | Grid:
    if column.numeric is not None or column.dates is not None:
        leaf = column.role == "qid" and column.missing == "leaf"
        if column.dates is not None and column.dates.levels is not None:
            units = calendar_tree(dates_of(name, column.dates), column.dates.levels, ROOT)
            return from_nested(units, name, missing_leaf=leaf)
        return replace(_grid(name, column), missing_leaf=leaf)
    tree = column.tree
    generalized = column.role == "qid" or tree is None
    missing_leaf = column.missing not in ("drop", NEVER) if generalized else column.missing == "leaf"
    if tree is None:  # a specialized sensitive column: all values stand below a single root
        assert column.domain is not None
        tree = {ROOT: list(column.domain)}
    if isinstance(tree, str):
        taxonomy = from_arx_csv(files[name], name, missing_leaf=missing_leaf)
    else:
        taxonomy = from_nested(tree, name, missing_leaf=missing_leaf)
    if column.role == "qid" and column.level:
        from anonymize.shallow_taxonomy import shallow

        return shallow(taxonomy, column.level, name)
    return taxonomy


def _grid(name: str, column: Column) -> Grid:
    if column.numeric is not None:
        return grid_of(name, column.numeric)
    assert column.dates is not None
    return dates_of(name, column.dates)


def grid_of(name: str, numeric: NumericDomain) -> Grid:
    """Return the grid of a numeric column. Raises SchemaError."""
    if numeric.step is not None:
        return from_step(numeric.min, numeric.max, numeric.step, name)
    return from_cuts(numeric.min, numeric.max, numeric.cuts or (), name)


def dates_of(name: str, dates: DateDomain) -> DateGrid:
    """Return the cells of a column of dates. Raises SchemaError."""
    first, below, form = date.fromisoformat(dates.start), date.fromisoformat(dates.to), dates.form or ISO
    if dates.levels is not None:
        return calendar_cells(first, below, dates.levels, form, name)
    assert dates.step is not None
    return from_dates(first, below, dates.step, form, timed=dates.time == "keep", column=name)


def schema_of(
    job: Job, taxonomies: Taxonomies, sensitive: tuple[SensitiveColumn, ...], found: Domains
) -> Schema:
    """Return the public schema; ``found``: the domains that a single holder's job leaves to its data."""
    class_name, classes = _class(job, found)
    return Schema(qid_of(job, taxonomies), class_name, classes, sensitive, job.record_holders)


def qid_of(job: Job, taxonomies: Taxonomies) -> tuple[QidColumn, ...]:
    """Return the specialized columns, in job order."""
    return tuple(_generalized(name, job.columns[name], taxonomies[name]) for name in job.generalized)


def _class(job: Job, found: Domains) -> tuple[str | None, tuple[str, ...]]:
    """Return the name of the target, or None if not published; and its values."""
    if job.clusters is not None:
        return job.clusters.publish, job.clusters.domain
    (name,) = job.names("class") or (None,)
    return name, ("",) if name is None else job.columns[name].domain or found[name]


def _generalized(name: str, column: Column, values: Taxonomy | Grid) -> QidColumn:
    rule = None if column.set is None else SetRule(column.set.separator, column.set.max_items)
    rest = "{}" if column.suppress is not None else OTHER
    missing_cell = column.missing == CELL and isinstance(values, Grid)
    return QidColumn(name, values, rule, column.refine == "child", rest, missing_cell)


def holders_of(job: Job) -> Columns:
    """Return the holders of the columns of a vertical job."""
    from anonymize.joint.columns import Columns

    owner = {name: party for party in job.roster for name in job.contributed_by(party)}
    (class_name,) = job.names("class") or (None,)
    return Columns(
        tuple(owner[name] for name in job.generalized),
        tuple(owner[name] for name in job.names("sensitive") if name not in job.generalized),
        tuple(owner[name] for name in job.names("plain")),
        job.columns[class_name].shared_by if class_name else None,
    )


def check_values(job: Job, taxonomies: Taxonomies) -> None:
    """Refuse a taxonomy without values, and values that count as the same. Raises SchemaError."""
    for name, values in taxonomies.items():
        if values.root.last < 1:
            raise SchemaError("taxonomy-invalid", f"column {name} has no values", column=name)
        if isinstance(values, Taxonomy):
            _check_labels(name, values)
    for column in qid_of(job, taxonomies):
        _check_rests(column)
    for name in job.names("qid", "class", "sensitive", "party"):
        _check_forms(name, job.columns[name], taxonomies.get(name))


def _check_labels(name: str, taxonomy: Taxonomy) -> None:
    """Refuse labels with an effect on programs that read a table. Raises SchemaError."""
    for label in taxonomy.printed:
        fault = fault_of(label)
        if fault is not None:
            raise SchemaError(
                "taxonomy-invalid",
                f"column {name}: the label {label[:_MOST_TOLD]!r} cannot be published: {fault}",
                column=name,
                remedy="write another label",
            )


_MOST_TOLD = 60
"""Characters of a label, in an error."""


def _check_rests(column: QidColumn) -> None:
    """Require that the rest of a value prints differently from every other value. Raises SchemaError."""
    if not isinstance(column.values, Taxonomy) or column.rest != OTHER:
        return
    for label in sorted(column.rest_labels.intersection(column.values.printed)):
        raise SchemaError(
            "taxonomy-invalid",
            f"column {column.name}: the taxonomy has {label!r}, but `refine: child` publishes this label for the "
            "rest of a value",
            column=column.name,
            remedy="rename the value, or say `refine: children`",
        )


def _check_forms(name: str, column: Column, values: Taxonomy | Grid | None) -> None:
    """Refuse a value in two forms: values are compared in Unicode NFC. Raises SchemaError."""
    listed = tuple(values.leaf_index()) if isinstance(values, Taxonomy) else column.domain or ()
    for value, times in Counter(map(as_read, listed)).items():
        if times > 1:
            raise SchemaError(
                "taxonomy-two-parents",
                f"column {name} lists {value!r} in two Unicode forms (NFC and NFD), which count as the same value",
                column=name,
                remedy="list the value in one form only",
            )
    groups = (
        [printed for printed, below in zip(values.printed, values.children, strict=True) if below]
        if isinstance(values, Taxonomy)
        else []
    )
    two = None if column.may_differ else alike(listed) or alike(groups)
    if two is not None:
        raise SchemaError(
            "taxonomy-two-parents",
            f"column {name} lists {two[0]!r} and {two[1]!r}, two spellings of the same value",
            column=name,
            remedy="keep a single spelling, or write `spellings: distinct` at the column if the spellings mean "
            "different things",
        )
