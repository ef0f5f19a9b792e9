"""Coders of a table of readings, or of sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import DataError
from anonymize.table import Codes, Ints, LeafSets
from jobs.data.arrow import pa, pc
from jobs.data.coders import (
    BAD,
    DROPPED,
    EMPTY,
    Categorical,
    CodedColumn,
    Coder,
    ColumnPass,
    Unlisted,
    domain_of,
    missing_cell,
    numbered,
)
from jobs.data.table_file import about_value, shown
from jobs.file.values import sensitive_coder
from jobs.sequences.domains import places_of, times_of
from jobs.sequences.times import Times, inside
from jobs.task import Task

SHIFT = 1 << 62
"""Shift of ticks that makes all codes of times non-negative."""


def coder(task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
    """Return the rule of a column. A missing cell drops no row: its final code is -1."""
    column = task.job.columns[name]
    if column.role == "sensitive":
        return Lacking(sensitive_coder(task, name, found))
    if column.role == "plain":
        return Verbatim()
    if column.role == "time":
        times = times_of(task)
        assert times is not None
        return Lacking(Ticks(times, is_number=column.numeric is not None))
    places = found if found is not None else places_of(task)
    index = None if places is None else numbered(places)
    if column.role == "items":
        return Lacking(SetCells(index, column.separator or ";", column.may_differ))
    return Lacking(Unlisted(DROPPED, column.may_differ) if index is None else Categorical(index, DROPPED))


@dataclass(frozen=True)
class Lacking:
    """Wrapper of a rule that would drop rows with a missing cell. The row stays, with the final code -1."""

    rule: Coder
    of_numbers: ClassVar[bool] = False

    def begin(self) -> _Lacking:
        return _Lacking(self.rule.begin())

    def lists(self, text: str) -> bool:
        return self.rule.lists(text)

    def refused(self, name: str, value: str, place: str) -> DataError:
        return self.rule.refused(name, value, place)


@dataclass
class _Lacking:
    """Column pass with codes shifted by one until finished; 0 is missing."""

    rule: ColumnPass

    def codes(self, values: Sequence[str]) -> Ints:
        codes = self.rule.codes(values)
        return np.where(codes == DROPPED, 0, np.where(codes == BAD, BAD, codes + 1))

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return self.rule.outside(values)

    def finished(self, codes: Codes) -> CodedColumn:
        there = codes > 0
        column = self.rule.finished(codes[there] - 1)
        whole = np.full(len(codes), -1, dtype=np.int64)
        whole[there] = column.codes
        return replace(column, codes=whole)


@dataclass(frozen=True)
class Verbatim:
    """Rule for texts as they stand, numbered as they come; also an empty text."""

    of_numbers: ClassVar[bool] = False

    def begin(self) -> _Texts:
        return _Texts()

    def lists(self, text: str) -> bool:
        return False

    def refused(self, name: str, value: str, place: str) -> DataError:
        return missing_cell(name, value, place)


@dataclass
class _Texts:
    index: dict[str, int] = field(default_factory=dict, repr=False)

    def codes(self, values: Sequence[str]) -> Ints:
        return np.array([self.index.setdefault(value, len(self.index)) for value in values], dtype=np.int64)

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.zeros(len(values), dtype=bool)

    def finished(self, codes: Codes) -> CodedColumn:
        return CodedColumn(codes, tuple(self.index))


@dataclass(frozen=True)
class Ticks:
    """Times (:mod:`jobs.sequences.times`): codes are ticks plus SHIFT."""

    times: Times
    is_number: bool
    of_numbers: ClassVar[bool] = False

    def begin(self) -> Ticks:
        return self

    def codes(self, values: Sequence[str]) -> Ints:
        texts = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
        missing = np.isin(np.array(texts.to_pylist(), dtype=object), list(EMPTY))
        ticks = self.times.ticks(texts.take(pa.array(np.flatnonzero(~missing))))
        there = inside(self.times, ticks)
        codes = np.full(len(values), DROPPED, dtype=np.int64)
        codes[~missing] = np.where(there, np.where(there, ticks, 0) + SHIFT, BAD)
        return codes

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.zeros(len(values), dtype=bool)

    def finished(self, codes: Codes) -> CodedColumn:
        return CodedColumn(codes)

    def lists(self, text: str) -> bool:
        return bool(self.codes([text])[0] >= 0)

    def refused(self, name: str, value: str, place: str) -> DataError:
        hint = about_value(value, is_number=True) if self.is_number else _LOCAL
        message = f"column {name} has a time outside the column's domain, or a time that cannot be read"
        private = f"{place}: {shown(value)}{hint}"
        return DataError(
            "data-outside-domain", message, column=name, private=private, remedy=self.times.remedy
        )


_LOCAL = "; write local times without a zone, e.g. 2026-01-31T14:05"


@dataclass(frozen=True)
class SetCells:
    """Rule for cells with several values. ``index``: the place of each, in NFC; None: the domain comes from the
    data.

    distinct:  two spellings of a value are two values.
    """

    index: Mapping[str, int] | None
    separator: str
    distinct: bool = False
    of_numbers: ClassVar[bool] = False

    def begin(self) -> _Sets:
        return _Sets(self)

    def lists(self, text: str) -> bool:
        return self.index is not None and text in self.index

    def split(self, cell: str) -> list[str]:
        """Return the values of a cell, with repetitions."""
        parts = (part.strip() for part in cell.split(self.separator))
        return [part for part in parts if part not in EMPTY]

    def refused(self, name: str, value: str, place: str) -> DataError:
        unknown = [part for part in self.split(value) if self.index is not None and part not in self.index]
        return DataError(
            "data-unknown-value",
            f"column {name} has a value that the column's domain does not list",
            column=name,
            private=f"{place}: {shown(unknown[0] if unknown else value)}",
        )


@dataclass
class _Sets:
    """Codes are numbers of the sets found, in order of appearance."""

    rule: SetCells
    index: dict[str, int] = field(default_factory=dict, repr=False)
    found: dict[tuple[int, ...], int] = field(default_factory=dict, repr=False)

    def codes(self, values: Sequence[str]) -> Ints:
        return np.array([self._code(value) for value in values], dtype=np.int64)

    def _code(self, cell: str) -> int:
        places = sorted({self._place(value) for value in self.rule.split(cell)})
        if not places:
            return DROPPED
        return BAD if places[0] == BAD else self.found.setdefault(tuple(places), len(self.found))

    def _place(self, value: str) -> int:
        if self.rule.index is None:
            return self.index.setdefault(value, len(self.index))
        return self.rule.index.get(value, BAD)

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.zeros(len(values), dtype=bool)

    def finished(self, codes: Codes) -> CodedColumn:
        """Return the column; values of a domain from the data are numbered in order."""
        starts = np.cumsum([0, *map(len, self.found)])
        leaves = np.array([leaf for each in self.found for leaf in each], dtype=np.int64)
        domain = domain_of(self.index, self.rule.distinct)
        if domain:
            places = {value: i for i, value in enumerate(domain)}
            leaves = np.array([places[value] for value in self.index], dtype=np.int64)[leaves]
        return CodedColumn(codes, domain, LeafSets(leaves, starts))
