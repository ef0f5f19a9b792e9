"""Coders: rules, one for each column, that turn the text of a cell into a code.

A source applies the rules where its table is. A source read by this process calls :meth:`Coder.begin` batch by
batch; an engine may turn a rule's fields into a query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from anonymize.dates import DateGrid, without_zone
from anonymize.errors import DataError
from anonymize.grid import Grid, plain
from anonymize.table import Codes, Ints, LeafSets, SetRule, narrowest
from anonymize.taxonomy import MISSING, Taxonomy
from jobs.data.arrow import pa, pc
from jobs.data.table_file import about_value, as_read, shown
from jobs.data.texts import alike, are_alike

DROPPED, BAD = -1, -2
"""Codes of cells that drop their row, and of cells that stop the reading."""
EMPTY = frozenset({"", MISSING})
"""Texts of a missing cell."""
_ZERO_FRACTION = re.compile(r"\.0+$")


def widened(ends: str) -> str:
    """Return the remedy for a value outside a domain. ends: the keys of the domain's ends."""
    return (
        f"correct the value, or widen {ends}; if the value means a missing cell, list the value in `missing`, beside "
        "the path or query in `data`"
    )


@dataclass(frozen=True)
class CodedColumn:
    """Column after pass 1.

    codes:   integers in the narrowest type, shape (n,): leaf numbers, places in a domain, or numbers of
             sets.
    domain:  the values found, in sorted order, if the job leaves the domain to its data; else empty.
    sets:    of a set-valued column, its distinct cells.
    """

    codes: Codes = field(repr=False)
    domain: tuple[str, ...] = field(default=(), repr=False)
    sets: LeafSets | None = field(default=None, repr=False)


class ColumnPass(Protocol):
    """Coder at work on a column, batch after batch."""

    def codes(self, values: Sequence[str]) -> Ints:
        """Return the code of each text: from 0, DROPPED or BAD."""
        ...

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        """Return the texts outside the domain, regardless of their codes, for the owner's own count."""
        ...

    def finished(self, codes: Codes) -> CodedColumn:
        """Return the whole column. ``codes``: of the kept rows. Raises TwoSpellings."""
        ...


class Coder(Protocol):
    """Rule of a column. of_numbers: the rule reads numbers, with a decimal point."""

    @property
    def of_numbers(self) -> bool: ...

    def begin(self) -> ColumnPass:
        """Start a pass over the column."""
        ...

    def lists(self, text: str) -> bool:
        """Return True if a text other than a missing cell is a value of the domain that the job states."""
        ...

    def refused(self, name: str, value: str, place: str) -> DataError:
        """Return the error of a value with code BAD. ``place``: of the value; only the owner sees place and value."""
        ...


@dataclass(frozen=True)
class Categorical:
    """Rule for values of a taxonomy or a listed domain; ``missing`` is the code of a missing cell.

    index:  the code of each value, in Unicode NFC.
    other:  the code of an unlisted value. In DP jobs an error would disclose the value.
    moved:  a missing cell gets the code of a listed value, and so counts as outside the domain.
    """

    index: Mapping[str, int]
    missing: int
    other: int = BAD
    moved: bool = False
    of_numbers: ClassVar[bool] = False

    def begin(self) -> Categorical:
        return self

    def codes(self, values: Sequence[str]) -> Ints:
        return np.array([self._code(value) for value in values], dtype=np.int64)

    def _code(self, value: str) -> int:
        return self.missing if value in EMPTY else self.index.get(value, self.other)

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.array([self._is_outside(value) for value in values], dtype=bool)

    def _is_outside(self, value: str) -> bool:
        return self.moved if value in EMPTY else value not in self.index

    def lists(self, text: str) -> bool:
        return text not in EMPTY and text in self.index

    def finished(self, codes: Codes) -> CodedColumn:
        return CodedColumn(codes)

    def refused(self, name: str, value: str, place: str) -> DataError:
        if value in EMPTY:
            return missing_cell(name, value, place)
        private = (
            f"{place}: {shown(value)}{about_value(value, is_number=False)}{near_words(value, self.index)}"
        )
        message = f"column {name} has a value that the column's taxonomy or domain does not list"
        return DataError("data-unknown-value", message, column=name, private=private)


def near_words(value: str, listed: Iterable[str]) -> str:
    """Return the hint that a value would fit in another spelling, or an empty text."""
    return near(value, frozenset(listed)).hint


@dataclass(frozen=True)
class Near:
    """Listed value that a text stands for. hint: for the owner; empty without such a value."""

    value: str | None = field(default=None, repr=False)
    hint: str = field(default="", repr=False)


def near(text: str, listed: frozenset[str]) -> Near:
    """Return the listed value with another spelling of a text, or no value."""
    plain_text = text.strip()
    if plain_text in listed:
        return Near(plain_text, "; without surrounding blanks the value would fit")
    if _ZERO_FRACTION.search(plain_text) and (whole := _ZERO_FRACTION.sub("", plain_text)) in listed:
        return Near(whole, f"; the value would fit as {shown(whole)} (without `.0`)")
    if plain_text.isdigit() and (padded := _padded(plain_text, listed)) is not None:
        return Near(padded, f"; the value would fit as {shown(padded)} (leading zeros were lost)")
    found = next((each for each in listed if are_alike(each, text)), None)
    if found is None:
        return Near()
    if found.casefold() == plain_text.casefold():
        return Near(found, f"; the value would fit as {shown(found)} (upper and lower case differ)")
    return Near(found, f"; the value is a different spelling of {shown(found)}")


def _padded(digits: str, listed: frozenset[str]) -> str | None:
    """Return the only listed number that differs from some digits in leading zeros alone, or None."""
    found = [each for each in listed if each.isdigit() and each.lstrip("0") == digits.lstrip("0")]
    return found[0] if len(found) == 1 else None


def as_missing(written: str) -> str:
    """Return a missing cell as the table has the cell, with the reason, for the owner."""
    return shown(written) if written.strip() in EMPTY else f"{shown(written)} (counts as missing)"


def missing_cell(name: str, value: str, place: str) -> DataError:
    """Return the error of a missing cell in a column without missing cells."""
    private = f"{place}: {shown(value)}{about_value(value, is_number=False)}"
    return DataError("data-missing-value", f"column {name} has a missing cell", column=name, private=private)


def missing_id(name: str, place: str, written: str) -> DataError:
    """Return the error of a row without an id where rows with the same id belong together. written: its cell."""
    private = f"{place}: {as_missing(written)}"
    return DataError("data-missing-id", f"id column {name} has a missing cell", column=name, private=private)


def taxonomy_coder(taxonomy: Taxonomy, *, drop: bool) -> Categorical:
    """Return the rule of a column with a taxonomy. ``drop``: a missing cell drops its row; else it is the leaf
    `?`.
    """
    index = {as_read(value): leaf for value, leaf in taxonomy.leaf_index().items()}
    return Categorical(index, DROPPED if drop else index[MISSING])


def numbered(domain: Sequence[str]) -> dict[str, int]:
    """Return the place of every value of a domain, by its form in NFC."""
    return {as_read(value): i for i, value in enumerate(domain)}


def listed_coder(index: Mapping[str, int], missing: int) -> Categorical:
    """Return the rule of listed values. A missing cell is the value `?`, or an empty value, if listed."""
    listed = [index[mark] for mark in (MISSING, "") if mark in index]
    return Categorical(index, listed[0] if listed else missing)


class TwoSpellings(Exception):
    """Two spellings of a value in a column. texts: both; for the owner only."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.texts = texts


@dataclass(frozen=True)
class Unlisted:
    """Rule for a domain that a single holder's job leaves to its data; ``missing`` as in :class:`Categorical`,
    None: `?`.

    distinct:  two spellings of a value are two values (:mod:`jobs.data.texts`).
    """

    missing: int | None
    distinct: bool = False
    of_numbers: ClassVar[bool] = False

    def begin(self) -> _Numbered:
        return _Numbered(self.missing, self.distinct)

    def lists(self, text: str) -> bool:
        return False

    def refused(self, name: str, value: str, place: str) -> DataError:
        return missing_cell(name, value, place)


def domain_of(found: Iterable[str], distinct: bool) -> tuple[str, ...]:
    """Return the values found, in order. Raises TwoSpellings for two spellings of a value, unless ``distinct``."""
    domain = tuple(sorted(found))
    two = None if distinct else alike(domain)
    if two is not None:
        raise TwoSpellings(*two)
    return domain


@dataclass
class _Numbered:
    """Column pass that numbers values as they come, and in sorted order at the end."""

    missing: int | None
    distinct: bool = field(repr=False)
    index: dict[str, int] = field(default_factory=dict, repr=False)

    def codes(self, values: Sequence[str]) -> Ints:
        return np.array([self._code(value) for value in values], dtype=np.int64)

    def _code(self, value: str) -> int:
        if value not in EMPTY:
            return self.index.setdefault(value, len(self.index))
        return self.index.setdefault(MISSING, len(self.index)) if self.missing is None else self.missing

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.zeros(len(values), dtype=bool)

    def finished(self, codes: Codes) -> CodedColumn:
        domain = domain_of(self.index, self.distinct)
        place = {value: i for i, value in enumerate(domain)}
        places = np.array([place[value] for value in self.index], dtype=narrowest(len(domain)))
        return CodedColumn(places[codes], domain)


@dataclass(frozen=True)
class Numeric:
    """Rule for cells of a grid. ``clamp``: a number outside counts in the nearest cell, a text that is no number as
    missing.

    missing:  the code of a missing cell. A code within the grid makes missing cells count as outside; the
              code after the grid's cells gives missing cells a separate value.
    other:    without ``clamp``, the code of any other text that is no number of the domain.
    form:     the form of dates in the table, if the owner states a form, for errors.
    """

    grid: Grid
    clamp: bool = False
    missing: int = DROPPED
    other: int = BAD
    form: str | None = None

    @property
    def of_numbers(self) -> bool:
        """True but for dates: points in a date are no signs of a number."""
        return not isinstance(self.grid, DateGrid)

    def begin(self) -> Numeric:
        return self

    def codes(self, values: Sequence[str]) -> Ints:
        missing, numbers = self._parsed(values)
        codes = np.where(missing, self.missing, BAD)
        cells = self.grid.cells(numbers)
        codes[~missing] = np.where(cells < 0, self._outside(numbers), cells)
        return codes

    def _parsed(self, values: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return the missing texts, and the numbers of all remaining texts; NaN for a text that is no number."""
        text = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
        missing = pc.is_in(text, pa.array(sorted(EMPTY), pa.string()))
        return missing.to_numpy(zero_copy_only=False), numbers_in(self.grid, text.filter(pc.invert(missing)))

    def _outside(self, numbers: NDArray[np.float64]) -> Ints:
        """Return codes for numbers outside the domain."""
        if not self.clamp:
            return np.full(len(numbers), self.other, dtype=np.int64)
        ends = np.where(numbers < float(self.grid.edges[0]), 0, self.grid.n_cells - 1)
        return np.where(np.isnan(numbers), self.missing, ends)

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        missing, numbers = self._parsed(values)
        found = missing & (0 <= self.missing < self.grid.n_cells)
        found[~missing] = self.grid.cells(numbers) < 0
        return found

    def lists(self, text: str) -> bool:
        return text not in EMPTY and not self.outside([text])[0]

    def finished(self, codes: Codes) -> CodedColumn:
        return CodedColumn(codes)

    def refused(self, name: str, value: str, place: str) -> DataError:
        if value.strip() in EMPTY:
            return missing_cell(name, value, place)
        private = f"{place}: {shown(value)}{self.about(value)}"
        kind, remedy = (
            ("date", widened("`from` and `to`")) if isinstance(self.grid, DateGrid) else ("number", "")
        )
        message = f"column {name} has a value outside the column's domain, or not a {kind}"
        return DataError("data-outside-domain", message, column=name, private=private, remedy=remedy)

    def about(self, value: str) -> str:
        """Return a hint for a value outside the domain, or nothing."""
        if not isinstance(self.grid, DateGrid) or not np.isnan(self.grid.number(value.strip())):
            return about_value(value, is_number=not isinstance(self.grid, DateGrid))
        if self.grid.is_impossible(value.strip()):
            return "; the calendar has no such day, or the clock no such time"
        if (local := without_zone(value.strip())) and not np.isnan(self.grid.number(local)):
            return "; the time has a zone, which no job reads: give dates, or local times without a zone"
        form = self.grid.form if self.form is None else f"{self.form} (`dates` under `data`)"
        return about_value(value, is_number=False) or f"; the value is not a date written as {form}"


def in_form(coder: Coder, form: str | None) -> Coder:
    """Return the rule with errors that name the form of dates in the table. form: None for the job's form."""
    return coder if form is None or not isinstance(coder, Numeric) else replace(coder, form=form)


def numbers_in(grid: Grid, text: pa.Array) -> NDArray[np.float64]:
    """Parse the numbers of a grid, or its dates; NaN for an invalid text."""
    if not isinstance(grid, DateGrid):
        return numbers_of(text)
    coded = text.dictionary_encode()
    found = np.array(
        [grid.number(each) for each in coded.dictionary.to_pylist()] or [np.nan], dtype=np.float64
    )
    numbers: NDArray[np.float64] = found[coded.indices.to_numpy(zero_copy_only=False)]
    return numbers


def numbers_of(text: pa.Array) -> NDArray[np.float64]:
    """Parse numbers; NaN where a text is no number."""
    try:
        return np.asarray(pc.cast(text, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except pa.ArrowInvalid:
        return np.array([_number(value) for value in text.to_pylist()], dtype=np.float64)


def canonical(values: Sequence[str], grid: Grid | None = None) -> list[str]:
    """Return numbers in their canonical spelling, for any spelling of the texts.

    values:  texts of numbers, or of dates; any other text is `?`. A number is written as the shortest decimal for
             the same double, without exponent, plus sign and redundant zeros; a date is written in the job's form.
    grid:    of the column.
    """
    text = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
    numbers = numbers_of(text) if grid is None else numbers_in(grid, text)
    return [MISSING if math.isnan(number) else _printed(number, grid) for number in numbers.tolist()]


def _printed(number: float, grid: Grid | None) -> str:
    return grid.text(int(number)) if isinstance(grid, DateGrid) else plain(Decimal(repr(number)))


def _number(text: str) -> float:
    try:
        return float(pc.cast(pa.scalar(text), pa.float64()).as_py())
    except pa.ArrowInvalid:
        return float("nan")


@dataclass(frozen=True)
class Sets:
    """Cells with several values of ``items``, written as ``rule`` says."""

    items: Categorical
    rule: SetRule
    of_numbers: ClassVar[bool] = False

    def begin(self) -> _SetsFound:
        return _SetsFound(self.items, self.rule)

    def lists(self, text: str) -> bool:
        return self.items.lists(text)

    def refused(self, name: str, value: str, place: str) -> DataError:
        return self.items.refused(name, value, place)


@dataclass
class _SetsFound:
    """Codes are numbers of the sets of leaves found, in order of appearance."""

    items: Categorical
    rule: SetRule
    found: dict[tuple[int, ...], int] = field(default_factory=dict, repr=False)

    def codes(self, values: Sequence[str]) -> Ints:
        return np.array([self._code(value) for value in values], dtype=np.int64)

    def _code(self, cell: str) -> int:
        leaves = [leaf for leaf in self.items.codes(self._split(cell)).tolist() if leaf >= 0]
        kept = list(dict.fromkeys(leaves))[: self.rule.max_items]
        return self.found.setdefault(tuple(sorted(kept)), len(self.found)) if kept else DROPPED

    def _split(self, cell: str) -> list[str]:
        """Return the values of a cell; a cell without values is a single missing value."""
        return [item.strip() for item in cell.split(self.rule.separator) if item.strip()] or [MISSING]

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.array([bool(self.items.outside(self._split(v)).any()) for v in values], dtype=bool)

    def finished(self, codes: Codes) -> CodedColumn:
        starts = np.cumsum([0, *map(len, self.found)])
        leaves = np.array([leaf for s in self.found for leaf in s], dtype=np.int64)
        return CodedColumn(codes, sets=LeafSets(leaves, starts))
