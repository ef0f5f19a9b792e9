"""K: a group without records or with at least K records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anonymize.criteria.criterion import RECORDS, Arithmetic, B, Bools, Criterion, Form, Relative, Tally, W
from anonymize.errors import SchemaError
from anonymize.table import Ints, Schema


@dataclass(frozen=True)
class LargeEnough:
    """Empty, or at least ``least``."""

    least: int
    entry: ClassVar[str] = "count"
    of_zeros: ClassVar[bool] = False

    @property
    def title(self) -> tuple[object, ...]:
        return "size", self.least

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        (size,) = values
        return on.none_or_at_least(size, self.least)


@dataclass(frozen=True)
class Size:
    """Bound of at least ``least`` records in every group: both demand and criterion.

    Raises SchemaError for less than 1.
    """

    least: int
    name: ClassVar[str] = "K"
    relief: ClassVar[tuple[str, ...]] = ("lower K",)
    column: ClassVar[None] = None
    cases: ClassVar[tuple[tuple[Form, ...], ...]] = ((Form(((RECORDS, 1),)),),)
    search: ClassVar[None] = None
    inference: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ()
    held_by_insiders: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.least < 1:
            raise SchemaError("job-invalid", "K must be at least 1")

    @property
    def setting(self) -> str:
        return f"K={self.least}"

    @property
    def held(self) -> str:
        return f"at least K={self.least} records"

    def criteria(self, schema: Schema) -> tuple[Criterion, ...]:
        return (self,)

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        return ()

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        return None

    @property
    def rule(self) -> LargeEnough:
        return LargeEnough(self.least)

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return False for K = 1, which every group meets."""
        return np.full((len(totals[RECORDS]), 1), self.least > 1)


def least_size(criteria: Sequence[Criterion]) -> int:
    """Return K; 1 without a criterion of size."""
    return max((criterion.least for criterion in criteria if isinstance(criterion, Size)), default=1)
