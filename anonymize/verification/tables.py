"""An independent check that a released table is LKC-private.

This is the definition and nothing else ([T] Definition 3.1): for every subset of at most L quasi-identifier
columns, every group of records that agree on it meets what was asked (:func:`examine` says which subsets that takes).
It works on the labels that are about to be
published and shares no code with the algorithms that produced them. What was asked it takes by name, as the job file
says it: each key has its own definition here.
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

    columns:    the quasi-identifiers of which somebody knows at most ``max_known``.
    asked:      what groups meet, by key of the job file: its value there, or by sensitive column.
    protected:  by sensitive column the labels of its protected test values.
    """

    columns: tuple[str, ...]
    max_known: int
    asked: Mapping[str, Any]
    protected: Mapping[str, frozenset[str]] = field(default_factory=dict)


def in_test_values(release: Release, tested: Mapping[str, Mapping[str, str]]) -> Release:
    """A table with test values in place of the published ones.

    tested:  by sensitive column, where they differ, the test value of every published value.
    """
    columns = dict(release.columns)
    for name, of in tested.items():
        if name in columns:
            labels = tuple(of.get(label, label) for label in columns[name].labels)
            columns[name] = LabelledColumn(labels, columns[name].codes)
    return replace(release, columns=columns)


@dataclass(frozen=True)
class Finding:
    """A group that is not allowed: the columns it agrees on and the threshold it breaks.

    undecided:  or of which it took too long to tell whether it does.
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
    """Different rows by group: the group of each, and how often it occurs."""

    number: Numbers = field(repr=False)
    weights: Numbers = field(repr=False)

    @cached_property
    def sizes(self) -> Numbers:
        """Rows of every group."""
        return self.count(np.ones(len(self.number), dtype=bool))

    def count(self, chosen: NDArray[np.bool_]) -> Numbers:
        """Chosen rows of every group."""
        n_groups = int(self.number.max(initial=-1)) + 1
        return np.bincount(self.number[chosen], self.weights[chosen], n_groups).astype(np.int64)


class Definition(Protocol):
    """Meaning of one criterion for the groups of a table.

    threshold, column:  as findings name it.
    inference:          whether it bounds what a group tells about its members, so that cells are held to it.
    """

    @property
    def threshold(self) -> str: ...

    @property
    def column(self) -> str | None: ...

    @property
    def inference(self) -> bool: ...

    def numbers(self, release: Release) -> Numbers:
        """Return the numbers that tell rows apart: one for each."""
        ...

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """Judge the groups: is each allowed, and how is it with the worst? numbers: of the different rows."""
        ...

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        """Of two figures of groups the one that is nearer to the threshold, or farther beyond it."""
        ...


@dataclass(frozen=True)
class Judged:
    """Judgement of one criterion on some groups.

    worst:      the figure that is compared with the threshold, of the group for which it is worst; None: of no group.
    undecided:  no group is found to be, but of one it took too long to tell.
    """

    broken: bool
    worst: Fraction | None = field(default=None, repr=False)
    undecided: bool = False


@dataclass(frozen=True)
class Least:
    """Every group has at least ``size`` rows, and there is one."""

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
    """At most ``confidence`` of any group may have any one of these values of a sensitive column."""

    column: str
    values: frozenset[str]
    confidence: Fraction
    threshold: ClassVar[str] = "C"
    inference: ClassVar[bool] = True

    def numbers(self, release: Release) -> Numbers:
        """The protected values 1, 2, ...; 0 for all others."""
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
    """At least ``least`` different values of a sensitive column are in every group, and there is one."""

    column: str
    least: int
    threshold: ClassVar[str] = "distinct"
    inference: ClassVar[bool] = True

    def numbers(self, release: Release) -> Numbers:
        return label_codes(release.columns[self.column]).astype(np.int64)

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """Counted as the different pairs of a group and a value."""
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
    """No group has one of these values of a sensitive column in all its rows."""

    column: str
    values: frozenset[str]
    threshold: ClassVar[str] = "diversity"
    inference: ClassVar[bool] = True

    def numbers(self, release: Release) -> Numbers:
        """The protected values 1, 2, ...; 0 for all others."""
        column = release.columns[self.column]
        place = {value: i for i, value in enumerate(sorted(self.values), start=1)}
        return np.array([place.get(label, 0) for label in column.labels], dtype=np.int64)[column.codes]

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """A group is all of one value where its least and its greatest number are the same one."""
        n_groups, top = int(groups.number.max(initial=-1)) + 1, int(numbers.max(initial=0))
        least, most = np.full(n_groups, top + 1, dtype=np.int64), np.full(n_groups, -1, dtype=np.int64)
        np.minimum.at(least, groups.number, numbers)
        np.maximum.at(most, groups.number, numbers)
        return Judged(bool(((least == most) & (most > 0)).any()))

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        return max(one, other)


@dataclass
class RuledOut:
    """Of the rows of any group that have none of any ``most`` values or fewer, at most a share has a protected one.

    protected:  by sensitive column the labels of its protected values.
    shares:     by column the greatest share; None: any but all. at_most: by column how many of the values that are
                ruled out and inferred may be of it.
    nodes:      sets of values that were looked at, where more than one may be ruled out.
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
        """One for every combination of sensitive values; what each is, is kept until the next table."""
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
        """Above 1: nothing is asked of the column; 1: any but all."""
        if self.shares is None:
            return Fraction(1)
        return self.shares[name] if self.shares[name] < 1 else Fraction(2)

    def judged(self, groups: Groups, numbers: Numbers) -> Judged:
        """Group by group. One that took too many sets of values is not allowed, and said to be undecided."""
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
        """The values that a group has, its different rows, and how often each occurs.

        Of rows whether each has each of the values: shape (n_values, n_rows).
        """
        different, place = np.unique(numbers, return_inverse=True)
        values = self._values[:, different]
        held, of_rows = np.unique(values, return_inverse=True)
        has = np.zeros((len(held), len(different)), dtype=bool)
        has[of_rows.reshape(values.shape), np.arange(len(different))] = True
        return held, has, np.bincount(place, weights).astype(np.int64)

    def _is_broken(self, held: Numbers, own: NDArray[np.bool_], weights: Numbers) -> bool:
        """Return True if too much is told of rows; held: their values, and own, whether each row has each of
        these.
        """
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
        """As above, for nobody who rules out two values: from the rows that have a value, and those that have two."""
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
        """Return True if of some rows too many have a protected value.

        held:  how many have each of the values: shape (n_cases, n_values). n: rows. used: by case and column how many
               values of it are ruled out.
        """
        p, q = self._p[values], self._q[values]
        above = np.where(p == q, held == n[:, None], q * held > p * n[:, None])
        return bool((above & (held > 0) & (used < self._limits)[:, self._column[values]]).any())

    def worse(self, one: Fraction, other: Fraction) -> Fraction:
        return max(one, other)


@dataclass(frozen=True)
class Close:
    """In every group the values of a sensitive column are spread as in the table, up to a distance.

    order:  all its values, where distances count the steps between them; None: all are equally far apart.
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
        """From the rows of all groups, which are the table."""
        distances = self._apart(groups, numbers) if self.order is None else self._moved(groups, numbers)
        worst = max(distances, default=Fraction(0))
        return Judged(worst > self.most, worst)

    def _apart(self, groups: Groups, numbers: Numbers) -> list[Fraction]:
        """By group half the sum over values of what shares differ by."""
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
        """By group the sum over places of what the shares up to there differ by, over the steps that there are."""
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
    """The protected values of the columns whose values somebody can tell to be of one record, block by block."""
    return [{name: protected[name] for name in block if name in protected} for block in said["blocks"]]


def _diversity(said: Any, protected: Mapping[str, frozenset[str]]) -> list[Definition]:
    """With l = 2 each column for itself, with more block by block."""
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
"""By key of the job file what it means, given what is asked and the protected values."""

NOT_IN_A_TABLE = frozenset({"colluders"})
"""Keys that speak of whose records rows are; a table without origin does not tell (:func:`verify_remainders`)."""


def definitions_of(claim: Claim) -> list[Definition]:
    """Return the meaning of a claim for a table.

    Raises KeyError for a key without a definition: what is not known is not confirmed.
    """
    said = {key: asked for key, asked in claim.asked.items() if key not in NOT_IN_A_TABLE}
    return [found for key, asked in said.items() for found in DEFINITIONS[key](asked, claim.protected)]


@dataclass(frozen=True)
class Examined:
    """Findings on the groups of a table.

    finding:  the first violation, or None if the table is what is claimed.
    worst:    if it is: by key and sensitive column, None for none, the figure that is compared with the threshold, of
              the group for which it is worst: the smallest size, the largest share of a value, the fewest values.
    """

    finding: Finding | None
    worst: Mapping[tuple[str, str | None], Fraction] = field(default_factory=dict, repr=False)


def verify_lkc(release: Release, claim: Claim) -> Finding | None:
    """Return the first violation found, or None if the table is what is claimed."""
    return examine(release, claim).finding


def examine(release: Release, claim: Claim) -> Examined:
    """Look at every group on as many columns as somebody knows, until one is not allowed.

    A group on fewer columns is a disjoint union of groups on more, and every definition holds for a union if it does
    for its parts: its figure is no worse than the worst of these. A column with one label in the whole table splits
    no group, so it is passed over. A finding names no column more than it takes.
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
    """The first violation on any of these, of its columns those that it takes; None: there is none."""
    found = next((found for columns in subsets if (found := broken(columns)) is not None), None)
    if found is not None:
        for name in found.columns:
            found = broken(tuple(other for other in found.columns if other != name)) or found
    return found


def _telling(release: Release, claim: Claim) -> dict[str, Codes]:
    """The columns of a claim that have more than one label in the table, each as the numbers of its labels."""
    codes = {name: label_codes(release.columns[name]) for name in claim.columns}
    return {name: numbers for name, numbers in codes.items() if numbers.max(initial=0) > 0}


def verify_remainders(release: Release, party: Numbers, claim: Claim) -> Finding | None:
    """Return the first violation in what remains of a table after any at most ``colluders`` parties take rows out.

    party:  of every row a number for whose it is: int64, shape (n_rows,). Nothing may remain.
    """
    present = np.unique(party)
    for size in range(min(claim.asked["colluders"], len(present) - 1) + 1):
        for coalition in combinations(present, size):
            found = verify_lkc(release.some(np.flatnonzero(~np.isin(party, coalition))), claim)
            if found is not None:
                return found
    return None


def verify_persons(release: Release, person: Numbers, claim: Claim) -> Finding | None:
    """Return the first group, on as many columns as somebody knows, that has fewer than K different people, or None.

    person:  of every row a number for whose record it is: int64, shape (n_rows,). A table without people is not
             allowed. The people of a group on fewer columns are at least those of each of its parts.
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
    """Return the first violation, among rows that agree on all ``columns``, of what bounds inferences, or None."""
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
    """The first violation, or None; ``worst`` takes the worst figures of these groups and of those before."""
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
    """Number the labels that occur, equal labels alike: what a reader of the table can tell apart."""
    present = np.bincount(column.codes, minlength=len(column.labels)) > 0
    seen = dict.fromkeys(label for label, is_seen in zip(column.labels, present, strict=True) if is_seen)
    numbers: Mapping[str, int] = {label: i for i, label in enumerate(seen)}
    by_code = np.array([numbers.get(label, 0) for label in column.labels], dtype=narrowest(len(numbers)))
    return by_code[column.codes]


def _distinct_rows(columns: Sequence[Codes], release: Release) -> tuple[list[Codes], Numbers]:
    """Join equal rows; return the columns of the distinct ones and how many records each stands for."""
    first, counts = kinds_of_rows(columns, release)
    return [column[first] for column in columns], counts


def kinds_of_rows(columns: Sequence[Codes], release: Release) -> tuple[Numbers, Numbers]:
    """Join rows of a table that agree on columns of it; return one row of each kind, and the records of each."""
    keys = number_rows(columns, release.n_rows)
    if release.counts is None:
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return first, counts
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, np.bincount(kind, release.counts).astype(np.int64)


def number_rows(columns: Sequence[Codes], n_rows: int, limit: int = _KEY_SPACE) -> NDArray[np.int64]:
    """Number rows, up to about ``limit``, so that exactly rows that agree on all columns share one."""
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
