"""Codes of missing cells among the values of a column: -9, 999, 00.00.0000. All functions are pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from jobs.drafting.counting import Counted
from jobs.drafting.kinds import days_of, no_days

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


def _without_numbers(column: Counted) -> Counted:
    """Take values out of a column of numbers that look like codes of missing cells, each of ``RARE`` holders."""
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
    column = replace(column, doubtful=tuple(sorted(doubtful, key=found.__getitem__)))
    codes = (*texts, *(text for text in found if text in below | above))
    return _without(column, codes)


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


_MOST_NO_DAYS = 3


def without_codes(column: Counted) -> Counted:
    """Take values out of a column that look like codes of missing cells, or like days that are none."""
    found = no_days(column)
    if 0 < len(found) <= _MOST_NO_DAYS:
        dated = _without(column, found)
        if days_of(dated) is not None:
            return dated
    return _without_numbers(column)


def _without(column: Counted, codes: Sequence[str]) -> Counted:
    """Take values out of a column as codes."""
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
        codes=tuple(codes),
    )
