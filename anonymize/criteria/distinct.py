"""Distinct l-diversity: every group has at least l different values of a sensitive column.

Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, TKDD 2007, distinct l-diversity. Closed under union: the values of
two groups are values of their union.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from anonymize.criteria.criterion import Arithmetic, B, Bools, Criterion, Form, Relative, Tally, W
from anonymize.errors import SchemaError
from anonymize.table import Ints, Schema


@dataclass(frozen=True)
class EnoughAbove:
    """No count is above 0, or at least ``least`` counts are.

    among:  number of counts.
    """

    least: int
    among: int
    entry: ClassVar[str] = "counts"
    of_zeros: ClassVar[bool] = True

    @property
    def title(self) -> tuple[object, ...]:
        return "distinct", self.among, self.least

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        present = on.count_of([on.negation(on.is_zero(value)) for value in values])
        return on.none_or_at_least(present, self.least)


@dataclass(frozen=True)
class Distinct:
    """Bound: at least ``least`` of the categories 0 … ``n_values`` - 1 of a sensitive column have a record in every
    group.

    number:  of the column in the schema.
    """

    column: str
    number: int
    n_values: int
    least: int
    name: ClassVar[str] = "distinct"
    relief: ClassVar[tuple[str, ...]] = ("lower distinct",)
    search: ClassVar[None] = None
    inference: ClassVar[bool] = True

    @property
    def rule(self) -> EnoughAbove:
        return EnoughAbove(self.least, self.n_values)

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Records with each value."""
        return tuple(Tally(holding=((self.number, value),)) for value in range(self.n_values))

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        """Single case: the records with each value."""
        return (tuple(Form(((tally, 1),)) for tally in self.tallies),)

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return True where ``least`` - 1 values could make up the smallest part."""
        held = np.stack([totals[tally] for tally in self.tallies])
        too_few = np.sort(held, axis=0)[1 - self.least :].sum(axis=0)
        broken: Bools = too_few >= least
        return broken[:, None]


@dataclass(frozen=True)
class DistinctValues:
    """Distinct l-diversity of some sensitive columns as a demand of a job.

    least:  number of different values by column.

    Raises SchemaError for less than 2, because every group has a value.
    """

    least: tuple[tuple[str, int], ...]
    name: ClassVar[str] = Distinct.name
    relief: ClassVar[tuple[str, ...]] = Distinct.relief

    def __post_init__(self) -> None:
        for column, least in self.least:
            if least < 2:
                raise SchemaError("job-invalid", f"distinct of column {column} must be at least 2")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column, _ in self.least)

    @property
    def setting(self) -> str:
        return " ".join(f"distinct({column})={least}" for column, least in self.least)

    @property
    def held(self) -> str:
        return ", ".join(f"at least {least} different values of {column}" for column, least in self.least)

    @property
    def held_by_insiders(self) -> str:
        return self.held

    def criteria(self, schema: Schema) -> tuple[Criterion, ...]:
        """Return the criterion of each listed column in the schema."""
        least = dict(self.least)
        return tuple(
            Distinct(column.name, i, len(column.tested), least[column.name])
            for i, column in enumerate(schema.sensitive)
            if column.name in least
        )

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        return ()

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        return None
