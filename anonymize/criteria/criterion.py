"""Criteria for every group of records: their counts and the arithmetic of their tests.

A criterion names *forms* of a group, integer linear combinations of its *measures*, and a *rule* for their values.
Measures are tallies, which follow from the cells of a group, and side counts, which do not. Counts of the whole table
are public factors of the forms (:class:`Relative`). Linear steps commute with the addition of holders' counts and
with additive shares, so forms are computed where the counts are; only the rule needs the values. The rule is written
once, over an :class:`Arithmetic`: arrays in the clear (:mod:`anonymize.criteria.clear`) or the gates of a circuit.

Every criterion is closed under union: the union of disjoint groups that meet the criterion meets it, too. So a
refused candidate stays refused, and a group on fewer columns needs no separate test.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.table import Ints, Schema

W = TypeVar("W")
B = TypeVar("B")
Bools: TypeAlias = NDArray[np.bool_]
Weights: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
"""Records of each item: whole numbers of either type."""
Value: TypeAlias = tuple[int, int]
"""Number of a sensitive column, and code of one of its categories (:class:`anonymize.table.Categories`)."""


@dataclass(frozen=True)
class Violation:
    """Reason that a specialization is not allowed.

    criterion:  name of the criterion that a group does not meet, as in reports.
    n_columns:  number of columns that the group's records agree on.
    column:     the sensitive column of the criterion, if any.
    """

    criterion: str
    n_columns: int
    column: str | None = None


@dataclass(frozen=True)
class Tally:
    """Count of a group's records with every value ``holding`` and no value ``lacking``."""

    holding: tuple[Value, ...] = ()
    lacking: tuple[Value, ...] = ()
    follows: ClassVar[bool] = True

    @property
    def columns(self) -> tuple[int, ...]:
        """Sensitive columns of the tally, ascending."""
        return tuple(sorted({column for column, _ in (*self.holding, *self.lacking)}))

    def among(self, codes: Mapping[int, Ints]) -> Bools:
        """Return True for the counted records or cells. codes: categories per sensitive column, of equal shape."""
        counted = [codes[column] == value for column, value in self.holding]
        counted += [codes[column] != value for column, value in self.lacking]
        return reduce(np.logical_and, counted)


RECORDS = Tally()
"""All records of a group."""


@dataclass(frozen=True)
class SideCount:
    """Count of a group that its cells do not determine: its persons, or the records of a single party.

    Every holder counts its own rows (:class:`SideData`), and the counts are added up, to at most the number of
    records. No group's sum is public, so the last child does not follow from the others.

    of_one:       only the party with the name of the count influences it. Only sealed runs take such counts: the
                  leader of an open run would see them.
    is_additive:  the count of a union of disjoint groups is the sum of their counts.
    """

    name: str
    follows: ClassVar[bool] = False
    of_one: ClassVar[bool] = False
    is_additive: ClassVar[bool] = False


PERSONS = SideCount("persons")
"""Different people of a group, counted at each holder."""

Measure: TypeAlias = Tally | SideCount
"""Measure that is added up in every group; ``follows``: the last child is the rest of a public total."""


class SideData(Protocol):
    """Data of a holder, besides its table, for a side count of its rows."""

    def count(self, rows: Ints, keys: Ints, n_keys: int) -> Ints:
        """Count every group: int64, shape (n_keys,). rows: of the table; keys: group of each row."""
        ...


SideInputs: TypeAlias = Mapping[SideCount, SideData]
"""Data of a holder by side count."""


@dataclass(frozen=True)
class Form:
    """Integer linear combination of measures."""

    terms: tuple[tuple[Measure, int], ...]

    def of(self, counts: Mapping[Measure, NDArray[Any]]) -> NDArray[Any]:
        """Return the form's value from its measures: signed integers, or shares modulo 2**64 as uint64."""
        values: NDArray[Any] = reduce(np.add, (_times(counts[m], factor) for m, factor in self.terms))
        return values

    def bits(self, n_records: int) -> int:
        """Return the bits of a value in a table of ``n_records``; two's complement if a factor is negative."""
        return (self.factor * n_records).bit_length() + self.is_signed

    def bits_of(self, sizes: Ints) -> Ints:
        """Return the bits of a value in a group of each size, as :meth:`bits`; above 2**53 there may be one more."""
        _, bits = np.frexp(self.factor * sizes.astype(np.float64))
        return np.asarray(bits, dtype=np.int64) + self.is_signed

    @property
    def factor(self) -> int:
        """Largest multiple of the number of records that the value can reach, above 0 or below."""
        factors = [factor for _, factor in self.terms]
        return max(sum(f for f in factors if f > 0), -sum(f for f in factors if f < 0))

    @property
    def is_signed(self) -> bool:
        return any(factor < 0 for _, factor in self.terms)


def _times(words: NDArray[Any], factor: int) -> NDArray[Any]:
    shared = words.dtype == np.uint64
    product: NDArray[Any] = words * words.dtype.type(factor % (1 << 64) if shared else factor)
    return product


class Arithmetic(Protocol[W, B]):
    """Arithmetic of the rules: words W, one for each group, and bits B."""

    def at_least(self, word: W, least: int) -> B:
        """Return 1 where a word is ``least`` or more. Words are not negative."""
        ...

    def none_or_at_least(self, size: W, least: int) -> B:
        """Return 1 where there is no group of the size (:meth:`is_empty`), and where a size is ``least`` or more."""
        ...

    def not_negative(self, word: W) -> B: ...

    def is_zero(self, word: W) -> B: ...

    def is_empty(self, size: W) -> B:
        """Return 1 where there is no group of the size. The whole table is always a group, even without records."""
        ...

    def negation(self, bit: B) -> B: ...

    def any_of(self, bits: Sequence[B]) -> B: ...

    def all_of(self, bits: Sequence[B]) -> B: ...

    def count_of(self, bits: Sequence[B]) -> W:
        """Count the bits with value 1."""
        ...

    def of_parts(self) -> Arithmetic[W, B]:
        """Return the arithmetic for parts of groups. A part may be without records."""
        ...


class Rule(Hashable, Protocol):
    """Judge of the values of a criterion's forms. Criteria with equal rules are judged together.

    title:     name of the circuit and its public numbers. entry: name of the circuit's input.
    of_zeros:  True if the rule distinguishes only 0 and other values.
    """

    @property
    def title(self) -> tuple[object, ...]: ...

    @property
    def entry(self) -> str: ...

    @property
    def of_zeros(self) -> bool: ...

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        """Return 1 where a group is allowed. ``values``: values of the forms of a case."""
        ...


class Search(Protocol):
    """Search for a holder's groups that break a criterion with too many cases to go through.

    columns:  numbers of the sensitive columns of the criterion.
    width:    counts per group. factor: as of a form.
    """

    @property
    def columns(self) -> tuple[int, ...]: ...

    @property
    def width(self) -> int: ...

    @property
    def factor(self) -> int: ...

    def broken(self, keys: Ints, n_keys: int, codes: Sequence[Ints], weights: Weights | None) -> Bools:
        """Return True for the groups that break the criterion: shape (n_keys,).

        keys:     group of every item. codes: by column, value of each item. weights: records of each item; None: 1.
                  Shape (n_items,) each.
        """
        ...


class Criterion(Protocol):
    """Condition on every group.

    name:        name in reports.
    relief:      changes that weaken the criterion, if the whole table violates it.
    column:      name of the criterion's sensitive column, if there is a single column.
    cases:       all cases must be met. A case lists the forms for the rule; all cases have equally many.
    search:      exact search over a holder's groups, instead of too many cases; otherwise None. A criterion with a
                 search takes tallies alone.
    inference:   True if the criterion bounds inferences about a group's members. The criterion then holds toward
                 insiders, too, and takes tallies alone.
    """

    @property
    def name(self) -> str: ...

    @property
    def relief(self) -> tuple[str, ...]: ...

    @property
    def column(self) -> str | None: ...

    @property
    def rule(self) -> Rule: ...

    @property
    def cases(self) -> tuple[tuple[Form, ...], ...]: ...

    @property
    def search(self) -> Search | None: ...

    @property
    def inference(self) -> bool: ...

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return the cases to judge for parts of a group, from its public counts: shape (n_groups, n_cases).

        A part that breaks any case breaks a returned case.

        least:  fewest records of a non-empty part; for all groups, or int64, shape (n_groups,).
        """
        ...


class Relative(Protocol):
    """Criterion that compares groups with the whole table, whose counts are factors of its forms.

    Every whole table meets the criterion, so it applies only once the counts are public: in a single holder's run at
    once, in a horizontal run once the root is opened. In a vertical run the counts stay with the holder of the
    sensitive column.

    tallies:  tallies of the whole table.
    """

    @property
    def tallies(self) -> tuple[Tally, ...]: ...

    def given(self, totals: Mapping[Tally, int]) -> Criterion:
        """Return the criterion for a table with the given counts."""
        ...


class Demand(Protocol):
    """Criterion as a demand of a job: name, numbers, and texts.

    The columns of a schema determine the resulting criteria: one, one for each sensitive column, or zero.

    name:             name of the criteria in reports.
    columns:          named sensitive columns; empty if all columns or no column is concerned.
    relief:           changes that weaken the demand, if the whole table violates it.
    setting:          form in the settings of a job: "K=20".
    held:             property of every group that meets the demand: "at least K=20 records"; empty if the groups of a
                      released table do not show it.
    held_by_insiders: the same for the groups seen by insiders; empty if the demand does not concern insiders.
    """

    @property
    def name(self) -> str: ...

    @property
    def relief(self) -> tuple[str, ...]: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def setting(self) -> str: ...

    @property
    def held(self) -> str: ...

    @property
    def held_by_insiders(self) -> str: ...

    def criteria(self, schema: Schema) -> tuple[Criterion, ...]:
        """Return the criteria for tables with the columns of a schema."""
        ...

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        """Return the criteria that compare a group with the whole table."""
        ...

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        """Return a sentence if the demand has no effect. sensitive: the columns with this role."""
        ...


def counts_records(criterion: Criterion) -> bool:
    """Return True if a criterion depends only on the number of records."""
    return criterion.search is None and set(_measures([criterion])) == {RECORDS}


def _measures(criteria: Sequence[Criterion]) -> Iterator[Measure]:
    """Yield the measures of every form, with repetitions."""
    return (m for c in criteria for forms in c.cases for form in forms for m, _ in form.terms)


def tallies_of(criteria: Sequence[Criterion]) -> tuple[Tally, ...]:
    """Return the tallies of the criteria, each once, the number of records first."""
    found = (m for m in _measures(criteria) if isinstance(m, Tally) and m is not RECORDS)
    return tuple(dict.fromkeys((RECORDS, *found)))


def sides_of(criteria: Sequence[Criterion]) -> tuple[SideCount, ...]:
    """Return the side counts of the criteria without repetitions."""
    of_cases = [criterion for criterion in criteria if criterion.search is None]
    return tuple(dict.fromkeys(m for m in _measures(of_cases) if isinstance(m, SideCount)))


def inferences(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria that bound inferences about a group's members."""
    return tuple(criterion for criterion in criteria if criterion.inference)


def alike(criteria: Sequence[Criterion]) -> dict[tuple[Rule, int], list[Criterion]]:
    """Return the criteria by rule and number of values. The cases of an item can go through the same circuit."""
    found: dict[tuple[Rule, int], list[Criterion]] = {}
    for criterion in criteria:
        found.setdefault((criterion.rule, len(criterion.cases[0])), []).append(criterion)
    return found
