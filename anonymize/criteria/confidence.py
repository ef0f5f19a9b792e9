"""C: no protected value is more frequent in a group than a bound p/q says, P(s | group) <= p/q."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from anonymize.criteria.criterion import RECORDS, Arithmetic, B, Bools, Criterion, Form, Relative, Tally, W
from anonymize.table import Ints, Schema


@dataclass(frozen=True)
class NotNegative:
    """No difference is below 0."""

    title: ClassVar[tuple[object, ...]] = ("sign",)
    entry: ClassVar[str] = "difference"
    of_zeros: ClassVar[bool] = False

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        (difference,) = values
        return on.not_negative(difference)


@dataclass(frozen=True)
class Confidence:
    """Bound: at most a share ``bound`` of every group has the same protected value of ``values`` in a sensitive
    column.

    number:  of the column in the schema. values: codes of categories.
    """

    column: str
    number: int
    values: tuple[int, ...]
    bound: Fraction
    name: ClassVar[str] = "C"
    relief: ClassVar[tuple[str, ...]] = ("raise C", "protect fewer values")
    rule: ClassVar[NotNegative] = NotNegative()
    search: ClassVar[None] = None
    inference: ClassVar[bool] = True

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Records with each protected value."""
        return tuple(Tally(holding=((self.number, value),)) for value in self.values)

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        """p·n − q·count for each protected value."""
        p, q = self.bound.numerator, self.bound.denominator
        return tuple((Form(((RECORDS, p), (held, -q))),) for held in self.tallies)

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return True where a protected value has more records than the bound allows in the smallest part."""
        p, q = self.bound.numerator, self.bound.denominator
        return np.stack([totals[held] > p * least // q for held in self.tallies], axis=1)


@dataclass(frozen=True)
class Confidences:
    """C as a demand of a job: bounds of the sensitive columns with protected values; 1 means no bound.

    most:    bound of columns without a separate bound; None: all bounds are separate.
    bounds:  bound by column, 1 for columns left out.
    """

    most: Fraction | None = Fraction(1)
    bounds: tuple[tuple[str, Fraction], ...] = ()
    name: ClassVar[str] = Confidence.name
    relief: ClassVar[tuple[str, ...]] = Confidence.relief

    @property
    def held(self) -> str:
        return "no protected value above its C" if self._bounds_some else ""

    @property
    def held_by_insiders(self) -> str:
        return self.held

    @property
    def _bounds_some(self) -> bool:
        return any(bound < 1 for _, bound in self.bounds)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.bounds)

    @property
    def setting(self) -> str:
        """Empty where there is no bound."""
        if self._bounds_some and all(bound == self.most for _, bound in self.bounds):
            return f"C={self.most}"
        return " ".join(f"C({name})={bound}" for name, bound in self.bounds if bound < 1)

    def criteria(self, schema: Schema) -> tuple[Criterion, ...]:
        """Return the criterion of each sensitive column with a bound."""
        bounds = dict(self.bounds)
        return tuple(
            Confidence(column.name, i, column.protected, bounds[column.name])
            for i, column in enumerate(schema.sensitive)
            if bounds.get(column.name, 1) < 1 and column.protected
        )

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        return ()

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        if self.most is None or self.most >= 1 or sensitive:
            return None
        return f"C={self.most} bounds nothing: no column has `role: sensitive`"
