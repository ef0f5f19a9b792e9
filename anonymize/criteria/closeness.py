"""t-closeness: the distribution of a sensitive column in every group is close to the distribution in the whole table.

Li, Li, Venkatasubramanian, ICDE 2007: the earth mover's distance of the two distributions is at most t. All values
are equally far from each other, or lie in a row, one step apart (``ordered``). With n records of a group, n_v with
value v, N and N_v in the table, V values and t = p/q:

    equal:    q · Σ_v max(0, n_v·N − n·N_v) <= p · n · N
    ordered:  q · Σ_k |Σ_{v <= k} (n_v·N − n·N_v)| <= p · n · N · (V − 1)

The left-hand side is convex and homogeneous in the group's counts, the right-hand side linear, so the criterion is
closed under union. The ordered distance is no greater than the equal distance.

The sums are conjunctions of linear conditions, for every set of values or of places in the row. These are the cases,
used only to check the definition; a single holder adds up with :class:`Distances`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.confidence import NotNegative
from anonymize.criteria.criterion import RECORDS, Bools, Criterion, Form, Relative, Tally, Weights
from anonymize.errors import SchemaError
from anonymize.table import Ints, Schema, tally

_INT64 = 1 << 62
_MOST_COUNTS = 1 << 22
"""Most counts of values in memory at once."""


@dataclass(frozen=True)
class Distances:
    """Distances of a holder's groups from the table.

    number:    number of the column in the schema. records: N. of_values: N_v by value. bound: t.
    ordered:   True if the values lie in a row, in the order of their numbers.
    """

    number: int
    records: int = field(repr=False)
    of_values: tuple[int, ...] = field(repr=False)
    bound: Fraction
    ordered: bool
    factor: ClassVar[int] = 1  # integers grow as necessary

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.number,)

    @property
    def width(self) -> int:
        return len(self.of_values)

    @property
    def steps(self) -> int:
        """Steps between the farthest values; distances are shares of this number."""
        return max(self.width - 1, 1) if self.ordered else 1

    def broken(self, keys: Ints, n_keys: int, codes: Sequence[Ints], weights: Weights | None) -> Bools:
        """Return True for the groups beyond the bound: shape (n_keys,).

        keys:  group of every item. codes: of a single column, value of each item. weights: records of each item;
               None: 1. Shape (n_items,) each.
        """
        (code,) = codes
        p, q = self.bound.numerator, self.bound.denominator
        sizes = tally(keys, weights, n_keys)
        # Python's integers where 62 bits do not hold.
        greatest = max(p, q) * int(sizes.max(initial=0)) * self.records * self.steps
        wide: Any = np.int64 if greatest < _INT64 else object
        n, by_value = sizes.astype(wide), np.array(self.of_values).astype(wide)
        add_up = self._in_a_row if self.ordered else self._above
        most = p * self.steps * self.records * n
        found: Bools = np.asarray(q * add_up(keys, code, weights, n, by_value) > most, dtype=np.bool_)
        return found

    def _above(
        self, keys: Ints, code: Ints, weights: Weights | None, n: NDArray[Any], by_value: NDArray[Any]
    ) -> NDArray[Any]:
        """Return Σ_v max(0, n_v·N − n·N_v) of every group. Values missing in the group add nothing."""
        present, pair = np.unique(keys * self.width + code, return_inverse=True)
        group, value = np.divmod(present, self.width)
        held = tally(pair, weights, len(present)).astype(n.dtype)
        above = np.maximum(held * self.records - n[group] * by_value[value], 0)
        found = np.zeros(len(n), dtype=n.dtype)
        np.add.at(found, group, above)
        return found

    def _in_a_row(
        self, keys: Ints, code: Ints, weights: Weights | None, n: NDArray[Any], by_value: NDArray[Any]
    ) -> NDArray[Any]:
        """Return Σ_k |Σ_{v <= k} (n_v·N − n·N_v)| of every group."""
        found, order = np.zeros(len(n), dtype=n.dtype), np.argsort(keys, kind="stable")
        ends = np.searchsorted(keys[order], np.arange(len(n) + 1))
        at_a_time, up_to = max(1, _MOST_COUNTS // self.width), np.cumsum(by_value)
        for start in range(0, len(n), at_a_time):
            part = slice(start, min(start + at_a_time, len(n)))
            rows = order[ends[part.start] : ends[part.stop]]
            own, size = None if weights is None else weights[rows], part.stop - part.start
            held = tally((keys[rows] - start) * self.width + code[rows], own, size * self.width)
            below = np.cumsum(held.reshape(size, self.width).astype(n.dtype), axis=1)
            found[part] = np.abs(below * self.records - n[part, None] * up_to).sum(axis=1)
        return found


@dataclass(frozen=True)
class Closeness:
    """Criterion for a table with known counts."""

    column: str
    search: Distances
    name: ClassVar[str] = "t"
    relief: ClassVar[tuple[str, ...]] = ("raise t",)
    rule: ClassVar[NotNegative] = NotNegative()
    inference: ClassVar[bool] = True

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        """p·n·N·steps − q·Σ_v f_v·(n_v·N − n·N_v), where f is 0 or 1 for every value; or, for values in a row, the
        sum of signs of the places from v on: 2 to the power of values.
        """
        return tuple((self._form(factors),) for factors in self._factors())

    def _factors(self) -> list[tuple[int, ...]]:
        of = self.search
        if not of.ordered:
            return list(product((0, 1), repeat=of.width))
        signs = product((-1, 1), repeat=of.width - 1)
        return [tuple(sum(sign[v:]) for v in range(of.width)) for sign in signs]

    def _form(self, factors: Sequence[int]) -> Form:
        of, q = self.search, self.search.bound.denominator
        of_all = sum(f * n for f, n in zip(factors, of.of_values, strict=True))
        of_records = of.bound.numerator * of.records * of.steps + q * of_all
        held = ((Tally(((of.number, v),)), -q * f * of.records) for v, f in enumerate(factors) if f)
        return Form(((RECORDS, of_records), *held))

    def at_stake(self, totals: Mapping[Tally, Ints], least: int | Ints = 1) -> Bools:
        """Return all cases."""
        return np.ones((len(totals[RECORDS]), len(self.cases)), dtype=bool)


@dataclass(frozen=True)
class CloseToTheTable:
    """Makes a :class:`Closeness` from the counts of a table."""

    column: str
    number: int
    n_values: int
    bound: Fraction
    ordered: bool

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """Tally of the records, and of the records with each value."""
        return (RECORDS, *(Tally(((self.number, value),)) for value in range(self.n_values)))

    def given(self, totals: Mapping[Tally, int]) -> Criterion:
        records, *of_values = (totals[tallied] for tallied in self.tallies)
        distances = Distances(self.number, records, tuple(of_values), self.bound, self.ordered)
        return Closeness(self.column, distances)


@dataclass(frozen=True)
class CloseValues:
    """t-closeness of some sensitive columns as a demand of a job.

    bounds:   t by column. ordered: columns with values in a row.

    Raises SchemaError for a t that is not above 0.
    """

    bounds: tuple[tuple[str, Fraction], ...]
    ordered: frozenset[str] = frozenset()
    name: ClassVar[str] = Closeness.name
    relief: ClassVar[tuple[str, ...]] = Closeness.relief

    def __post_init__(self) -> None:
        for column, bound in self.bounds:
            if bound <= 0:
                raise SchemaError("job-invalid", f"t of column {column} must be above 0")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column, _ in self.bounds)

    @property
    def setting(self) -> str:
        return " ".join(f"t({column})={bound}" for column, bound in self.bounds)

    @property
    def held(self) -> str:
        return ", ".join(
            f"shares of values of {column} at most {bound} from the table's" for column, bound in self.bounds
        )

    @property
    def held_by_insiders(self) -> str:
        return self.held

    def criteria(self, schema: Schema) -> tuple[Criterion, ...]:
        return ()

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        """Return the criterion of each listed column in the schema."""
        bounds = dict(self.bounds)
        return tuple(
            CloseToTheTable(
                column.name, i, len(column.tested), bounds[column.name], column.name in self.ordered
            )
            for i, column in enumerate(schema.sensitive)
            if column.name in bounds
        )

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        if self.bounds:
            return None
        return "t=1 bounds nothing" if sensitive else "t bounds nothing: no column has `role: sensitive`"
