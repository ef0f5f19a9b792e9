"""Requirement on a release: a list of entries with scope and criteria, and the errors if the whole table fails. LKC
([T] 3.2.1, Definition 3.1) is a list with a single entry.

All entries must hold. A specialization of a column outside an entry's scope does not change the groups of the entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from anonymize.criteria.clear import first_violation
from anonymize.criteria.criterion import (
    PERSONS,
    Criterion,
    Demand,
    Measure,
    Relative,
    SideInputs,
    Tally,
    Violation,
    counts_records,
    inferences,
    sides_of,
    tallies_of,
)
from anonymize.criteria.groups import GroupTest
from anonymize.criteria.views import count_by, measures_of, views_of
from anonymize.errors import PrivacyError, SchemaError
from anonymize.qid_groups import Scope
from anonymize.scores.score import Terms
from anonymize.table import MAX_RECORDS, CodedTable, Ints, Schema

_MAX_FRACTION = 1 << 62


@dataclass(frozen=True)
class Entry:
    """Entry of a requirement, for the columns of a schema.

    criteria:  criteria for every group, in the order of reported violations.
    insider:   True if inference bounds hold also toward people who know all columns of the scope and the class.
    relative:  sources of further criteria, given the counts of the whole table.
    demands:   original demands; named in errors even if some schemas meet a demand without a criterion.
    said:      the requirement and its place in the job, in public words.
    """

    scope: Scope
    criteria: tuple[Criterion, ...]
    insider: bool = False
    relative: tuple[Relative, ...] = ()
    demands: tuple[Demand, ...] = ()
    said: str = field(default="", compare=False)

    def given(self, schema: Schema, cell_counts: Ints) -> Entry:
        """Return the entry, given the counts of the whole table; cell_counts has shape (n_cells,)."""
        if not self.relative:
            return self
        tallies = tuple(t for each in self.relative for t in each.tallies)
        counts = counts_of_cells(schema, tallies, cell_counts)
        totals = {t: int(counts[t][0]) for t in tallies}
        made = (each.given(totals) for each in self.relative)
        return replace(self, criteria=(*self.criteria, *made), relative=())


class Requirement(Protocol):
    """Requirement on a release."""

    def entries(self, schema: Schema) -> tuple[Entry, ...]:
        """Return the entries for the columns of a schema: at least one."""
        ...


@dataclass(frozen=True)
class Ask:
    """Requirement entry of a job: knowledge of at most ``max_known`` (L) of some columns, and demands on groups.

    columns:  names of the known quasi-identifiers; None: all.
    said:     the requirement and its place in the job, in public words.

    Raises SchemaError for an L below 1.
    """

    max_known: int
    demands: tuple[Demand, ...]
    columns: tuple[str, ...] | None = None
    said: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.max_known < 1:
            raise SchemaError("job-invalid", "L must be at least 1")

    def entry(self, schema: Schema, *, insider: bool = False) -> Entry:
        """Return the entry for the columns of the schema."""
        known = (i for i, c in enumerate(schema.qid) if self.columns is None or c.name in self.columns)
        scope = Scope(tuple(known), self.max_known)
        criteria = (criterion for demand in self.demands for criterion in demand.criteria(schema))
        relative = (each for demand in self.demands for each in demand.relative(schema))
        return Entry(scope, tuple(criteria), insider, tuple(relative), self.demands, self.said)


@dataclass(frozen=True)
class AskedList:
    """Requirement of a job: a list of entries. LKC has a single entry.

    insider:  True if the inference bounds of all entries hold also for every (leaf partition, class value) cell,
              which a vertical party knows about a person (semantics §7).
    """

    asks: tuple[Ask, ...]
    insider: bool = False

    def entries(self, schema: Schema) -> tuple[Entry, ...]:
        return tuple(ask.entry(schema, insider=self.insider) for ask in self.asks)


def given(entries: Sequence[Entry], schema: Schema, cell_counts: Ints) -> tuple[Entry, ...]:
    """Return the entries, given the counts of the whole table."""
    return tuple(entry.given(schema, cell_counts) for entry in entries)


def concerned(entries: Sequence[Entry], column: int) -> tuple[Entry, ...]:
    """Return the entries whose groups a specialization of a column changes."""
    return tuple(entry for entry in entries if column in entry.scope.columns)


def criteria_of(entries: Sequence[Entry]) -> tuple[Criterion, ...]:
    """Return the criteria of the entries, each once."""
    return tuple(dict.fromkeys(criterion for entry in entries for criterion in entry.criteria))


def criteria_of_size(schema: Schema, entries: Sequence[Entry]) -> tuple[tuple[Criterion, ...], ...]:
    """Return, by column, the criteria on the size of a single child."""
    return tuple(
        tuple(c for c in criteria_of(concerned(entries, n)) if counts_records(c))
        for n in range(len(schema.qid))
    )


def terms_of(schema: Schema, entries: Sequence[Entry]) -> Terms:
    """Return the terms for the scores."""
    return Terms(tuple(entry.scope for entry in entries), criteria_of_size(schema, entries))


def most_columns(entries: Sequence[Entry]) -> int:
    """Return the number of columns that the finest groups of any entry agree on."""
    return max(entry.scope.size for entry in entries)


def check_sizes(entries: Sequence[Entry], n_records: int) -> None:
    """Refuse tables too large for exact integer arithmetic."""
    if n_records > MAX_RECORDS:
        raise PrivacyError("too-many-rows", f"the table has more than {MAX_RECORDS} rows")
    for criterion in criteria_of(entries):
        if _factor(criterion) * max(n_records, 1) >= _MAX_FRACTION:
            of_column = f" of column {criterion.column}" if criterion.column else ""
            raise PrivacyError(
                "confidence-too-fine",
                f"{criterion.name}{of_column} has too many digits for a table of this size",
                column=criterion.column,
                remedy=_fewer_digits(criterion),
            )


def most_records(entries: Sequence[Entry]) -> int:
    """Return the greatest number of records with exact integer arithmetic; see :func:`check_sizes`."""
    finest = max(map(_factor, criteria_of(entries)), default=1)
    return min(MAX_RECORDS, (_MAX_FRACTION - 1) // finest)


def _factor(criterion: Criterion) -> int:
    """Return the largest multiple of the number of records that a judged value can reach."""
    if criterion.search is not None:
        return criterion.search.factor
    return max(form.factor for forms in criterion.cases for form in forms)


def _fewer_digits(criterion: Criterion) -> str:
    return f"write {criterion.name} with fewer digits, e.g. 0.2 or 1/5"


def whole_table(table: CodedTable, entries: Sequence[Entry], side_inputs: SideInputs) -> Ints:
    """Return the counts of a holder's whole table for the criteria: all cells, then all side counts.

    int64, shape (n_cells + n_sides,).
    """
    cell_counts = np.bincount(table.cells, table.weights, table.schema.n_cells).astype(np.int64)
    rows = np.arange(len(table.cells))
    sides = [side_inputs[side].count(rows, np.zeros_like(rows), 1) for side in sides_of(criteria_of(entries))]
    return np.concatenate([cell_counts, *sides])


def met_by_the_whole(
    table: CodedTable, requirement: Requirement, side_inputs: SideInputs
) -> tuple[Entry, ...]:
    """Return the entries for a holder's table, which meets them if fully generalized.

    beside:  data for the side counts of the requirement.

    Raises PrivacyError if the table violates the requirement or is too large for exact integer arithmetic.
    """
    schema = table.schema
    asked = requirement.entries(schema)
    check_sizes(asked, table.n_records)
    counts = whole_table(table, asked, side_inputs)
    for entry, violation in _violated(schema, asked, counts):
        raise requirement_unmet((entry,), violation, _size(table, asked, counts))
    entries = given(asked, schema, counts[: schema.n_cells])
    if entries != asked:  # the counts of the table are factors now
        check_sizes(entries, table.n_records)
    return entries


def check_root(schema: Schema, entries: Sequence[Entry], counts: Ints) -> Violation | None:
    """Judge the fully generalized table by the counts from :func:`whole_table`."""
    return next((violation for _, violation in _violated(schema, entries, counts)), None)


def _violated(schema: Schema, entries: Sequence[Entry], counts: Ints) -> Iterator[tuple[Entry, Violation]]:
    """Yield the entries that the fully generalized table violates, by the counts from :func:`whole_table`."""
    cell_counts, sides = np.split(counts, [schema.n_cells])
    side_inputs: dict[Measure, Ints] = dict(zip(sides_of(criteria_of(entries)), sides[:, None], strict=True))
    for entry in entries:
        violation = _check_root(schema, (entry,), cell_counts, side_inputs)
        if violation is not None:
            yield entry, violation


def _size(table: CodedTable, entries: Sequence[Entry], counts: Ints) -> str:
    """Return the table's size in words for its owner, by the counts from :func:`whole_table`."""
    sides = dict(zip(sides_of(criteria_of(entries)), counts[table.schema.n_cells :].tolist(), strict=True))
    people = f" of {sides[PERSONS]:,} people" if PERSONS in sides else ""
    return f"the table has {table.n_records:,} records{people}"


def check_root_of_cells(schema: Schema, entries: Sequence[Entry], cell_counts: Ints) -> Violation | None:
    """Judge the criteria without side counts, whose counts are public once the root is opened. Shape (n_cells,)."""
    return _check_root(schema, entries, cell_counts, {})


def _check_root(
    schema: Schema, entries: Sequence[Entry], cell_counts: Ints, side_inputs: Mapping[Measure, Ints]
) -> Violation | None:
    """Return the first criterion not met, among the criteria with measured side counts."""
    of_all = [c for c in _of_the_whole(entries) if all(side in side_inputs for side in sides_of([c]))]
    listed = [c for c in of_all if c.search is None]
    measured = {**side_inputs, **counts_of_cells(schema, tallies_of(listed), cell_counts)}
    found = first_violation(listed, measured, 0, whole=True)
    searched = [c for c in of_all if c.search is not None]
    if found is None and searched:
        found = _violation(schema, searched, cell_counts, np.zeros(schema.n_cells, dtype=np.int64), 1)
    bounds = inferences(criteria_of([entry for entry in entries if entry.insider]))
    if found is None and bounds:
        classes = schema.classes_of(np.arange(schema.n_cells))
        found = _violation(schema, bounds, cell_counts, classes, schema.n_classes)
    return found


def _violation(
    schema: Schema, criteria: Sequence[Criterion], cell_counts: Ints, group: Ints, n_groups: int
) -> Violation | None:
    """Return the first criterion that some group of cells does not meet. group: of every cell."""
    test, cells = GroupTest(schema, criteria), np.flatnonzero(cell_counts)
    return test.violation(test.labels(cells), group[cells], n_groups, cell_counts[cells], 0)


def _of_the_whole(entries: Sequence[Entry]) -> tuple[Criterion, ...]:
    """Return the criteria of the root. Criteria with the stricter test class by class are left out."""
    asked = (c for e in entries for c in e.criteria if not (e.insider and c.inference))
    return tuple(dict.fromkeys(asked))


def counts_of_cells(schema: Schema, tallies: Sequence[Tally], cell_counts: Ints) -> dict[Measure, Ints]:
    """Return the tallies of all cells, each of shape (1,)."""
    views, keys = views_of(schema, tallies), np.zeros(schema.n_cells, dtype=np.int64)
    counts = count_by(views, [view.of_cells(schema) for view in views], keys, 1, cell_counts)
    return dict(zip(measures_of(views), counts, strict=True))


def root_refused(entries: Sequence[Entry], whole: str = "the fully generalized table") -> PrivacyError:
    """Return the error for a single bit: the whole table violates a criterion or is too large for an exact test.

    whole:  name of the tested table.
    """
    most = most_records(entries)
    too_many, remedy = f"all parties together have more than {most} rows", _relief(_named(entries))
    if most < MAX_RECORDS:
        finest = max(criteria_of(entries), key=_factor)
        too_many += f", the most that {finest.name} with so many digits allows"
        remedy = f"{_fewer_digits(finest)}; if that does not help, {remedy}"
    named = _in_words([each.name for each in _named(entries)])
    return PrivacyError(
        "requirement-unmet",
        f"{whole} already violates {named}, or {too_many}: which of these is not "
        f"revealed{what_is_asked(entries)}",
        remedy=remedy,
    )


def requirement_unmet(
    entries: Sequence[Entry],
    violation: Violation | None,
    private: str = "",
    among: Sequence[Demand | Criterion] = (),
) -> PrivacyError:
    """Return the error for a table that violates the requirement even when fully generalized.

    entries:  entries with a violation among them. violation: None if only its existence is known.
    private:  text for the owner of the table alone.
    among:    possible violations if ``violation`` is None; empty: all demands and criteria of the entries.
    """
    named = among or _named(entries)
    if violation is not None:
        named = tuple(each for each in named if each.name == violation.criterion) or named
    which = violation.criterion if violation else _in_words([each.name for each in named])
    column = violation.column if violation else None
    of_column = f" for column {column}" if column else ""
    return PrivacyError(
        "requirement-unmet",
        f"the fully generalized table already violates {which}{of_column}{what_is_asked(entries)}",
        column=column,
        remedy=_relief(named),
        private=private,
    )


_MOST_SAID = 3
"""Most entries named in an error."""


def what_is_asked(entries: Sequence[Entry]) -> str:
    """Return a clause with the entries' requirements and their places; empty without ``said``."""
    said = [entry.said for entry in entries if entry.said]
    more = f"; and {len(said) - _MOST_SAID} more" if len(said) > _MOST_SAID else ""
    return f"; asked is {'; '.join(said[:_MOST_SAID])}{more}" if said else ""


def _named(entries: Sequence[Entry]) -> tuple[Demand | Criterion, ...]:
    """Return everything that may be violated: the demands and the resulting criteria."""
    return (*(demand for entry in entries for demand in entry.demands), *criteria_of(entries))


def names_of(criteria: Sequence[Criterion]) -> str:
    """Name criteria in words: "K or C"."""
    return _in_words([criterion.name for criterion in criteria])


def _in_words(names: Sequence[str]) -> str:
    *others, last = dict.fromkeys(names)
    return f"{', '.join(others)} or {last}" if others else last


def relief_of(violated: Sequence[Demand | Criterion]) -> str:
    """Return the changes that would weaken the requirement: "lower K, raise C"."""
    return ", ".join(reliefs(violated))


def reliefs(violated: Sequence[Demand | Criterion]) -> tuple[str, ...]:
    """Return the changes that would weaken the requirement, each once."""
    return tuple(dict.fromkeys(relief for each in violated for relief in each.relief))


def _relief(violated: Sequence[Demand | Criterion]) -> str:
    return f"{relief_of(violated)}, or bring more records"
