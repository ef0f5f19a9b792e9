"""Columns published unchanged: `role: plain`, and the class. L, K and C do not protect plain columns.

A reader who knows a person's value of the column finds the person's row if the value is unique.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from anonymize.errors import DataError
from anonymize.release import Release
from anonymize.table import Ints, pack, tally
from jobs.data.counted import counted, noun
from jobs.data.texts import is_formula

if TYPE_CHECKING:
    from jobs.data.sources import Source
    from jobs.file.columns import Column

_OF_PEOPLE = frozenset(
    word
    for words in (
        "id ids uid uuid guid ssn nin nhs mrn pin card insurance",
        "name names surname forename firstname lastname fullname initials",
        "email mail phone telephone mobile fax address street iban account",
        "passport license licence ip mac url",
        "patient person customer member subject birthdate birthday birth born dob",
    )
    for word in words.split()
)
"""Words of column names that suggest a single person."""
Columns: TypeAlias = "Mapping[str, Column]"
"""Columns of a job, by name."""

_NAMES = frozenset(["name", "names", "address", "street"])
THINGS = frozenset(
    [
        "drug",
        "product",
        "hospital",
        "clinic",
        "company",
        "city",
        "town",
        "country",
        "region",
        "ward",
        "district",
        "department",
        "unit",
        "test",
        "file",
        "school",
        "bank",
        "brand",
        "branch",
        "store",
        "shop",
        "station",
        "species",
        "disease",
        "type",
    ]
)
"""Words beside `name` and the like for a thing, not a person."""
_WORDS = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+")
_ONE_WORD = re.compile(r"(patient|user|person|customer|member|subject)s?(id|ids|no|nr|number|name)")
FEW_RECORDS = 10
"""Rows of a value below which the value is said to tell of few people. A person may have several rows."""
MOST_OF_A_PERSON = 5
"""Rows of a value below which the value may be of one person, who may have several rows."""
FEW_ROWS = 20
"""Number of rows below which unique values say little."""


def names_a_person(column: str) -> str | None:
    """Return the word for a single person in a column's name, or None."""
    words: list[str] = [word.lower() for word in _WORDS.findall(column)]
    of_a_thing = bool(THINGS.intersection(words))
    for word in words:
        if _ONE_WORD.fullmatch(word) or (word in _OF_PEOPLE and not (word in _NAMES and of_a_thing)):
            return word
    return None


def check(columns: Columns) -> None:
    """Refuse a plain column or a class whose name suggests a single person, unless the job has `publish_as_is`.

    Raises ValueError.
    """
    for name in named(columns, "plain", "class"):
        word = names_a_person(name)
        if word is not None and not columns[name].publish_as_is:
            raise ValueError(
                f"columns.{name}: `role: {columns[name].role}` publishes the column unchanged, and {word!r} in the "
                "name suggests values of a single person. Say `role: id`, or leave the column out; write "
                "`publish_as_is: true` at the column if you mean to publish the column"
            )


def named(columns: Columns, *roles: str) -> list[str]:
    """Return the columns of some roles, in job order."""
    return [name for name, column in columns.items() if column.role in roles]


def note(columns: Columns) -> str | None:
    """Return the sentence on unprotected columns, from the job alone."""
    plain = named(columns, "plain")
    if not plain:
        return None
    return f"published unchanged, without protection: {', '.join(plain)}"


def measure(columns: Columns, release: Release) -> dict[str, Any]:
    """Measure the columns published unchanged; return an empty mapping without plain columns and class.

    ``values``: different values. ``alone``: rows with a unique value; for all columns together, rows with a unique
    combination. ``few``: rows with a value of fewer than FEW_RECORDS rows. ``formulas``: rows whose value a
    spreadsheet takes for a formula.
    """
    names = [name for name in named(columns, "plain", "class") if name in release.columns]
    if not names:
        return {}
    by_column = {
        name: {
            "role": columns[name].role,
            "values": int((times > 0).sum()),
            "alone": int((times == 1).sum()),
            "few": int(times[times < FEW_RECORDS].sum()),
            "formulas": n_formulas(release, name),
        }
        for name in names
        for times in [_times(release, [name])]
    }
    alone = int((_times(release, names) == 1).sum())
    found = {"columns": by_column, "alone": alone}
    return found | {"meaning": " ".join(sentences(found, release.n_records))}


def n_formulas(release: Release, name: str) -> int:
    """Count the records with a value readable as a formula by a spreadsheet (:mod:`jobs.data.texts`)."""
    column = release.columns[name]
    are = np.array([is_formula(label.lstrip()) for label in column.labels], dtype=np.bool_)
    return int(tally(column.codes, release.counts, len(are))[are].sum())


def about_formulas(release: Release) -> list[str]:
    """Warn about columns of a released table with values readable as formulas by a spreadsheet."""
    found = {name: n_formulas(release, name) for name in release.columns}
    return [
        f"warning: {counted(n, 'value', 'values')} of {name} would be a formula in a spreadsheet: import the table "
        "as text there"
        for name, n in found.items()
        if n
    ]


def _times(release: Release, names: Sequence[str]) -> Ints:
    """Count the records of each combination of values, and of others, which have none: int64."""
    columns = [release.columns[name] for name in names]
    if len(columns) == 1:
        return tally(columns[0].codes, release.counts, len(columns[0].labels))
    keys = pack([column.codes for column in columns], [len(column.labels) for column in columns])
    combinations, of_row = np.unique(keys, return_inverse=True)
    return tally(of_row, release.counts, len(combinations))


def sentences(found: Mapping[str, Any], n_rows: int) -> list[str]:
    """Say for each column how many different values and how many unique rows there are."""
    by_column = found["columns"]
    said = [
        f"{name} is published unchanged, without protection: "
        f"{counted(of['values'], 'different value', 'different values')}; "
        f"{counted(of['alone'], 'row is', 'rows are')} alone with {noun(of['alone'], 'its value', 'theirs')}, and "
        f"{counted(of['few'], 'row has', 'rows have')} a value of fewer than {FEW_RECORDS} rows."
        + (
            f" {counted(of['formulas'], 'value', 'values')} would be a formula in a spreadsheet."
            if of["formulas"]
            else ""
        )
        for name, of in by_column.items()
        if of["role"] == "plain" or of["few"]
    ]
    if len(by_column) > 1 and said:
        said.append(
            f"In {', '.join(by_column)} together {counted(found['alone'], 'row is', 'rows are')} alone "
            f"of {n_rows:,}."
        )
    return said


def require_meant(columns: Columns, release: Release) -> None:
    """Raise DataError for a plain column or a class with mostly rare values, unless `publish_as_is` is set."""
    if release.n_records < FEW_ROWS:
        return
    for name in named(columns, "plain", "class"):
        if name not in release.columns or columns[name].publish_as_is:
            continue
        times = _times(release, [name])
        few = int(times[times < MOST_OF_A_PERSON].sum())
        if 2 * few > release.n_records:
            raise DataError(
                "data-published-as-is",
                f"column {name} is `{columns[name].role}`, and most rows would have a value of fewer than "
                f"{MOST_OF_A_PERSON} rows: a reader who knows the value of a person finds the person's rows",
                column=name,
                private=f"{few:,} of {counted(release.n_records, 'row', 'rows')}",
            )


def told_by_source(source: Source, names: Sequence[str]) -> list[str]:
    """Say for each column of a table how many rows have a unique value; for the owner. Raises DataError."""
    if not names:
        return []
    times: dict[str, dict[str, int]] = {name: {} for name in names}
    for batch in source.relabel({}, names):
        for name in names:
            column = batch.column(name)
            found = np.bincount(column.indices.to_numpy(), minlength=len(column.dictionary))
            for value, n in zip(column.dictionary.to_pylist(), found.tolist(), strict=True):
                times[name][value] = times[name].get(value, 0) + n
    said = []
    for name, by_value in times.items():
        alone = sum(n == 1 for n in by_value.values())
        different = counted(sum(n > 0 for n in by_value.values()), "different value", "different values")
        are = counted(alone, "row of ours is", "rows of ours are")
        with_theirs = f"{are} alone with {noun(alone, 'its value', 'theirs')}"
        said.append(f"{name}: unchanged, without protection; {different}; {with_theirs}")
    return said
