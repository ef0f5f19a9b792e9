"""Unfit values, collected over a whole table, so that its owner reads of all values at once.

Everybody else reads only the message on the first value of the first column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.errors import DataError
from anonymize.table import Codes, Ints
from jobs.data.arrow import pa, pc
from jobs.data.coders import BAD, EMPTY, Coder, as_missing, numbers_of
from jobs.data.counted import counted
from jobs.data.table_file import as_read
from jobs.data.table_file import shown as printed

MOST_SHOWN = 20
"""Largest number of shown values of a column; the first values are shown."""
MOST_COUNTED = 100_000
"""Largest number of further values told apart in a column. Beyond, the message says that there are more."""
_MOST_READ_AGAIN = 1_000_000
"""Last row in which a replaced value is looked up again."""
_MOST_KEPT = 4096
"""Characters kept of a value."""
_OUTSIDE = "data-outside-domain"
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_DECIMAL = 'say `decimal: ","` under `data`'
_POINTS_AND_COMMA = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+")
_COMMAS = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+")
_QUOTED = re.compile(r"'[^']*'")


@dataclass
class _Shown:
    """Value shown to the owner: its first row, from 1, and the number of its rows.

    mark:  the text in the table, of a missing cell and of a value that the owner's words replace.
    """

    value: str = field(repr=False)
    first: int = field(repr=False)
    n_rows: int = field(default=0, repr=False)
    mark: str = field(default="", repr=False)


@dataclass
class Unfit:
    """Values of a column refused by its coder.

    read:    returns texts of numbers with a decimal point.
    shown:   the first values, by hash; of all numbers with an unexpected decimal comma only the first.
    comma:   the first number with an unexpected decimal comma.
    commas:  hashes of further numbers with an unexpected decimal comma.
    others:  hashes of further values.
    n_rows:  rows with a refused value.
    n_read:  all rows.
    fits:    True if a row has a value that is neither refused nor missing.
    numbers: True for a column of numbers.
    ends:    the smallest and the greatest refused number.
    """

    name: str
    coder: Coder
    read: Callable[[Sequence[str]], Sequence[str]]
    shown: dict[int, _Shown] = field(default_factory=dict, repr=False)
    comma: _Shown | None = field(default=None, repr=False)
    commas: set[int] = field(default_factory=set, repr=False)
    others: set[int] = field(default_factory=set, repr=False)
    n_rows: int = field(default=0, repr=False)
    n_read: int = field(default=0, repr=False)
    fits: bool = field(default=False, repr=False)
    numbers: bool = False
    ends: tuple[float, float] = field(default=(math.inf, -math.inf), repr=False)

    def add(self, texts: Callable[[], Sequence[str]], places: Ints, codes: Codes, row: int) -> None:
        """Take in a batch: its texts, each row's place of its text, and the codes. row: number of rows before."""
        self.n_read += len(places)
        bad = np.flatnonzero(codes == BAD)
        if self.fits and not bad.size:
            return
        values = texts()
        if not self.fits:
            there = np.flatnonzero(np.bincount(places[codes >= 0]))
            self.fits = any(values[place] not in EMPTY for place in there.tolist())
        if not bad.size:
            return
        self.n_rows += bad.size
        found, first, times = np.unique(places[bad], return_index=True, return_counts=True)
        for i in np.argsort(first).tolist():
            self._add(values[found[i]], row + int(bad[first[i]]) + 1, int(times[i]))
        if self.numbers:
            self._widen([values[place] for place in found.tolist()])

    def _add(self, value: str, row: int, times: int) -> None:
        key = hash(value)
        if self._has_comma(value):
            if self.comma is not None:
                if key not in self.shown and len(self.commas) <= MOST_COUNTED:
                    self.commas.add(key)
                self.comma.n_rows += times
                return
            if len(self.shown) < MOST_SHOWN:
                self.comma = self.shown[key] = _Shown(value[:_MOST_KEPT], row)
                self.numbers = True
        if key not in self.shown and len(self.shown) < MOST_SHOWN:
            self.shown[key] = _Shown(value[:_MOST_KEPT], row)
            self.numbers |= self._refused(self.shown[key], "").error_id == _OUTSIDE
        if key in self.shown:
            self.shown[key].n_rows += times
        elif len(self.others) <= MOST_COUNTED:
            self.others.add(key)

    def _has_comma(self, value: str) -> bool:
        """Return whether a value is a number with a decimal comma, and the table's numbers have points."""
        return (
            self.coder.of_numbers
            and _DECIMAL_COMMA.fullmatch(value) is not None
            and self.read([value])[0] == value
        )

    @property
    def _commas_alone(self) -> bool:
        """True if every refused value is a number with an unexpected decimal comma."""
        return self.comma is not None and self.comma.n_rows == self.n_rows

    def _widen(self, texts: Sequence[str]) -> None:
        numbers = numbers_of(pc.utf8_trim_whitespace(pa.array(self.read(texts), pa.string())))
        numbers = numbers[np.isfinite(numbers)]
        least, greatest = self.ends
        self.ends = min([least, *numbers.tolist()]), max([greatest, *numbers.tolist()])

    def _refused(self, shown: _Shown, place: str) -> DataError:
        return self.coder.refused(self.name, shown.value, place)

    def read_marks(self, written: Callable[[str, int], str]) -> None:
        """Look up the texts of missing cells and of replaced values.

        written:  returns the text in a column and row of the table. Each text takes a pass up to its row.
        """
        for each in self.shown.values():
            is_empty = each.value in EMPTY
            if is_empty or each.first <= _MOST_READ_AGAIN:
                own = written(self.name, each.first)
                each.mark = own if is_empty or as_read(own)[:_MOST_KEPT] != as_read(each.value) else ""

    def error(self, where: Mapping[int, str]) -> DataError:
        """Return the error of the first value; its owner reads of all values. where: the place of each row."""
        first, *_ = (self._refused(each, where[each.first]) for each in self.shown.values())
        remedy = f"{_DECIMAL}, or write numbers with a point" if self._commas_alone else first.remedy
        return _with_private(first, self._words(where), remedy)

    def _words(self, where: Mapping[int, str]) -> str:
        shown = list(self.shown.values())
        told = [self._told(each, where[each.first]) for each in shown]
        if len(shown) == 1 and not self.commas:
            text = "".join(told[0])
            return text if self.n_rows == 1 else f"{text} ({self._rows})"
        seen: set[str] = set()
        each = []
        for (value, hint), own in zip(told, shown, strict=True):
            kind = _QUOTED.sub("", hint)  # hints that differ in quoted values alone are of one kind
            each.append(f"{value}{'' if kind in seen else hint} ({counted(own.n_rows, 'row', 'rows')})")
            seen.add(kind)
        if self.others:
            each.append(f"and {self._n_others} more")
        return f"{self._n_values} different values in {self._rows}: {' | '.join(each)}{self._hints}"

    def _told(self, each: _Shown, place: str) -> tuple[str, str]:
        """Return a value with its place, and the hint on the value."""
        if each.value in EMPTY:
            return f"{place}: {as_missing(each.mark)}", ""
        if each is self.comma:
            more = counted(len(self.commas), "more value", "more values")
            value = (
                f"{place}: {printed(each.value)}{f' and {more} with a decimal comma' if self.commas else ''}"
            )
            point = printed(each.value.replace(",", "."))
            return value, f"; write {point}, with a decimal point (or no thousands separator), or {_DECIMAL}"
        value, text = f"{place}: {printed(each.value)}", self._refused(each, place).private
        if not text.startswith(value):
            return text, ""
        own = f"{place}: {printed(each.mark)}, read as {printed(each.value)}" if each.mark else value
        return own, text.removeprefix(value) or self._about_thousands(each.value.strip())

    def _about_thousands(self, text: str) -> str:
        """Return a hint on a number with separated thousands that the table's form of numbers does not read."""
        if not self.coder.of_numbers or self.read([text])[0] != text:
            return ""
        if _POINTS_AND_COMMA.fullmatch(text):
            return f"; points separate thousands: {_DECIMAL}, which reads such numbers"
        return "; commas separate thousands: write numbers without them" if _COMMAS.fullmatch(text) else ""

    @property
    def _rows(self) -> str:
        return f"{self.n_rows:,} of {counted(self.n_read, 'row', 'rows')}"

    @property
    def _n_others(self) -> str:
        n = len(self.others)
        return f"{n:,}" if n <= MOST_COUNTED else f"more than {MOST_COUNTED:,}"

    @property
    def _n_values(self) -> str:
        n = len(self.shown) + len(self.commas) + len(self.others)
        return f"{n:,}" if max(len(self.others), len(self.commas)) <= MOST_COUNTED else f"more than {n - 1:,}"

    @property
    def _hints(self) -> str:
        least, greatest = self.ends
        numbers = f" | smallest number {least:.15g}, greatest {greatest:.15g}" if least <= greatest else ""
        if self.fits or self._commas_alone:
            return numbers
        return (
            f"{numbers} | no value of the column fits as written: the taxonomy or domain may be that of another "
            "column"
        )


def rows_of(unfit: Sequence[Unfit]) -> list[int]:
    """Return the rows with places needed by :func:`error_of`, ascending."""
    return sorted({each.first for column in unfit for each in column.shown.values()})


def error_of(unfit: Sequence[Unfit], where: Mapping[int, str], file: str) -> DataError:
    """Return the error of the first column, with all columns for the owner.

    where:  the place of each row.
    file:   name of the file of the rows; empty for a table that is no file.
    """
    first, *others = (column.error(where) for column in unfit)
    more = "".join(f" | column {other.column}: {other.private}" for other in others)
    return _with_private(first, f"{file}{', ' if file else ''}{first.private}{more}", first.remedy)


def _with_private(error: DataError, private: str, remedy: str) -> DataError:
    return DataError(
        error.error_id,
        str(error),
        column=error.column,
        remedy=remedy,
        private=private,
        cause=error.cause,
    )
