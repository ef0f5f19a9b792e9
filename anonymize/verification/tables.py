"""Independent check that a released table is LKC-private.

The check is the definition alone ([T] Definition 3.1): for every subset of at most L quasi-identifier
columns, every group of records that agree on it meets the requirement (:func:`examine` describes the
necessary subsets). It uses the labels to be published and shares no code with the algorithms that made them.
The requirement comes by name, as in the job file: each key has a separate definition here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.release import LabelledColumn, Release
from anonymize.table import Codes, narrowest
from anonymize.verification.ruling_out import MOST_SETS, Covers, SharesLeft, TooManySets

Numbers: TypeAlias = NDArray[np.int64]
Shares: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Claim:
    """Claim about a table.

    columns:    quasi-identifiers; somebody knows at most ``max_known`` of them.
    asked:      requirement of groups by key of the job file: the value, or values by sensitive column.
    protected:  labels of the protected categories by sensitive column.
    """

    columns: tuple[str, ...]
    max_known: int
    asked: Mapping[str, Any]
    protected: Mapping[str, frozenset[str]] = field(default_factory=dict)


def in_test_values(release: Release, tested: Mapping[str, Mapping[str, str]]) -> Release:
    """Return the table with categories in place of the published values.

    tested:  by sensitive column with categories, the category of every published value.
    """
    columns = dict(release.columns)
    for name, of in tested.items():
        if name in columns:
            labels = tuple(of.get(label, label) for label in columns[name].labels)
            columns[name] = LabelledColumn(labels, columns[name].codes)
    return replace(release, columns=columns)


@dataclass(frozen=True)
class Finding:
    """Forbidden group: its common columns and the broken threshold.

    undecided:  True if the decision would have taken too long.
    """

    columns: tuple[str, ...]
    threshold: str
    sensitive: str | None = None
    undecided: bool = False

    def __str__(self) -> str:
        where = ", ".join(self.columns) if self.columns else "no column"
        if self.undecided:
            return (
                f"not checked: whether a group on {where} violates {self.threshold}; more than {MOST_SETS:,} sets of "
                "values would have to be looked at"
            )
        of_column = f" for {self.sensitive}" if self.sensitive else ""
        return f"a group on {where} violates {self.threshold}{of_column}"


@dataclass(frozen=True)
class Groups:
    """Different rows by group: the group and the number of occurrences of each row."""

    number: Numbers = field(repr=False)
    weights: Numbers = field(repr=False)

    @cached_property
    def sizes(self) -> Numbers:
        """Rows of every group."""
        return self.count(np.ones(len(self.number), dtype=bool))

    def count(self, chosen: NDArray[np.bool_]) -> Numbers:
        """Count the chosen rows of every group."""
        n_groups = int(self.number.max(initial=-1)) + 1
        return np.bincount(self.number[chosen], self.weights[chosen], n_groups).astype(np.int64)


class Definition(Protocol):
    """Meaning of a criterion for the groups of a table.

    threshold, column:  names in findings.
    inference:          True if the criterion bounds inferences about a group's members and so applies to cells.
    """

    @property
    def threshold(self) -> str: ...

    @property
    def column(self) -> str | None: ...

    @property
    def inference(self) -> bool: ...

    def numbers(self, release: Release) -> Numbers:
        """Return a number per row that distinguishes rows."""
        ...

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """Judge the groups and find the worst. numbers: of the different rows."""
        ...

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        """Return the worse figure: nearer to the threshold, or farther beyond it."""
        ...


@dataclass(frozen=True)
class Judged:
    """Judgement of a criterion on some groups.

    worst:      figure of the worst group, to compare with the threshold; None: no figure.
    undecided:  True if no group is known to be broken, but the decision on a group would have taken too long.
    """

    broken: bool
    worst: Fraction | None = field(default=None, repr=False)
    undecided: bool = False


@dataclass(frozen=True)
class Least:
    """Every group has at least ``size`` rows, and a group exists."""

    size: int
    threshold: ClassVar[str] = "K"
    column: ClassVar[None] = None
    inference: ClassVar[bool] = False

    def numbers(self, release: Release) -> Numbers:
        return np.zeros(release.n_rows, dtype=np.int64)

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        present = groups.sizes[groups.sizes > 0]
        if len(present) == 0:
            return Judged(True)
        return Judged(bool((present < self.size).any()), Fraction(int(present.min())))

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        return min(one, other)


@dataclass(frozen=True)
class Bound:
    """Bound: at most ``confidence`` of any group have the same value of ``values`` in a sensitive column."""

    column: str
    values: frozenset[str]
    confidence: Fraction
    threshold: ClassVar[str] = "C"
    inference: ClassVar[bool] = True

    def numbers(self, release: Release) -> Numbers:
        """Return 1, 2, ... for the protected values and 0 for all others."""
        column = release.columns[self.column]
        protected = {value: i for i, value in enumerate(sorted(self.values), start=1)}
        by_code = np.array([protected.get(label, 0) for label in column.labels], dtype=np.int64)
        return by_code[column.codes]

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        p, q = self.confidence.numerator, self.confidence.denominator
        if p == q:
            return Judged(False)
        broken, worst, sizes = False, Fraction(0), groups.sizes
        for value in range(1, int(numbers.max(initial=0)) + 1):
            held = groups.count(numbers == value)
            broken = broken or bool((held * q > sizes * p).any())
            most = int(np.argmax(held / np.maximum(sizes, 1)))
            worst = max(worst, Fraction(int(held[most]), max(int(sizes[most]), 1)))
        return Judged(broken, worst)

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        return max(one, other)


@dataclass(frozen=True)
class Different:
    """Bound: every group has at least ``least`` different values of a sensitive column, and a group exists."""

    column: str
    least: int
    threshold: ClassVar[str] = "distinct"
    inference: ClassVar[bool] = True

    def numbers(self, release: Release) -> Numbers:
        return label_codes(release.columns[self.column]).astype(np.int64)

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """Judge by the different pairs of a group and a value."""
        if len(numbers) == 0:
            return Judged(True)
        width = int(numbers.max()) + 1
        different = np.bincount(np.unique(groups.number * width + numbers) // width)
        fewest = int(different[different > 0].min())
        return Judged(fewest < self.least, Fraction(fewest))

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        return min(one, other)


@dataclass(frozen=True)
class NotAll:
    """Bound: no group has the same value of ``values`` in a sensitive column in all its rows."""

    column: str
    values: frozenset[str]
    threshold: ClassVar[str] = "diversity"
    inference: ClassVar[bool] = True

    def numbers(self, release: Release) -> Numbers:
        """Return 1, 2, ... for the protected values and 0 for all others."""
        column = release.columns[self.column]
        place = {value: i for i, value in enumerate(sorted(self.values), start=1)}
        return np.array([place.get(label, 0) for label in column.labels], dtype=np.int64)[column.codes]

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """Judge the groups. All rows of a group have the same value if its least and greatest numbers are equal."""
        n_groups, top = int(groups.number.max(initial=-1)) + 1, int(numbers.max(initial=0))
        least, most = np.full(n_groups, top + 1, dtype=np.int64), np.full(n_groups, -1, dtype=np.int64)
        np.minimum.at(least, groups.number, numbers)
        np.maximum.at(most, groups.number, numbers)
        return Judged(bool(((least == most) & (most > 0)).any()))

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        return max(one, other)


@dataclass
class RuledOut:
    """Bound on the share of protected values among the rows of a group left after at most ``most`` values are
    excluded.

    protected:  labels of the protected values by sensitive column.
    shares:     greatest share by column; None: any share but all. at_most: most values of a column excluded and
                inferred together.
    nodes:      examined sets of values, if more than one value may be excluded.
    """

    threshold: str
    most: int
    protected: Mapping[str, frozenset[str]]
    shares: Mapping[str, Fraction] | None
    at_most: Mapping[str, int]
    nodes: int = field(default=0, init=False)
    column: ClassVar[None] = None
    inference: ClassVar[bool] = True

    def numbers(self, release: Release) -> Numbers:
        """Number the combinations of sensitive values. The combinations are stored until the next table."""
        columns = {name: release.columns[name] for name in self.protected}
        codes = [label_codes(column) for column in columns.values()]
        _, first, number = np.unique(
            number_rows(codes, release.n_rows), return_index=True, return_inverse=True
        )
        values: list[Numbers] = []
        places: list[int] = []
        shares: list[Fraction] = []
        for place, (name, column) in enumerate(columns.items()):
            own = codes[place][first]
            values.append(len(places) + own.astype(np.int64))
            labels = dict(zip(own.tolist(), (column.labels[c] for c in column.codes[first]), strict=True))
            for label in map(labels.__getitem__, sorted(labels)):
                places.append(place)
                shares.append(self._share(name) if label in self.protected[name] else Fraction(2))
        self._values = np.array(values, dtype=np.int64).reshape(len(columns), len(first))
        self._column = np.array(places, dtype=np.int64)
        self._limits = np.array([self.at_most.get(name, _KEY_SPACE) for name in columns], dtype=np.int64)
        self._p = np.array([share.numerator for share in shares], dtype=np.int64)
        self._q = np.array([share.denominator for share in shares], dtype=np.int64)
        return number.astype(np.int64)

    def _share(self, name: str) -> Fraction:
        """Return the bound of a column. Above 1: no bound; 1: any share but all."""
        if self.shares is None:
            return Fraction(1)
        return self.shares[name] if self.shares[name] < 1 else Fraction(2)

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """Judge group by group. A group with too many sets of values counts as broken, and as undecided."""
        order = np.argsort(groups.number, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(groups.number[order])) + 1)
        undecided = False
        for part in parts:
            try:
                if len(part) and self._is_broken(*self._rows(numbers[part], groups.weights[part])):
                    return Judged(True)
            except TooManySets:
                undecided = True
        return Judged(undecided, undecided=undecided)

    def _rows(self, numbers: Numbers, weights: Numbers) -> tuple[Numbers, NDArray[np.bool_], Numbers]:
        """Return the values of a group, its different rows, and their numbers of occurrences.

        Rows are True where they have a value: shape (n_values, n_rows).
        """
        different, place = np.unique(numbers, return_inverse=True)
        values = self._values[:, different]
        held, of_rows = np.unique(values, return_inverse=True)
        has = np.zeros((len(held), len(different)), dtype=bool)
        has[of_rows.reshape(values.shape), np.arange(len(different))] = True
        return held, has, np.bincount(place, weights).astype(np.int64)

    def _is_broken(self, held: Numbers, own: NDArray[np.bool_], weights: Numbers) -> bool:
        """Return True if rows reveal too much; held: their values; own: True where a row has a value."""
        if self.most <= 1:
            return self._is_broken_by_counts(held, own.astype(np.float64), weights)
        column = self._column[held]
        search: Covers | SharesLeft
        if self.shares is None:
            protected = (self._p <= self._q)[held].tolist()
            search = Covers(own, column.tolist(), self._limits.tolist(), protected)
            broken = search.infers(self.most + 1)
        else:
            search = SharesLeft(own, weights, column, self._limits, self._p[held], self._q[held])
            broken = search.infers(self.most)
        self.nodes += search.nodes
        return broken

    def _is_broken_by_counts(self, values: Numbers, has: Shares, weights: Numbers) -> bool:
        """Return the same for at most one excluded value, from the rows with a value and the rows with two values."""
        both = np.rint((has * weights) @ has.T).astype(np.int64)
        held, n = np.diagonal(both), np.array([weights.sum()])
        nothing = np.zeros(len(self._limits), dtype=np.int64)
        if self._tells(values, held[None], n, nothing[None]):
            return True
        column = self._column[values]
        candidates = np.flatnonzero((nothing < self._limits)[column])
        if self.most == 0 or len(candidates) == 0:
            return False
        used = np.eye(len(self._limits), dtype=np.int64)[column[candidates]]
        return self._tells(values, held - both[candidates], n - held[candidates], used)

    def _tells(self, values: Numbers, held: Numbers, n: Numbers, used: Numbers) -> bool:
        """Return True if too many rows have a protected value.

        held:  rows with each value: shape (n_cases, n_values). n: rows. used: excluded values by case and column.
        """
        p, q = self._p[values], self._q[values]
        above = np.where(p == q, held == n[:, None], q * held > p * n[:, None])
        return bool((above & (held > 0) & (used < self._limits)[:, self._column[values]]).any())

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        return max(one, other)


@dataclass(frozen=True)
class Close:
    """Bound on the distance between the distributions of a sensitive column in every group and in the table.

    order:  all values of the column, if distances count the steps between values; None: all are equally far apart.
    """

    column: str
    most: Fraction
    order: tuple[str, ...] | None
    threshold: ClassVar[str] = "t"
    inference: ClassVar[bool] = True

    def numbers(self, release: Release) -> Numbers:
        column = release.columns[self.column]
        if self.order is None:
            return label_codes(column).astype(np.int64)
        place = {label: i for i, label in enumerate(self.order)}
        return np.array([place[label] for label in column.labels], dtype=np.int64)[column.codes]

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """Judge the groups against the rows of all groups, which are the table."""
        distances = self._apart(groups, numbers) if self.order is None else self._moved(groups, numbers)
        worst = max(distances, default=Fraction(0))
        return Judged(worst > self.most, worst)

    def _apart(self, groups: Groups, numbers: Numbers) -> list[Fraction]:
        """Return, by group, half the sum over values of the differences of shares."""
        of_value = np.bincount(numbers, groups.weights).astype(np.int64)
        width, n_rows = len(of_value), int(of_value.sum())
        pairs, pair = np.unique(groups.number * width + numbers, return_inverse=True)
        held = np.bincount(pair, groups.weights).astype(np.int64)
        group, value = np.divmod(pairs, width)
        here = np.zeros(len(groups.sizes), dtype=object)
        elsewhere = np.full(len(groups.sizes), n_rows, dtype=object)
        size = groups.sizes[group]
        np.add.at(here, group, abs(held.astype(object) * n_rows - size.astype(object) * of_value[value]))
        np.subtract.at(elsewhere, group, of_value[value].astype(object))
        return [
            Fraction(differ + own * absent, 2 * own * n_rows)
            for differ, absent, own in zip(here, elsewhere, groups.sizes.tolist(), strict=True)
            if own
        ]

    def _moved(self, groups: Groups, numbers: Numbers) -> list[Fraction]:
        """Return, by group, the sum over places of the differences of cumulated shares, divided by the steps."""
        assert self.order is not None
        sizes, n_rows = groups.sizes.astype(object), int(groups.weights.sum())
        below, moved, up_to = np.zeros_like(sizes), np.zeros_like(sizes), 0
        for place in range(len(self.order)):
            held = groups.count(numbers == place)
            below, up_to = below + held, up_to + int(held.sum())
            moved = moved + abs(below * n_rows - sizes * up_to)
        steps = max(len(self.order) - 1, 1)
        return [Fraction(m, s * n_rows * steps) for m, s in zip(moved, sizes, strict=True) if s]

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        return max(one, other)


def _ruled_out(said: Any, protected: Mapping[str, frozenset[str]]) -> list[Definition]:
    return [
        RuledOut("ruled_out", said["values"], block, said["C"], said["at_most"])
        for block in _by_block(said, protected)
    ]


def _by_block(said: Any, protected: Mapping[str, frozenset[str]]) -> list[Mapping[str, frozenset[str]]]:
    """Return the protected values block by block. Somebody can link the values of a block's columns to a record."""
    return [{name: protected[name] for name in block if name in protected} for block in said["blocks"]]


def _diversity(said: Any, protected: Mapping[str, frozenset[str]]) -> list[Definition]:
    """Return the definitions: with l = 2 by column, otherwise block by block."""
    least, at_most = said["least"], said["at_most"]
    if least == 2:
        return [NotAll(name, values) for name, values in protected.items() if at_most.get(name) != 0]
    return [RuledOut("diversity", least - 2, block, None, at_most) for block in _by_block(said, protected)]


DEFINITIONS: Mapping[str, Callable[[Any, Mapping[str, frozenset[str]]], Sequence[Definition]]] = {
    "K": lambda size, _: [Least(size)],
    "C": lambda bounds, protected: [Bound(name, protected[name], c) for name, c in bounds.items()],
    "distinct": lambda least, _: [Different(name, number) for name, number in least.items()],
    "t": lambda said, _: [Close(name, most, order) for name, (most, order) in said.items()],
    "ruled_out": _ruled_out,
    "diversity": _diversity,
}
"""Definitions by key of the job file, from the requirement and the protected values."""

NOT_IN_A_TABLE = frozenset({"colluders"})
"""Keys about the parties of rows, which a table without parties does not show (:func:`verify_remainders`)."""


def definitions_of(claim: Claim) -> list[Definition]:
    """Return the meaning of a claim for a table.

    Raises KeyError for a key without a definition, which is never confirmed.
    """
    said = {key: asked for key, asked in claim.asked.items() if key not in NOT_IN_A_TABLE}
    return [found for key, asked in said.items() for found in DEFINITIONS[key](asked, claim.protected)]


@dataclass(frozen=True)
class Examined:
    """Findings on the groups of a table.

    finding:  first violation, or None if the claim is true.
    worst:    if true: by key and sensitive column (or None), the figure of the worst group: the smallest size, the
              largest share of a value, the fewest values.
    """

    finding: Finding | None
    worst: Mapping[tuple[str, str | None], Fraction] = field(default_factory=dict, repr=False)


def verify_lkc(release: Release, claim: Claim) -> Finding | None:
    """Return the first violation, or None if the claim is true."""
    return examine(release, claim).finding


def examine(release: Release, claim: Claim) -> Examined:
    """Examine every group on as many columns as somebody knows, up to the first forbidden group.

    A group on fewer columns is a disjoint union of groups on more columns. A definition that holds for the parts
    holds for the union, whose figure is no worse than the worst part. A column with a single label in the whole table
    splits no group and is skipped. A finding names only necessary columns.
    """
    definitions = definitions_of(claim)
    codes = _telling(release, claim)
    looked_at = [definition.numbers(release) for definition in definitions]
    rows, weights = _distinct_rows([*codes.values(), *looked_at], release)
    group_codes = dict(zip(codes, rows, strict=False))
    numbers = [own.astype(np.int64) for own in rows[len(codes) :]]
    worst: dict[tuple[str, str | None], Fraction] = {}

    def broken(columns: tuple[str, ...]) -> Finding | None:
        number = number_rows([group_codes[name] for name in columns], len(weights), 8 * len(weights) + 1024)
        return _first_broken(Groups(number, weights), definitions, numbers, columns, worst)

    found = _first_of(combinations(codes, min(claim.max_known, len(codes))), broken)
    return Examined(None, worst) if found is None else Examined(found)


def _first_of(
    subsets: Iterable[tuple[str, ...]], broken: Callable[[tuple[str, ...]], Finding | None]
) -> Finding | None:
    """Return the first violation on the subsets, reduced to the necessary columns; None without a violation."""
    found = next((found for columns in subsets if (found := broken(columns)) is not None), None)
    if found is not None:
        for name in found.columns:
            found = broken(tuple(other for other in found.columns if other != name)) or found
    return found


def _telling(release: Release, claim: Claim) -> dict[str, Codes]:
    """Return the columns of a claim with more than one label in the table, as numbers of the labels."""
    codes = {name: label_codes(release.columns[name]) for name in claim.columns}
    return {name: numbers for name, numbers in codes.items() if numbers.max(initial=0) > 0}


def verify_remainders(release: Release, party: Numbers, claim: Claim) -> Finding | None:
    """Return the first violation in the remainder of a table after at most ``colluders`` parties take their rows out.

    party:  number of each row's party: int64, shape (n_rows,). The remainder may be empty.
    """
    present = np.unique(party)
    for size in range(min(claim.asked["colluders"], len(present) - 1) + 1):
        for coalition in combinations(present, size):
            found = verify_lkc(release.some(np.flatnonzero(~np.isin(party, coalition))), claim)
            if found is not None:
                return found
    return None


def verify_persons(release: Release, person: Numbers, claim: Claim) -> Finding | None:
    """Return the first group, on as many columns as somebody knows, with fewer than K different people, or None.

    person:  number of each row's person: int64, shape (n_rows,). A table without people is not allowed. A group on
             fewer columns has at least the people of each of its parts.
    """
    codes = _telling(release, claim)
    (*rows, people), _ = _distinct_rows([*codes.values(), person], release)
    group_codes, n_people = dict(zip(codes, rows, strict=True)), int(people.max(initial=0)) + 1

    def broken(columns: tuple[str, ...]) -> Finding | None:
        number = number_rows([group_codes[name] for name in columns], len(people), 8 * len(people) + 1024)
        counts = np.bincount(np.unique(number * n_people + people) // n_people)
        fewest = counts[counts > 0].min(initial=len(people))
        return Finding(columns, Least.threshold) if fewest < claim.asked["K"] else None

    return _first_of(combinations(codes, min(claim.max_known, len(codes))), broken)


def verify_cells(release: Release, columns: Sequence[str], claim: Claim) -> Finding | None:
    """Return the first violation of an inference bound among rows that agree on all ``columns``, or None."""
    definitions = [definition for definition in definitions_of(claim) if definition.inference]
    return _verify_groups(release, columns, definitions)


def _verify_groups(
    release: Release, columns: Sequence[str], definitions: Sequence[Definition]
) -> Finding | None:
    codes = [label_codes(release.columns[name]) for name in columns]
    number = number_rows(codes, release.n_rows, 8 * release.n_rows + 1024)
    groups = Groups(
        number, np.ones(release.n_rows, dtype=np.int64) if release.counts is None else release.counts
    )
    numbers = [definition.numbers(release) for definition in definitions]
    return _first_broken(groups, definitions, numbers, tuple(columns), {})


def _first_broken(
    groups: Groups,
    definitions: Sequence[Definition],
    numbers: Sequence[Numbers],
    columns: tuple[str, ...],
    worst: dict[tuple[str, str | None], Fraction],
) -> Finding | None:
    """Return the first violation, or None; ``worst`` collects the worst figures of these and earlier groups."""
    for definition, own in zip(definitions, numbers, strict=True):
        judged = definition.judged(groups, own)
        if judged.broken:
            return Finding(columns, definition.threshold, definition.column, judged.undecided)
        if judged.worst is not None:
            key = definition.threshold, definition.column
            worst[key] = definition.worse(worst.get(key, judged.worst), judged.worst)
    return None


_KEY_SPACE = 1 << 62


def label_codes(column: LabelledColumn) -> Codes:
    """Number the occurring labels, equal labels alike, as a reader of the table distinguishes them."""
    present = np.bincount(column.codes, minlength=len(column.labels)) > 0
    seen = dict.fromkeys(label for label, is_seen in zip(column.labels, present, strict=True) if is_seen)
    numbers: Mapping[str, int] = {label: i for i, label in enumerate(seen)}
    by_code = np.array([numbers.get(label, 0) for label in column.labels], dtype=narrowest(len(numbers)))
    return by_code[column.codes]


def _distinct_rows(columns: Sequence[Codes], release: Release) -> tuple[list[Codes], Numbers]:
    """Join equal rows; return the columns of the distinct rows and their numbers of records."""
    first, counts = kinds_of_rows(columns, release)
    return [column[first] for column in columns], counts


def kinds_of_rows(columns: Sequence[Codes], release: Release) -> tuple[Numbers, Numbers]:
    """Join rows of a table that agree on the columns; return a row of each kind, and the records of each kind."""
    keys = number_rows(columns, release.n_rows)
    order = np.argsort(keys)  # faster than a stable order: any row of a kind will do
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    counts = np.ones_like(keys) if release.counts is None else release.counts
    return order[starts], np.add.reduceat(counts[order], starts)


def number_rows(columns: Sequence[Codes], n_rows: int, limit: int = _KEY_SPACE) -> NDArray[np.int64]:
    """Number rows, up to about ``limit``. Rows have the same number exactly if they agree on all columns."""
    groups = np.zeros(n_rows, dtype=np.int64)
    bound = 1
    for column in columns:
        radix = int(column.max(initial=0)) + 1
        if bound * radix > limit:
            groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
            bound = int(groups.max(initial=0)) + 1
        groups = groups * radix + column
        bound *= radix
    return groups
