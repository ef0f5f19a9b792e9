"""Values of a table's columns with their records, for guesses about a job."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from jobs.data.arrow import pa
from jobs.data.coders import EMPTY, numbers_of
from jobs.data.sources import FileSource
from jobs.data.table_file import MISSING_WORDS, as_read
from jobs.data.texts import alike, fault_of, folded

MARKS = MISSING_WORDS - {"none", "nil"}
"""Texts of missing cells; `none` is often a value."""
RARE = 10
"""Number of records from which a value may stand in a draft."""


@dataclass(frozen=True)
class Counted:
    """Values of a column.

    counts:   number of records of each value that is not missing.
    numbers:  the value as a number, for values that are numbers.
    missing:  number of records without a value.
    marks:    texts of missing cells, each of at least ``RARE`` records.
    respelled: spellings of at least ``RARE`` records, with the more frequent spelling of the same value; codes of
             missing cells, with an empty text.
    codes:   values of at least ``RARE`` records taken for missing cells, as they look like codes: -9, 999.
    doubtful: values that look like codes, and stay, since they may be meant.
    missing_by_code: number of records with one of the codes.
    """

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
        """Values that may stand in a draft, the most frequent first."""
        found = (value for value, n in self.counts.items() if n >= RARE and fault_of(value) is None)
        return sorted(found, key=lambda value: (-self.counts[value], value))

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


def counted_columns(
    source: FileSource, names: Sequence[str], classes: Sequence[str] = ()
) -> dict[str, Counted]:
    """Count the values of some columns in one pass, without missing cells. Raises DataError.

    classes:  columns named as a class: no value of them is taken for a code.
    """
    found = {name: _cleaned(name, texts, source) for name, texts in texts_of(source, names).items()}
    return {name: column if name in classes else _without_codes(column) for name, column in found.items()}


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


def _cleaned(name: str, counts: Mapping[str, int], source: FileSource) -> Counted:
    """Take missing cells out, and join frequent spellings of the same value."""
    marks = tuple(value for value, n in counts.items() if value.casefold() in MARKS and n >= RARE)
    missing = sum(n for value, n in counts.items() if value in EMPTY or value in marks)
    values = {value: n for value, n in counts.items() if value not in EMPTY and value not in marks}
    column = joined(Counted(name, values, missing=missing, marks=marks))
    texts = list(column.counts)
    numbers = numbers_of(pa.array(source.numerals(texts), pa.string())).tolist() if texts else []
    return replace(
        column, numbers={text: x for text, x in zip(texts, numbers, strict=True) if math.isfinite(x)}
    )


_CODES = re.compile(r"-[1-9]|-?([789])\1+|-9[5-8]")
"""Codes of missing cells in surveys and registries: -9, 99, -99, 888, -97."""
_FAR = 1.5
"""A code above all other numbers is at least so many times the greatest of them."""
_NO_ANSWERS = frozenset(
    [
        "k.a.",
        "k. a.",
        "keine angabe",
        "refused",
        "unknown",
        "unbekannt",
        "don't know",
        "dk",
        "not asked",
        "no answer",
    ]
)
"""Texts that mean a missing cell among numbers."""
_MEASURED = 12
"""Largest number of different numbers that may be categories, with texts beside them."""
_MOST_CODES = 3
_MOST_NEXT = 2
"""Most codes right below the other numbers. More are the end of a scale, such as -3 to 10."""
_SHARE_NEXT = 0.05
"""Largest share of the cells with codes right below the other numbers."""
_MOSTLY = 0.95


def _without_codes(column: Counted) -> Counted:
    """Take values out of a column of numbers that look like codes of missing cells, each of ``RARE`` records."""
    texts = [text for text in column.common if text not in column.numbers]
    n_numbers = sum(column.counts[text] for text in column.numbers)
    n_texts = sum(column.counts[text] for text in texts)
    is_measured = len(column.numbers) > _MEASURED or _NO_ANSWERS.issuperset(map(str.casefold, texts))
    is_mostly_numbers = n_numbers >= max(_MOSTLY * (column.n - n_texts), column.n / 2)
    are_codes = len(texts) <= _MOST_CODES and is_measured and is_mostly_numbers
    if not column.numbers or not are_codes:
        return column
    found = {
        text: x for text, x in column.numbers.items() if _CODES.fullmatch(text) and text in column.common
    }
    rest = [x for text, x in column.numbers.items() if text not in found]
    below = {text for text, x in found.items() if x < 0 <= min(rest, default=-1)}
    above = {text for text, x in found.items() if x > 0 and rest and x > _FAR * max(rest)}
    doubtful: set[str] = set()
    if _go_on_below(column, {text: found[text] for text in below}, rest):
        doubtful, below = below, set()
    column = replace(column, doubtful=tuple(text for text in found if text in doubtful))
    codes = (*texts, *(text for text in found if text in below | above))
    if not codes:
        return column
    n_codes = sum(column.counts[text] for text in codes)
    counts = {text: n for text, n in column.counts.items() if text not in codes}
    return replace(
        column,
        counts=counts,
        numbers={text: x for text, x in column.numbers.items() if text in counts},
        missing=column.missing + n_codes,
        missing_by_code=n_codes,
        respelled={**column.respelled, **dict.fromkeys(codes, "")},
        codes=codes,
    )


def _go_on_below(column: Counted, below: Mapping[str, float], rest: Sequence[float]) -> bool:
    """Return True if negative numbers go on where the other numbers end, as on a scale from -2 to 2.

    Up to ``_MOST_NEXT`` rare numbers go on by chance: -1 below a number of children.
    """
    numbers = sorted({*rest})
    step = max(1.0, min((high - low for low, high in pairwise(numbers)), default=1.0))
    end, next_below = min(numbers, default=-math.inf), set[str]()
    for text in sorted(below, key=below.__getitem__, reverse=True):
        if end - below[text] <= step:
            end = below[text]
            next_below.add(text)
    n_cells = sum(column.counts[text] for text in next_below)
    return len(next_below) > _MOST_NEXT or n_cells > _SHARE_NEXT * column.n


def joined(column: Counted) -> Counted:
    """Join spellings of a value of at least ``RARE`` records each, to the most frequent spelling."""
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
