"""Columns of dates: a public domain of days cut into cells of days, weeks, months or years.

A date is the number of its day, or of its second if the time of day is kept: a grid (:mod:`anonymize.grid`) with
edges that print as dates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, cached_property
from typing import Any

from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.taxonomy import Nested

ISO = "YYYY-MM-DD"
_DAY = 86_400
_FIRST_OF_MONTH = 28
"""Last day that every month has."""
_MOST_CELLS = 1 << 20
_STEP = re.compile(r"([1-9][0-9]{0,4})(d|mo|y)")
_FORM = re.compile(r"(YYYY[-./]?MM[-./]?DD|DD[-./]?MM[-./]?YYYY|MM[-./]?DD[-./]?YYYY)")
_TIME = re.compile(r"[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?")
_ZONED = re.compile(r"([^ T]+[ T][0-9:.]+) ?(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)")
_NAMES = {"YYYY": "year", "MM": "month", "DD": "day"}


def without_zone(text: str) -> str | None:
    """Return a date and time without the zone; None for a text without a zone. PostgreSQL and DuckDB write +00."""
    found = _ZONED.fullmatch(text)
    return None if found is None else found[1]


def is_step(text: str) -> bool:
    """Return True if a text is a number of days, months or years, for example 7d, 1mo or 1y."""
    return _STEP.fullmatch(text) is not None


def is_form(text: str) -> bool:
    """Return True if a text is a form of dates, for example DD.MM.YYYY."""
    return _FORM.fullmatch(text) is not None


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """Return the pattern of dates of a form. With separators, days and months may have one digit."""
    text = re.escape(form)
    for letters, name in _NAMES.items():
        digits = "{4}" if letters == "YYYY" else "{2}" if form.isalpha() else "{1,2}"
        text = text.replace(letters, f"(?P<{name}>[0-9]{digits})")
    return re.compile(text)


_ISO = _pattern(ISO)


def in_iso(text: str, form: str) -> str | None:
    """Return a date of a form as YYYY-MM-DD, with its time of day; None for any other text."""
    found = _pattern(form).match(text)
    if found is None or math.isnan(DateGrid((Decimal(1), Decimal(2)), form).number(text)):
        return None
    year, month, day = (int(found[name]) for name in ("year", "month", "day"))
    return f"{year:04d}-{month:02d}-{day:02d}{text[found.end() :]}"


@dataclass(frozen=True)
class DateGrid(Grid):
    """Cells of dates.

    form:   form of the dates, read and printed; YYYY-MM-DD is also read.
    timed:  True if a date has its time of day; otherwise the time is cut off.
    """

    form: str = ISO
    timed: bool = False

    @property
    def per_day(self) -> int:
        """Numbers in a day."""
        return _DAY if self.timed else 1

    def edge_label(self, i: int) -> str:
        """Print an edge, which is the beginning of a day."""
        return self._printed(date.fromordinal(int(self.edges[i]) // self.per_day))

    @cached_property
    def decimals(self) -> int:
        return 0

    def text(self, units: int) -> str:
        """Print a number as a date, with the time of day if kept."""
        day, second = divmod(units, self.per_day)
        printed = self._printed(date.fromordinal(day))
        if not self.timed:
            return printed
        return f"{printed} {(datetime.min + timedelta(seconds=second)).time().isoformat()}"

    def _printed(self, day: date) -> str:
        text = self.form.replace("YYYY", f"{day.year:04d}").replace("MM", f"{day.month:02d}")
        return text.replace("DD", f"{day.day:02d}")

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(dict.fromkeys((_pattern(self.form), _ISO)))

    def number(self, text: str) -> float:
        """Read a date, with or without a time of day. Return NaN for any other text."""
        for pattern in self._patterns:
            found = pattern.match(text)
            if found is not None:
                return self._number(found, text[found.end() :])
        return math.nan

    def is_impossible(self, text: str) -> bool:
        """Return True for a text in the form of a date, with a day or a time that does not exist."""
        found = next((match for pattern in self._patterns if (match := pattern.match(text))), None)
        has_form = found is not None and (found.end() == len(text) or _TIME.fullmatch(text, found.end()))
        return bool(has_form) and math.isnan(self.number(text))

    def _number(self, found: re.Match[str], rest: str) -> float:
        of_day = _TIME.fullmatch(rest)
        if rest and of_day is None:
            return math.nan
        try:
            day = date(*(int(found[name]) for name in ("year", "month", "day")))
            hour, minute, second = (int(part or 0) for part in of_day.groups()) if of_day else (0, 0, 0)
            time(hour, minute, second)
        except ValueError:
            return math.nan
        return day.toordinal() * self.per_day + (hour * 3600 + minute * 60 + second) * self.timed


def from_dates(first: date, below: date, step: str, form: str, *, timed: bool, column: str) -> DateGrid:
    """Return cells from a first day to the day before ``below``, of the given length; the last may be shorter.

    Raises SchemaError.
    """
    if not first < below:
        raise SchemaError(
            "grid-invalid",
            f"the dates of column {column} need `from` before `to`, and have `from: {first}` and `to: {below}`",
            column=column,
            remedy="correct `from` or `to`, the first day after the domain",
        )
    found = _STEP.fullmatch(step)
    assert found is not None, "job files are checked for it"
    n, unit = int(found[1]), found[2]
    if unit != "d" and first.day > _FIRST_OF_MONTH:
        raise SchemaError(
            "grid-invalid",
            f"the dates of column {column} begin on day {first.day}, which not every month has",
            column=column,
            remedy=f"begin on a day up to {_FIRST_OF_MONTH}, or take a step in days",
        )
    if unit == "d" and (below - first).days > n * _MOST_CELLS:  # the calendar has fewer months
        raise SchemaError(
            "grid-invalid",
            f"the dates of column {column} have more than {_MOST_CELLS} cells",
            column=column,
            remedy="take a larger step",
        )
    days = [first.toordinal()]
    while (after := _after(first, n * len(days), unit)) is not None and after < below:
        days.append(after.toordinal())
    per_day = _DAY if timed else 1
    return DateGrid(tuple(Decimal(day * per_day) for day in (*days, below.toordinal())), form, timed)


def _after(first: date, n: int, unit: str) -> date | None:
    """Return the day ``n`` days, months or years later; None beyond the calendar."""
    try:
        if unit == "d":
            return first + timedelta(days=n)
        years, month = divmod(first.month - 1 + n * (12 if unit == "y" else 1), 12)
        return (
            None if first.year + years > MAXYEAR else first.replace(year=first.year + years, month=month + 1)
        )
    except (OverflowError, ValueError):  # 29 February is not begun on: see _FIRST_OF_MONTH
        return None


@dataclass(frozen=True)
class _Level:
    """Unit of the calendar. step: its length. label: its printed form. begins: True for its first day."""

    step: str
    label: Callable[[date], str]
    begins: Callable[[date], bool]


def _week(day: date) -> str:
    """Return the ISO week of a day: 2024-W09. A week lies in the year of its Thursday."""
    year, week, _ = day.isocalendar()
    return f"{year:04d}-W{week:02d}"


LEVELS: Mapping[str, _Level] = {
    "decade": _Level(
        "10y", lambda d: f"{d.year // 10}0s", lambda d: (d.year % 10, d.month, d.day) == (0, 1, 1)
    ),
    "year": _Level("1y", lambda d: f"{d.year:04d}", lambda d: (d.month, d.day) == (1, 1)),
    "quarter": _Level(
        "3mo", lambda d: f"{d.year:04d}-Q{(d.month + 2) // 3}", lambda d: (d.month % 3, d.day) == (1, 1)
    ),
    "month": _Level("1mo", lambda d: f"{d.year:04d}-{d.month:02d}", lambda d: d.day == 1),
    "week": _Level("7d", _week, lambda d: d.weekday() == 0),
    "day": _Level("1d", date.isoformat, lambda d: True),
}
"""Units of the calendar by name, the coarsest first. Each lies in one unit of every coarser level, except a week."""


def are_nested(levels: Collection[str]) -> bool:
    """Return True if each unit of some levels lies in one unit of every coarser level. Weeks lie in no month."""
    return "week" not in levels or set(levels) <= {"week", "day"}


def calendar_cells(first: date, below: date, levels: Sequence[str], form: str, column: str) -> DateGrid:
    """Return the cells of the finest of some levels, coarsest first. Raises SchemaError for an end inside a unit."""
    finest = LEVELS[levels[-1]]
    for key, day in (("from", first), ("to", below)):
        if not finest.begins(day):
            raise SchemaError(
                "grid-invalid",
                f"the dates of column {column} are grouped by {levels[-1]}, but `{key}: {day}` lies inside a "
                f"{levels[-1]}",
                column=column,
                remedy=f"write the first day of a {levels[-1]}{', a Monday' if levels[-1] == 'week' else ''}",
            )
    return from_dates(first, below, finest.step, form, timed=False, column=column)


def calendar_tree(cells: DateGrid, levels: Sequence[str], root: str) -> Nested:
    """Return the tree of the cells, with a node for each unit of each level below the root."""
    tree: dict[str, Any] = {}
    days = [date.fromordinal(int(edge)) for edge in cells.edges[:-1]]
    *above, finest = (LEVELS[level].label for level in levels)
    for day in days:
        below = tree
        for label in above[:-1]:
            below = below.setdefault(label(day), {})
        leaves = below.setdefault(above[-1](day), []) if above else tree.setdefault(root, [])
        leaves.append(finest(day))
    return {root: tree} if above else tree
