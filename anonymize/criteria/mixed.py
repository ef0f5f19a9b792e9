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
class NoneIsAll:
    """A group is empty, or none of some counts of records without a value is 0.

    among:  how many counts it takes besides the size of the group.
    """

    among: int
    entry: ClassVar[str] = "counts"

    @property
    def title(self) -> tuple[object, ...]:
        return "mixed", self.among

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        size, *without = values
        return on.any_of([on.is_empty(size), on.all_of([on.negation(on.is_zero(n)) for n in without])])


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
    search: ClassVar[None] = None
    inference: ClassVar[bool] = True

    @property
    def rule(self) -> NoneIsAll:
        return NoneIsAll(len(self.values))

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Records with each protected value."""
        return tuple(Tally(holding=((self.number, value),)) for value in self.values)

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        """One: the records, and those without each protected value."""
        size = Form(((RECORDS, 1),))
        return ((size, *(Form(((RECORDS, 1), (held, -1))) for held in self.tallies)),)

    def at_stake(self, totals: Mapping[Tally, Ints], least: int = 1) -> Bools:
        """Only where some value could be all of the fewest records that a part has."""
        most = np.max([totals[held] for held in self.tallies], axis=0)
        broken: Bools = most >= least
        return broken[:, None]
