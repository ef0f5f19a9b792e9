"""Diversity 2: no group has one protected value in all its records.

The case l = 2 of :class:`anonymize.criteria.ruled_out.Diversity`, where nothing is ruled out, so that every sensitive
column stands for itself: each can have its own holder, and one test of it. It is C = (N − 1)/N where a table has at
most N records, in zero tests; any C below 1 implies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from anonymize.criteria.criterion import RECORDS, Arithmetic, B, Bools, Form, Tally, W
from anonymize.table import Ints


@dataclass(frozen=True)
class NotAll:
    """A group is empty, or not all of its records have a value: of its records and those without it."""

    title: ClassVar[tuple[object, ...]] = ("mixed",)
    entry: ClassVar[str] = "counts"
    of_zeros: ClassVar[bool] = True

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        size, without = values
        return on.any_of([on.is_empty(size), on.negation(on.is_zero(without))])


@dataclass(frozen=True)
class Mixed:
    """None of the protected ``values`` of a sensitive column is that of all records of a group.

    number:  of the column in the schema. values: codes of test values.
    """

    column: str
    number: int
    values: tuple[int, ...]
    name: ClassVar[str] = "diversity"
    relief: ClassVar[tuple[str, ...]] = ("lower diversity", "protect fewer values")
    rule: ClassVar[NotAll] = NotAll()
    search: ClassVar[None] = None
    inference: ClassVar[bool] = True

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Records with each protected value."""
        return tuple(Tally(holding=((self.number, value),)) for value in self.values)

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        """The records, and those without each protected value."""
        size = Form(((RECORDS, 1),))
        return tuple((size, Form(((RECORDS, 1), (held, -1)))) for held in self.tallies)

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Only values that could be all of the fewest records that a part has."""
        return np.stack([totals[held] >= least for held in self.tallies], axis=1)
