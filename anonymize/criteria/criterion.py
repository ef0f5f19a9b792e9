"""Criteria that every group of records must meet: their counts, and the arithmetic that they are tested in.

A criterion names *forms* of a group, integer linear combinations of its *measures*, and a *rule* for their values.
Measures are tallies, which the cells of a group determine, and side counts, which they do not; what a criterion takes
of the whole table are public factors of its forms (:class:`Relative`). Linear steps commute with adding up what
several holders have and with additive shares, so the forms are taken wherever the counts are; only the rule needs the
values. It is written once, over an :class:`Arithmetic`: of arrays in the clear (:mod:`anonymize.criteria.clear`), or
of the gates of a circuit.

Every criterion is closed under union: two groups without common records that meet it have a union that does. That is
why a candidate once refused stays refused, and why a group on fewer columns needs no test of its own.
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
"""Records that each item stands for: whole numbers of either type."""
Value: TypeAlias = tuple[int, int]
"""A sensitive column, by its number, and the code of one of its test values (:class:`anonymize.table.Categories`)."""


@dataclass(frozen=True)
class Violation:
    """Reason that a specialization is not allowed.

    criterion:  the name of the criterion that a group does not meet, as reports print it.
    n_columns:  on how many columns the group's records agree.
    column:     the sensitive column that the criterion speaks of, if it speaks of one.
    """

    criterion: str
    n_columns: int
    column: str | None = None


@dataclass(frozen=True)
class Tally:
    """A count of a group's records: those with every value ``holding`` and with no value ``lacking``."""

    holding: tuple[Value, ...] = ()
    lacking: tuple[Value, ...] = ()
    follows: ClassVar[bool] = True

    @property
    def columns(self) -> tuple[int, ...]:
        """The sensitive columns that it looks at, ascending."""
        return tuple(sorted({column for column, _ in (*self.holding, *self.lacking)}))

    def among(self, codes: Mapping[int, Ints]) -> Bools:
        """Return the records or cells that count. codes: per sensitive column the test value of each, all of
        one shape.
        """
        counted = [codes[column] == value for column, value in self.holding]
        counted += [codes[column] != value for column, value in self.lacking]
        return reduce(np.logical_and, counted)


RECORDS = Tally()
"""All records of a group."""


@dataclass(frozen=True)
class SideCount:
    """A count of a group that its cells do not determine: its persons, or the records that one party has of it.

    Every holder counts among its own rows (:class:`SideData`), and what they count is added up. It is never above the
    number of records. Of no group it is public, so the last child does not follow from the others.

    of_one:       it is what the party of that name has: no other has a say in it. Such counts are for sealed runs
                  alone: the leader of an open one would see them.
    is_additive:  of two groups without common records it is the sum of theirs.
    """

    name: str
    follows: ClassVar[bool] = False
    of_one: ClassVar[bool] = False
    is_additive: ClassVar[bool] = False


Measure: TypeAlias = Tally | SideCount
"""Added up in every group; ``follows``: the last child is the rest of a public total."""


class SideData(Protocol):
    """Data of a holder beside its table, to make a side count of its rows."""

    def count(self, rows: Ints, keys: Ints, n_keys: int) -> Ints:
        """The count of every group: int64, shape (n_keys,). rows: of the table; keys: the group of each."""
        ...


Beside: TypeAlias = Mapping[SideCount, SideData]
"""By side count what one holder has to make it."""


@dataclass(frozen=True)
class Form:
    """An integer linear combination of measures."""

    terms: tuple[tuple[Measure, int], ...]

    def of(self, counts: Mapping[Measure, NDArray[Any]]) -> NDArray[Any]:
        """Its value from those of its measures: signed integers, or shares modulo 2**64 as uint64."""
        values: NDArray[Any] = reduce(np.add, (_times(counts[m], factor) for m, factor in self.terms))
        return values

    def bits(self, n_records: int) -> int:
        """Bits of its value in a table of that many records; two's complement where a factor is negative."""
        return (self.factor * n_records).bit_length() + self.is_signed

    @property
    def factor(self) -> int:
        """Return the largest multiple of the number of records that the value can be, above 0 or below."""
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
    """Arithmetic that rules are written in: words W, one for each group, and bits B."""

    def at_least(self, word: W, least: int) -> B:
        """Return 1 where a word, which is not negative, is ``least`` or more."""
        ...

    def not_negative(self, word: W) -> B: ...

    def is_zero(self, word: W) -> B: ...

    def is_empty(self, size: W) -> B:
        """Return 1 where there is no group of that size. The whole table always is a group, even without
        records.
        """
        ...

    def negation(self, bit: B) -> B: ...

    def any_of(self, bits: Sequence[B]) -> B: ...

    def all_of(self, bits: Sequence[B]) -> B: ...

    def count_of(self, bits: Sequence[B]) -> W:
        """Count the bits that are 1."""
        ...

    def of_parts(self) -> Arithmetic[W, B]:
        """The same for parts of the groups, each of which may be without records."""
        ...


class Rule(Hashable, Protocol):
    """Judges the values of a criterion's forms. Criteria with equal rules are judged together.

    title:     the name of its circuit and the public numbers in it. entry: the name of the circuit's input.
    of_zeros:  it looks at nothing of a value but whether it is 0.
    """

    @property
    def title(self) -> tuple[object, ...]: ...

    @property
    def entry(self) -> str: ...

    @property
    def of_zeros(self) -> bool: ...

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        """Return 1 where a group is allowed; ``values``: those of the forms of one case."""
        ...


class Search(Protocol):
    """Finds the groups of one holder that break a criterion whose cases are too many to go through.

    columns:  the sensitive columns that it looks at, by number.
    width:    how many counts it takes of a group. factor: as of a form.
    """

    @property
    def columns(self) -> tuple[int, ...]: ...

    @property
    def width(self) -> int: ...

    @property
    def factor(self) -> int: ...

    def broken(self, keys: Ints, n_keys: int, codes: Sequence[Ints], weights: Weights | None) -> Bools:
        """Return the groups that break the criterion: shape (n_keys,).

        keys:     the group of every item. codes: by column the value of each. weights: records that each stands for;
                  None: 1. Shape (n_items,) each.
        """
        ...


class Criterion(Protocol):
    """A condition on every group.

    name:        as reports print it.
    relief:      what can be asked for less of, where the whole table does not meet it.
    column:      the name of the sensitive column that it speaks of, if it is one.
    cases:       all of them must be met; each is the forms that the rule takes, equally many.
    search:      says of one holder's groups what the cases say, where these are too many; else None. Such a criterion
                 takes tallies alone.
    inference:   whether it bounds what a group tells about its members: it then holds toward insiders, too. Such a
                 criterion takes tallies alone.
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
        """By which cases to judge parts of a group, from its public counts: shape (n_groups, n_cases).

        A part that breaks any case breaks one of these.

        least:  of records that a part has unless it has none; of all groups, or int64, shape (n_groups,).
        """
        ...


class Relative(Protocol):
    """A criterion that compares groups with the whole table, whose counts are factors of its forms.

    Every whole table meets it, so it says nothing before they are public: in a single holder's run at once, in a
    horizontal one when the root is opened. In a vertical run they stay with the holder of the sensitive column.

    tallies:  what it takes of the whole table.
    """

    @property
    def tallies(self) -> tuple[Tally, ...]: ...

    def given(self, totals: Mapping[Tally, int]) -> Criterion:
        """The criterion for a table with these counts."""
        ...


class Demand(Protocol):
    """A criterion as a job asks for it: the name of one kind, its numbers, and all that is said of it.

    What it comes to depends on the columns of a schema: one criterion, one for each sensitive column, none.

    name:             of the criteria, as reports print it.
    columns:          the sensitive columns that it names; empty where it speaks of all, or of none.
    relief:           what can be asked for less of, where the whole table does not meet it.
    setting:          as one of the settings of a job: "K=20".
    held:             what is true of every group that meets it: "at least K=20 records"; empty where the groups of a
                      released table do not show it.
    held_by_insiders: the same of the groups that insiders see; empty where it is not asked of these.
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
        """A sentence where it is asked for and nothing comes of it. sensitive: the columns of that role."""
        ...


def counts_records(criterion: Criterion) -> bool:
    """Return True if a criterion looks at nothing but the number of records."""
    return criterion.search is None and set(_measures([criterion])) == {RECORDS}


def _measures(criteria: Sequence[Criterion]) -> Iterator[Measure]:
    """Of every form, as often as they come."""
    return (m for c in criteria for forms in c.cases for form in forms for m, _ in form.terms)


def tallies_of(criteria: Sequence[Criterion]) -> tuple[Tally, ...]:
    """Return the tallies of the criteria, each once, the number of records first."""
    found = (m for m in _measures(criteria) if isinstance(m, Tally) and m is not RECORDS)
    return tuple(dict.fromkeys((RECORDS, *found)))


def sides_of(criteria: Sequence[Criterion]) -> tuple[SideCount, ...]:
    """The side counts that the criteria take, each once."""
    of_cases = [criterion for criterion in criteria if criterion.search is None]
    return tuple(dict.fromkeys(m for m in _measures(of_cases) if isinstance(m, SideCount)))


def inferences(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria that bound what a group tells about its members."""
    return tuple(criterion for criterion in criteria if criterion.inference)


def alike(criteria: Sequence[Criterion]) -> dict[tuple[Rule, int], list[Criterion]]:
    """Criteria by rule and number of values that it takes: the cases of one entry can go through one circuit."""
    found: dict[tuple[Rule, int], list[Criterion]] = {}
    for criterion in criteria:
        found.setdefault((criterion.rule, len(criterion.cases[0])), []).append(criterion)
    return found
