"""Inference with negative background knowledge: LKC's C and l-diversity on several sensitive columns together.

Somebody who excludes the values X of a group member's sensitive columns is left with the records without X. The tests
cover every set X of at most E values and every protected value s outside X. Among the remaining records, if any, at
most C may have s (:class:`RuledOut`), or not all (:class:`Diversity`, with E = l − 2). With a single sensitive
column, RuledOut is recursive (c, l)-diversity with l = E + 2 and c = C / (1 − C) (Machanavajjhala, Kifer, Gehrke,
Venkitasubramaniam, TKDD 2007, Definition 4.3). Diversity with all values protected is [MSA] Definition 6; with
`at_most` it serves the purpose of Definition 7 (semantics §10.13).

Every condition is linear in counts without a constant, so both are closed under union. The cases are the definition
and the tests of joint runs; for a single holder, :class:`anonymize.criteria.search.RuledOutSearch` gives the same
result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from anonymize.criteria.confidence import NotNegative
from anonymize.criteria.criterion import (
    RECORDS,
    Arithmetic,
    B,
    Bools,
    Form,
    Measure,
    Relative,
    Tally,
    Value,
    W,
)
from anonymize.criteria.mixed import Mixed
from anonymize.criteria.search import RuledColumn, RuledOutSearch
from anonymize.errors import SchemaError
from anonymize.linked_columns import Blocks
from anonymize.table import Ints, Schema

MAX_JOINT_DIVERSITY, MAX_JOINT_CASES = 3, 20_000
"""Limits of joint runs, which try all sets of values: l, and pairs of a protected value and any value."""
MAX_COMBINATIONS = 256
"""Most combinations of a holder's values in a vertical run, each a label of a joint histogram."""
Limits = tuple[tuple[str, int], ...]
"""Largest number of values per column that are excluded and inferred together."""


@dataclass(frozen=True)
class SomeoneLeft:
    """Rule: if there are records, some remain after a removal."""

    title: ClassVar[tuple[object, ...]] = ("left",)
    entry: ClassVar[str] = "counts"
    of_zeros: ClassVar[bool] = True

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        before, after = values
        return on.any_of([on.is_zero(before), on.negation(on.is_zero(after))])


@dataclass(frozen=True)
class RuledOut:
    """Bound on the share of every protected value, after at most ``most`` values are excluded.

    ruled:  the sensitive columns; columns without a bound have no protected value.
    """

    ruled: tuple[RuledColumn, ...]
    most: int
    name: ClassVar[str] = "ruled_out"
    relief: ClassVar[tuple[str, ...]] = ("lower ruled_out", "raise C", "set at_most", "protect fewer values")
    column: ClassVar[None] = None
    rule: ClassVar[NotNegative] = NotNegative()
    inference: ClassVar[bool] = True

    @cached_property
    def search(self) -> RuledOutSearch:
        return RuledOutSearch(self.ruled, self.most)

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        """p·u_X − q·u_{X,s} for every X and s."""
        bound = {column.number: column.bound for column in self.ruled}
        forms = []
        for without, (column, value) in self._pairs():
            share = bound[column]
            assert share is not None, "a protected value has a bound"
            p, q = share.numerator, share.denominator
            forms.append((Form(((_lacking(without), p), (_holding((column, value), without), -q))),))
        return tuple(forms)

    def _pairs(self) -> Iterator[tuple[tuple[Value, ...], Value]]:
        protected = _protected(self.ruled)
        for size in range(self.most + 1):
            for without in _sets(self.ruled, size):
                for value in protected:
                    if value not in without and _keeps(self.ruled, (*without, value)):
                        yield without, value

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return True where all records with s and without X could exceed the bound in the smallest part.

        A part has at least ``least`` records, and at most the group's number of records with a value of X. If this
        number is 0, X excludes nothing, and the case without X suffices.
        """
        found = []
        for (form,) in self.cases:
            (left, p), (held, minus_q) = form.terms
            assert isinstance(left, Tally)
            assert isinstance(held, Tally)
            hit = totals[RECORDS] - totals[left]
            can_break = (totals[held] > 0) & (-minus_q * totals[held] + p * hit > p * least)
            found.append(can_break & (hit > 0) if left.lacking else can_break)
        return np.stack(found, axis=1)


@dataclass(frozen=True)
class Diversity:
    """Bound: no protected value is certain after at most l − 2 other values are excluded; ``least`` is l.

    In other words: no smallest set of at most l − 1 values that covers every record holds a protected value.
    """

    ruled: tuple[RuledColumn, ...]
    least: int
    column: ClassVar[None] = None
    name: ClassVar[str] = "diversity"
    relief: ClassVar[tuple[str, ...]] = ("lower diversity", "set at_most", "protect fewer values")
    rule: ClassVar[SomeoneLeft] = SomeoneLeft()
    inference: ClassVar[bool] = True

    @cached_property
    def search(self) -> RuledOutSearch:
        return RuledOutSearch(self.ruled, self.least - 2)

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        """Records without the unprotected values, and without all values, of every set with a protected value.

        If a set of values removes all records and its unprotected values do not, a smallest subset that does holds a
        protected value.
        """
        protected = frozenset(_protected(self.ruled))
        forms = []
        for values in self._tested:
            others = tuple(value for value in values if value not in protected)
            forms.append((Form(((_lacking(others), 1),)), _left_without(values)))
        return tuple(forms)

    @cached_property
    def _tested(self) -> tuple[tuple[Value, ...], ...]:
        """Set of values of each case."""
        protected = frozenset(_protected(self.ruled))
        sets = (values for size in range(1, self.least) for values in _sets(self.ruled, size))
        return tuple(values for values in sets if not protected.isdisjoint(values))

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """Return True where the records with a value of the set could fill the smallest part.

        Pairs implied by another test are left out (:class:`_Pairs`).
        """
        counts: dict[Measure, Ints] = {tally: totals[tally] for tally in totals}
        n = totals[RECORDS]
        hit = n[:, None] - np.stack([after.of(counts) for _, after in self.cases], axis=1)
        stakes: Bools = hit >= np.reshape(least, (-1, 1))
        pairs = self._pairs
        if len(pairs.case):
            alone = [
                n - counts[_lacking((value,))] if number < 0 else hit[:, number]
                for value, number in zip(pairs.values, pairs.alone.tolist(), strict=True)
            ]
            stakes[:, pairs.case] &= ~pairs.implied(np.stack(alone, axis=1), hit[:, pairs.case])
        return stakes

    @cached_property
    def _pairs(self) -> _Pairs:
        cases = {values: number for number, values in enumerate(self._tested)}
        pairs = [values for values in self._tested if len(values) == 2]
        values = sorted({value for pair in pairs for value in pair})
        place = {value: i for i, value in enumerate(values)}
        return _Pairs(
            tuple(values),
            np.array([cases.get((value,), -1) for value in values], dtype=np.int64),
            np.isin(np.arange(len(values)), [place[v] for v in _protected(self.ruled) if v in place]),
            np.array([[place[value] for value in pair] for pair in pairs], dtype=np.int64).reshape(-1, 2),
            np.array([cases[pair] for pair in pairs], dtype=np.int64),
        )


@dataclass(frozen=True)
class _Pairs:
    """Cases of a :class:`Diversity` with two values, some of which need no test in a group.

    Value a is *below* b if all records of a group with a also have b. If a is below a protected c, failure at {a, b}
    implies failure at {c, b}. If a is below b, failure at {a, b} implies failure at {b} alone, and is impossible if b
    is not protected. Among values with the same records, later values are below the first. So the omitted cases
    follow from the tested cases.

    values:     all values in pairs. alone: case of each value by itself, -1 without a case. protected: True for
                protected values.
    members:    numbers of every pair's values: shape (n_pairs, 2). case: of every pair.
    """

    values: tuple[Value, ...]
    alone: Ints = field(repr=False)
    protected: Bools = field(repr=False)
    members: Ints = field(repr=False)
    case: Ints = field(repr=False)

    def implied(self, alone: Ints, both: Ints) -> Bools:
        """Return the pairs that need no test: shape (n_groups, n_pairs).

        alone:  records of each group with each value. both: with a value of each pair.
        """
        at_a_time = max(1, _MOST_PLACES // len(self.values) ** 2)
        parts = range(0, len(alone), at_a_time)
        found = [self._implied(alone[i : i + at_a_time], both[i : i + at_a_time]) for i in parts]
        return np.concatenate([np.zeros((0, len(self.case)), dtype=bool), *found])

    def _implied(self, alone: Ints, both: Ints) -> Bools:
        a, b = self.members.T
        n = len(self.values)
        below = np.repeat(alone[:, :, None] == 0, n, axis=2)
        below[:, a, b], below[:, b, a] = both == alone[:, b], both == alone[:, a]
        order = np.arange(n)
        below &= (alone[:, :, None] != alone[:, None, :]) | (order < order[:, None])
        instead = np.eye(n, dtype=np.float32)
        instead[a, b] = self.protected[a]
        instead[b, a] = self.protected[b]
        found = below.astype(np.float32) @ instead > 0
        implied: Bools = found[:, a, b] | found[:, b, a]
        return implied


_MOST_PLACES = 1 << 22
"""Most (pairs of values) × groups examined at once."""


def _left_without(values: tuple[Value, ...]) -> Form:
    """Return the form of the records without some values; for a single value, from the same counts as C."""
    if len(values) == 1:
        return Form(((RECORDS, 1), (Tally(values), -1)))
    return Form(((_lacking(values), 1),))


def _protected(ruled: Sequence[RuledColumn]) -> tuple[Value, ...]:
    return tuple((column.number, value) for column in ruled for value in column.protected)


def _sets(ruled: Sequence[RuledColumn], size: int) -> Iterator[tuple[Value, ...]]:
    """Return the sets of ``size`` values within the limits of each column."""
    values = [(column.number, value) for column in ruled for value in range(column.n_values)]
    return (chosen for chosen in combinations(values, size) if _keeps(ruled, chosen))


def _keeps(ruled: Sequence[RuledColumn], values: Sequence[Value]) -> bool:
    """Return True if the values are within the limit of every column."""
    of_columns = [column for column, _ in values]
    return all(c.at_most is None or of_columns.count(c.number) <= c.at_most for c in ruled)


def _lacking(values: tuple[Value, ...]) -> Tally:
    return Tally(lacking=values) if values else RECORDS


def _holding(value: Value, without: tuple[Value, ...]) -> Tally:
    """Return the tally with a value and without the others. Others of the same column are lacking anyway."""
    return Tally((value,), tuple(other for other in without if other[0] != value[0]))


@dataclass(frozen=True)
class RuledOutValues:
    """``ruled_out`` as a demand of a job.

    bounds:   C by column; columns left out have no bound.
    at_most:  limits by column, if given.
    blocks:   columns examined together; empty: all together.

    Raises SchemaError for less than 1, which equals C alone.
    """

    most: int
    bounds: tuple[tuple[str, Fraction], ...]
    at_most: Limits = ()
    blocks: Blocks = ()
    name: ClassVar[str] = RuledOut.name
    relief: ClassVar[tuple[str, ...]] = RuledOut.relief
    columns: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.most < 1:
            raise SchemaError("job-invalid", "ruled_out must be at least 1")

    @property
    def setting(self) -> str:
        return f"ruled_out={self.most}{_said(self.at_most)}{_apart(self.blocks)}"

    @property
    def held(self) -> str:
        return f"the same for whoever rules out {_values(self.most)}{_of_one(self.blocks)}"

    @property
    def held_by_insiders(self) -> str:
        return self.held

    def criteria(self, schema: Schema) -> tuple[RuledOut, ...]:
        """Return the criterion of every block of columns with a bounded value."""
        bounds = {name: bound for name, bound in self.bounds if bound < 1}
        ruled = {
            name: replace(column, bound=bounds[name]) if name in bounds else replace(column, protected=())
            for name, column in _columns(schema, self.at_most).items()
        }
        return tuple(RuledOut(block, self.most) for block in _together(ruled, self.blocks))

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        return ()

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        if any(bound < 1 for _, bound in self.bounds):
            return None
        return f"{self.setting} bounds nothing: no C below 1"


@dataclass(frozen=True)
class DiverseValues:
    """``diversity`` as a demand of a job.

    mixed:  columns with a C below 1 for all protected values. No group then has such a value in all records.
    blocks: columns examined together; empty: all together.

    Raises SchemaError for less than 2, which every group meets.
    """

    least: int
    at_most: Limits = ()
    mixed: tuple[str, ...] = ()
    blocks: Blocks = ()
    name: ClassVar[str] = Diversity.name
    relief: ClassVar[tuple[str, ...]] = Diversity.relief
    columns: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.least < 2:
            raise SchemaError("job-invalid", "diversity must be at least 2")

    @property
    def setting(self) -> str:
        return f"diversity={self.least}{_said(self.at_most)}{_apart(self.blocks) if self.least > 2 else ''}"

    @property
    def held(self) -> str:
        if self.least == 2:
            return "no protected value in all records"
        return (
            f"no protected value in all records that are left after {_values(self.least - 2)} are ruled out"
            f"{_of_one(self.blocks)}"
        )

    @property
    def held_by_insiders(self) -> str:
        return self.held

    def criteria(self, schema: Schema) -> tuple[Diversity | Mixed, ...]:
        """Return the criterion of every block with protected values; with l = 2, of every column in need."""
        columns = _columns(schema, self.at_most)
        if self.least == 2:
            needing = {name: c for name, c in columns.items() if c.at_most != 0 and name not in self.mixed}
            return tuple(Mixed(name, c.number, c.protected) for name, c in needing.items() if c.protected)
        return tuple(Diversity(block, self.least) for block in _together(columns, self.blocks))

    def relative(self, schema: Schema) -> tuple[Relative, ...]:
        return ()

    def without_effect(self, sensitive: Sequence[str]) -> str | None:
        return None if sensitive else f"{self.setting} protects nothing: no column has `role: sensitive`"


def _columns(schema: Schema, at_most: Limits) -> dict[str, RuledColumn]:
    limits: dict[str, int | None] = dict(at_most)
    found = {}
    for i, column in enumerate(schema.sensitive):
        limit = limits.get(column.name)
        protected = () if limit == 0 else column.protected
        found[column.name] = RuledColumn(i, len(column.tested), protected, at_most=limit)
    return found


def _together(ruled: Mapping[str, RuledColumn], blocks: Blocks) -> Iterator[tuple[RuledColumn, ...]]:
    """Yield the columns of every block with a protected value."""
    parts = (tuple(c for name, c in ruled.items() if name in block) for block in blocks or (tuple(ruled),))
    return (part for part in parts if _protected(part))


def _apart(blocks: Blocks) -> str:
    """Return the form of the blocks in settings."""
    return " (block by block)" if len(blocks) > 1 else ""


def _of_one(blocks: Blocks) -> str:
    return " of one block of columns" if len(blocks) > 1 else ""


def _values(most: int) -> str:
    return "one value" if most == 1 else f"any {most} values"


def _said(at_most: Limits) -> str:
    return "".join(f" at_most({name})={limit}" for name, limit in at_most)
