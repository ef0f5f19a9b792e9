"""Wording of a table: its owner's names and texts, where they differ from the names and texts of the job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from anonymize.dates import in_iso
from anonymize.errors import DataError
from jobs.data.arrow import pa
from jobs.data.coders import EMPTY
from jobs.data.table_file import as_read

TRUE, FALSE = "true", "false"
"""Texts of truth values, as Parquet files and JSON have them."""
_COMMA_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+)?,[0-9]+")
_MOST_TOLD = 20
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})+")


@dataclass(frozen=True)
class Wording:
    """Owner's words.

    missing:  texts of a missing cell, besides an empty cell and `?`.
    true:     texts that mean `true`; false: texts that mean `false`.
    rename:   the job's name of a column, by the name in the table.
    values:   the job's value, by column (the job's name) and value in the table.
    dates:    the form of the dates in the table, by column (the job's name).
    decimal:  "," for numbers with a decimal comma, "." for a point; None: sniffed.
    """

    missing: tuple[str, ...] = ()
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    dates: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None

    def settings(self) -> dict[str, Any]:
        """Return the keys of a configuration for these words."""
        texts = {"missing": self.missing, "true": self.true, "false": self.false}
        given: dict[str, Any] = {key: list(found) for key, found in texts.items() if found}
        if self.rename:
            given["rename"] = dict(self.rename)
        if self.values:
            given["map"] = {name: dict(words) for name, words in self.values.items()}
        if self.dates:
            given["dates"] = dict(self.dates)
        return given if self.decimal is None else {**given, "decimal": self.decimal}

    def name(self, own: str) -> str:
        """Return the job's name of a column of the table."""
        return self._names.get(as_read(own), as_read(own))

    def check(self, names: Sequence[str]) -> None:
        """Refuse entries of `rename` that the table cannot follow. names: of the table. Raises DataError."""
        there = list(map(as_read, names))
        if not there:
            return  # the missing header is told instead
        for own, name in self.rename.items():
            if as_read(own) not in there and as_read(name) not in there:
                raise _refused(
                    f"`rename` has `{own}: {name}`, and the table has no column {own}; it has {', '.join(there)}",
                    "correct the entry under `rename`: first the name in the table, then the job's name",
                )
            if as_read(own) in there and list(map(self.name, there)).count(as_read(name)) > 1:
                raise _refused(
                    f"`rename` has `{own}: {name}`, and the table has another column {name}",
                    "give the column another name under `rename`, or leave the entry out",
                )

    def strange_dates(self, names: Sequence[str]) -> list[str]:
        """Return the entries of `dates` for no column of the table, in sentences. names: the job's names."""
        return [
            f"`dates.{name}` is for no column of the table: write the column's name in the job"
            for name in self.dates
            if name not in names
        ]

    def idle(self, texts: Mapping[str, Set[str] | None]) -> list[str]:
        """Return the entries of `map` that fit nothing, in sentences for the owner.

        texts:  the texts of each mapped column, as in the table; None for a column that the table lacks.
        """
        return [words for name, found in texts.items() for words in self._idle_in(name, found)]

    def _idle_in(self, name: str, found: Set[str] | None) -> list[str]:
        if found is None:
            return [f"`map.{name}` is for no column of the table: write the column's name in the job"]
        idle = [f"`{own}: {value}`" for own, value in self.values[name].items() if as_read(own) not in found]
        more = [f"and {len(idle) - _MOST_TOLD:,} more"] if len(idle) > _MOST_TOLD else []
        told = ", ".join([*idle[:_MOST_TOLD], *more])
        return (
            [f"entries of `map.{name}` change nothing, since no cell has the value: {told}"] if idle else []
        )

    @property
    def _names(self) -> dict[str, str]:
        return {as_read(own): as_read(name) for own, name in self.rename.items()}

    def worded(self, name: str, column: pa.DictionaryArray) -> pa.DictionaryArray:
        """Return a column with the job's values. name: the job's name."""
        if (read := self.reader(name)) is None:
            return column
        found = list(map(read, column.dictionary.to_pylist()))
        return pa.DictionaryArray.from_arrays(column.indices, found).cast(pa.string()).dictionary_encode()

    def reader(self, name: str) -> Callable[[str], str] | None:
        """Return the function from a text of the table to the job's text; None if all texts stay.

        name:  the job's name of the column.
        """
        words, form = self._words_of(name), self.dates.get(name)
        if form is not None:
            return lambda text: words.get(as_read(text), in_iso(as_read(text), form) or text)
        return (lambda text: words.get(as_read(text), text)) if words else None

    def mark(self, name: str, own: str) -> str | None:
        """Return a text of the table if the owner means a missing cell by the text, else None."""
        text = as_read(own)
        return text if text and self._words_of(name).get(text) in EMPTY else None

    @property
    def has_marks(self) -> bool:
        """True if some text of the table means a missing cell."""
        return bool(self.missing) or any(
            not EMPTY.isdisjoint(words.values()) for words in self.values.values()
        )

    def _words_of(self, name: str) -> dict[str, str]:
        """Return the replaced texts of a column; a stated value comes before a truth value and a missing mark."""
        words = dict.fromkeys(map(as_read, self.missing), "")
        words |= dict.fromkeys(map(as_read, self.true), TRUE) | dict.fromkeys(map(as_read, self.false), FALSE)
        return words | {as_read(own): value for own, value in self.values.get(name, {}).items()}


def _refused(private: str, remedy: str) -> DataError:
    return DataError(
        "data-missing-column", "the owner's `rename` does not fit the table", private=private, remedy=remedy
    )


AS_WRITTEN = Wording()


def with_point(texts: Sequence[str]) -> list[str]:
    """Return numbers with a decimal comma as numbers with a point. Points between thousands are left out.

    A text with a point that separates no thousands is no number in such a table: the text keeps a comma there, so
    that no reader takes the text for a number.
    """
    return [_with_point(text) for text in texts]


def _with_point(text: str) -> str:
    if _COMMA_NUMBER.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    return text.replace(".", "") if _THOUSANDS.fullmatch(text) else text.replace(".", ",")
