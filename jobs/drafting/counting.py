"""Values of a table's columns with their records, for guesses about a job."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from anonymize.table import Ints
from jobs.data.arrow import pa
from jobs.data.coders import EMPTY, numbers_of
from jobs.data.ids import normalized_ids
from jobs.data.sources import FileSource
from jobs.data.table_file import MISSING_WORDS, as_read
from jobs.data.texts import alike, fault_of, folded
from jobs.file.makers import ROOT

MARKS = MISSING_WORDS - {"none", "nil"}
"""Texts of missing cells; `none` is often a value."""
RARE = 10
"""Number of records, or of people where an id names them, from which a value may stand in a draft."""


@dataclass(frozen=True)
class Counted:
    """Values of a column.

    counts:   number of records of each value that is not missing.
    numbers:  the value as a number, for values that are numbers.
    missing:  number of records without a value.
    marks:    texts of missing cells, each of at least ``RARE`` holders.
    respelled: spellings of at least ``RARE`` holders, with the more frequent spelling of the same value; codes of
             missing cells, with an empty text.
    codes:   values of at least ``RARE`` holders taken for missing cells, as they look like codes: -9, 999.
    doubtful: values that look like codes, and stay, since they may be meant.
    missing_by_code: number of records with one of the codes.
    """

    holders: ClassVar[str] = "records"
    """Word for the holders of values, of which a value in a draft has at least ``RARE``."""

    name: str
    counts: Mapping[str, int] = field(repr=False)
    numbers: Mapping[str, float] = field(default_factory=dict, repr=False)
    missing: int = 0
    marks: tuple[str, ...] = field(default=(), repr=False)
    respelled: Mapping[str, str] = field(default_factory=dict, repr=False)
    codes: tuple[str, ...] = field(default=(), repr=False)
    doubtful: tuple[str, ...] = field(default=(), repr=False)
    missing_by_code: int = field(default=0, repr=False)

    @cached_property
    def n(self) -> int:
        """Number of records with a value."""
        return sum(self.counts.values())

    @cached_property
    def common(self) -> list[str]:
        """Values that may stand in a draft, the most frequent first; a release says `*` of what is suppressed."""
        fit = (value for value in self.counts if value != ROOT and fault_of(value) is None)
        found = filter(self.is_frequent, fit)
        return sorted(found, key=lambda value: (-self.counts[value], value))

    def is_frequent(self, value: str) -> bool:
        """Return True if a value has enough holders for a draft."""
        return self.reached([value]) is not None

    def reached(self, values: Iterable[str]) -> str | None:
        """Return the first value that has, with all values before, at least ``RARE`` holders; else None."""
        return next((value for value, n in self._running(values) if n >= RARE), None)

    def _running(self, values: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Yield values, each with the number of holders of the value and of all values before."""
        n = 0
        for value in values:
            n += self.counts[value]
            yield value, n

    def others(self, listed: Sequence[str]) -> dict[str, int]:
        """Return the values besides the listed ones, with their records."""
        known = frozenset(listed)
        return {value: n for value, n in self.counts.items() if value not in known}

    def share(self, values: Sequence[str]) -> float:
        """Return the share of the records with one of some values."""
        return sum(self.counts[value] for value in values) / max(self.n, 1)

    @cached_property
    def share_of_numbers(self) -> float:
        return self.share(list(self.numbers))


@dataclass(frozen=True)
class CountedPeople(Counted):
    """Values of a column of a table with several rows of a person.

    people:  for each column of ids, the people with each value, by number; of more than ``RARE`` people at least
             ``RARE``. The column with the fewest people decides.
    """

    holders = "people"

    people: Sequence[Mapping[str, Set[int]]] = field(default=(), repr=False)

    def _running(self, values: Iterable[str]) -> Iterator[tuple[str, int]]:
        found = [set[int]() for _ in self.people]
        for value in values:
            for of_column, people in zip(found, self.people, strict=True):
                of_column |= people.get(value, frozenset())
            yield value, min(map(len, found))


def counted_columns(source: FileSource, names: Sequence[str], ids: Sequence[str] = ()) -> dict[str, Counted]:
    """Count the values of some columns in one pass, without missing cells. Raises DataError.

    ids:  columns that name the person of a row; they take a second pass. A value needs holders by every column.
    """
    texts = texts_of(source, names)
    if ids:
        people = _people_of(source, names, ids)
        columns: list[Counted] = [
            CountedPeople(name, texts[name], people=[people[each, name] for each in ids]) for name in names
        ]
    else:
        columns = [Counted(name, texts[name]) for name in names]
    return {column.name: _cleaned(column, source) for column in columns}


def _people_of(
    source: FileSource, names: Sequence[str], ids: Sequence[str]
) -> dict[tuple[str, str], dict[str, set[int]]]:
    """Return people with each value, by the column of their ids and the column of the value. Raises DataError."""
    numbers: dict[str, dict[str, int]] = {person: {} for person in ids}
    found: dict[tuple[str, str], dict[str, set[int]]] = {
        (person, name): {} for person in ids for name in names
    }
    for batch in source.batches([*dict.fromkeys([*names, *ids])]):
        who = {person: _numbered(batch.column(person), numbers[person]) for person in ids}
        for name in names:
            column = batch.column(name)
            texts = [as_read(text or "") for text in column.dictionary.to_pylist()]
            places = column.indices.to_numpy().astype(np.int64)
            for person, of_row in who.items():
                of_value = found[person, name]
                for place, number in _first_pairs(places[of_row >= 0], of_row[of_row >= 0]):
                    of_value.setdefault(texts[place], set()).add(number)
    return found


def _numbered(column: pa.DictionaryArray, numbers: dict[str, int]) -> Ints:
    """Return the number of the person of each row, -1 for none: int64. numbers: of known ids; new ids are added."""
    of_id = [
        -1 if text in EMPTY else numbers.setdefault(text, len(numbers))
        for text in normalized_ids(column.dictionary.fill_null("")).to_pylist()
    ]
    who: Ints = np.array(of_id, dtype=np.int64)[column.indices.to_numpy()]
    return who


def _first_pairs(places: Ints, numbers: Ints) -> list[tuple[int, int]]:
    """Return different pairs of a place and a number, at most ``RARE`` of each place."""
    n_people = int(numbers.max(initial=0)) + 1
    of_place, number = np.divmod(np.unique(places * n_people + numbers), n_people)
    is_first = np.arange(len(of_place)) - np.searchsorted(of_place, of_place) < RARE
    return list(zip(of_place[is_first].tolist(), number[is_first].tolist(), strict=True))


def texts_of(source: FileSource, names: Sequence[str]) -> dict[str, Counter[str]]:
    """Count the texts of some columns in one pass. Raises DataError."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    for batch in source.batches(names):
        for name, column in zip(names, batch.columns, strict=True):
            _add(counts[name], column)
    return counts


def _add(counts: Counter[str], column: pa.DictionaryArray) -> None:
    """Add the values of a batch."""
    texts = [as_read(text or "") for text in column.dictionary.to_pylist()]
    for found in column.indices.value_counts().to_pylist():
        counts[texts[found["values"]]] += found["counts"]


def _cleaned(column: Counted, source: FileSource) -> Counted:
    """Take missing cells out, and join frequent spellings of the same value."""
    counts = column.counts
    marks = tuple(value for value in counts if value.casefold() in MARKS and column.is_frequent(value))
    missing = sum(n for value, n in counts.items() if value in EMPTY or value in marks)
    values = {value: n for value, n in counts.items() if value not in EMPTY and value not in marks}
    column = joined(replace(column, counts=values, missing=missing, marks=marks))
    texts = list(column.counts)
    numbers = numbers_of(pa.array(source.numerals(texts), pa.string())).tolist() if texts else []
    return replace(
        column, numbers={text: x for text, x in zip(texts, numbers, strict=True) if math.isfinite(x)}
    )


def joined(column: Counted) -> Counted:
    """Join spellings of a value of at least ``RARE`` holders each, to the most frequent spelling."""
    by_form: dict[str, list[str]] = {}
    for value in column.common:
        by_form.setdefault(folded(value), []).append(value)
    words = {other: first for first, *others in by_form.values() for other in others}
    counts = {value: n for value, n in column.counts.items() if value not in words}
    for value, first in words.items():
        counts[first] += column.counts[value]
    return replace(column, counts=counts, respelled=words)


def has_rare_spellings(column: Counted) -> bool:
    """Return True if a value of a column has two spellings, of which one is rare: a run would refuse them."""
    return alike(column.counts) is not None
