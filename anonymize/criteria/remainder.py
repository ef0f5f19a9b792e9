"""Remainder of a group after colluding parties take out their own records.

m-privacy (Goryczka, Xiong, Fung, IEEE TKDE 2014): a requirement holds for the remainder of every group after at most
m of n parties, m < n, take out their records. A remainder may be empty. Coalitions of exactly m parties suffice, for
K and for C (semantics §10.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import ClassVar, TypeAlias

import numpy as np

from anonymize.criteria.criterion import (
    RECORDS,
    Arithmetic,
    B,
    Bools,
    Criterion,
    Demand,
    Form,
    Relative,
    Rule,
    SideCount,
    SideData,
    SideInputs,
    Tally,
    W,
    sides_of,
)
from anonymize.criteria.views import sensitive_codes
from anonymize.errors import SchemaError
from anonymize.table import CodedTable, Ints, Schema, tally

Coalition: TypeAlias = tuple[str, ...]
"""Parties that take out their records together."""

MAX_COALITIONS = 1 << 8
"""Most coalitions of a job: any 5 of 10 parties. Each adds a test of every group; all tests are made at once."""


@dataclass(frozen=True)
class OwnCount(SideCount):
    """Tally of the records of the party with the same name."""

    counted: Tally = RECORDS
    of_one: ClassVar[bool] = True
    is_additive: ClassVar[bool] = True


@dataclass(frozen=True)
class RemainingForm(Form):
    """Form of the remainder of a group; its values are in the range of the form ``of_groups``."""

    of_groups: Form

    @property
    def factor(self) -> int:
        return self.of_groups.factor

    @property
    def is_signed(self) -> bool:
        return self.of_groups.is_signed


def without(form: Form, coalition: Coalition) -> RemainingForm:
    """Return a form of tallies for the remainder after a coalition."""
    own = ((OwnCount(party, m), -factor) for party in coalition for m, factor in _terms_of_cells(form))
    return RemainingForm((*form.terms, *own), form)


def _terms_of_cells(form: Form) -> Iterator[tuple[Tally, int]]:
    for measure, factor in form.terms:
        assert isinstance(measure, Tally), "Colluders takes no criterion of side counts"
        yield measure, factor


@dataclass(frozen=True)
class RuleOfParts:
    """Rule for parts of groups: a part may be without records, also of the whole table."""

    rule: Rule

    @property
    def title(self) -> tuple[object, ...]:
        return self.rule.title

    @property
    def entry(self) -> str:
        return self.rule.entry

    @property
    def of_zeros(self) -> bool:
        return self.rule.of_zeros

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        return self.rule.met(on.of_parts(), values)


@dataclass(frozen=True)
class Remainder:
    """Criterion of tallies for the remainder of a group after each coalition."""

    asked: Criterion
    coalitions: tuple[Coalition, ...]
    name: ClassVar[str] = "colluders"
    relief: ClassVar[tuple[str, ...]] = ("lower colluders",)
    search: ClassVar[None] = None
    inference: ClassVar[bool] = False

    @property
    def column(self) -> str | None:
        return self.asked.column

    @property
    def rule(self) -> Rule:
        return RuleOfParts(self.asked.rule)

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        """Cases of the criterion, coalition by coalition."""
        return tuple(
            tuple(without(form, coalition) for form in forms)
            for coalition in self.coalitions
            for forms in self.asked.cases
        )

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return the cases that a remainder could break. A part of the group could break the same cases."""
        return np.tile(self.asked.at_stake(totals), (1, len(self.coalitions)))


@dataclass(frozen=True)
class Colluders:
    """Demands of K and C for the remainder after any ``most`` parties of the schema.

    Raises SchemaError, when criteria are made, unless 1 <= most < number of parties, and for more than
    ``MAX_COALITIONS`` coalitions.
    """

    most: int
    asked: tuple[Demand, ...]
    name: ClassVar[str] = Remainder.name
    relief: ClassVar[tuple[str, ...]] = Remainder.relief
    columns: ClassVar[tuple[str, ...]] = ()
    held: ClassVar[str] = ""
    held_by_insiders: ClassVar[str] = ""

    @property
    def setting(self) -> str:
        return f"colluders={self.most}"

    def criteria(self, schema: Schema) -> tuple[Criterion, ...]:
        check_colluders(self.most, len(schema.parties))
        coalitions = tuple(combinations(schema.parties, self.most))
        return tuple(Remainder(c, coalitions) for demand in self.asked for c in demand.criteria(schema))

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        assert not any(demand.relative(schema) for demand in self.asked), "K and C take nothing of the table"
        return ()

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        return None


def check_colluders(most: int, n_parties: int) -> None:
    """Refuse unsupported numbers of colluders. Raises SchemaError."""
    if not 0 < most < n_parties:
        raise SchemaError(
            "job-invalid",
            f"colluders: {most} of {n_parties} parties cannot be held to anything: at least one must be left",
        )
    if comb(n_parties, most) > MAX_COALITIONS:
        raise SchemaError(
            "job-invalid",
            f"colluders: any {most} of {n_parties} parties are more than {MAX_COALITIONS} coalitions, each a test of "
            "every group",
            remedy="lower colluders, or name fewer parties",
        )


@dataclass(frozen=True)
class CountedRows:
    """Counted records of every row of a table: int64, shape (n_rows,)."""

    weights: Ints

    def __repr__(self) -> str:
        return "CountedRows(<private>)"

    def count(self, rows: Ints, keys: Ints, n_keys: int) -> Ints:
        return tally(keys, self.weights[rows], n_keys)


def own_counts(criteria: Sequence[Criterion], table: CodedTable, party: Ints) -> SideInputs:
    """Return a holder's data for the parties' own counts.

    party:  owner of each row, a place in the schema's parties: int64, shape (n_rows,).
    """
    codes, parties = sensitive_codes(table.schema, table.cells), table.schema.parties
    found: dict[SideCount, SideData] = {}
    for side in sides_of(criteria):
        if isinstance(side, OwnCount):
            counted = party == parties.index(side.name)
            if side.counted != RECORDS:
                counted &= side.counted.among(codes)
            found[side] = CountedRows(table.weights * counted)
    return found
