"""K for people with several records: a group is empty, or has records of at least K different people.

Every holder counts people by its own ids, and the counts are added up: a person at two holders counts twice. A group
has at least as many records as people, so the people test implies the records test. The records test is still made,
by every party from public counts after each opening; scores use it to require large children.

Closed under union: a union has at least the people of either part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from anonymize.criteria.criterion import (
    PERSONS,
    RECORDS,
    Bools,
    Criterion,
    Form,
    Relative,
    SideInputs,
    Tally,
    sides_of,
)
from anonymize.criteria.size import LargeEnough, Size
from anonymize.table import Ints, Schema


@dataclass(frozen=True)
class EnoughPersons:
    """At least ``least`` different people in every group."""

    least: int
    name: ClassVar[str] = Size.name
    relief: ClassVar[tuple[str, ...]] = Size.relief
    column: ClassVar[None] = None
    cases: ClassVar[tuple[tuple[Form, ...], ...]] = ((Form(((PERSONS, 1),)),),)
    search: ClassVar[None] = None
    inference: ClassVar[bool] = False

    @property
    def rule(self) -> LargeEnough:
        return LargeEnough(self.least)

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return False for K = 1, which every group with a record meets."""
        return np.full((len(totals[RECORDS]), 1), self.least > 1)


@dataclass(frozen=True)
class Persons:
    """K of people as a demand of a job. The K of records is then also met.

    Raises SchemaError, when criteria are made, for less than 1.
    """

    least: int
    name: ClassVar[str] = Size.name
    relief: ClassVar[tuple[str, ...]] = Size.relief
    columns: ClassVar[tuple[str, ...]] = ()
    held_by_insiders: ClassVar[str] = ""

    @property
    def setting(self) -> str:
        return f"K={self.least} people"

    @property
    def held(self) -> str:
        """Property of the groups of a released table, which has no ids."""
        return Size(self.least).held

    def criteria(self, schema: Schema) -> tuple[Criterion, ...]:
        return Size(self.least), EnoughPersons(self.least)

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        return ()

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        return None


@dataclass(frozen=True)
class PersonOfRow:
    """Person of each row of a table: numbers from 0, int64, shape (n_rows,)."""

    person: Ints = field(repr=False)

    def count(self, rows: Ints, keys: Ints, n_keys: int) -> Ints:
        n_people = int(self.person.max(initial=-1)) + 1
        pairs = np.unique(keys * n_people + self.person[rows])
        return np.bincount(pairs // max(n_people, 1), minlength=n_keys).astype(np.int64)


def counted_persons(criteria: Sequence[Criterion], person: Ints) -> SideInputs:
    """Return a holder's data for counting people, if the criteria count people. ``person``: by row of its table."""
    return {PERSONS: PersonOfRow(person)} if PERSONS in sides_of(criteria) else {}
