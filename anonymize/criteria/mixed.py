"""Diversity 2: no group has the same protected value in all its records.

This is l = 2 of :class:`anonymize.criteria.ruled_out.Diversity`, without negative background knowledge. So every
sensitive column is tested separately, also at separate holders. For tables of at most N records the criterion equals
C = (N − 1)/N, by a test for zero; any C below 1 implies it.
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
    """Rule: a group is empty, or some record lacks a value. Takes the records and the records without the value."""

    title: ClassVar[tuple[object, ...]] = ("mixed",)
    entry: ClassVar[str] = "counts"
    of_zeros: ClassVar[bool] = True

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        size, without = values
        return on.any_of([on.is_empty(size), on.negation(on.is_zero(without))])


@dataclass(frozen=True)
class Mixed:
    """No group has the same protected value of ``values`` in all its records.

    number:  number of the column in the schema. values: codes of categories.
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
        """Pairs of the records and the records without a protected value."""
        size = Form(((RECORDS, 1),))
        return tuple((size, Form(((RECORDS, 1), (held, -1)))) for held in self.tallies)

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return True where a value could fill the smallest part."""
        return np.stack([totals[held] >= least for held in self.tallies], axis=1)
