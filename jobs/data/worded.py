"""Table with its owner's words for names and values, whatever holds the rows."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property

from jobs.data.arrow import pa
from jobs.data.coding import Coded, Coding, Published
from jobs.data.streaming import Streamed, cell_of
from jobs.data.table_file import about_header, as_read, changed
from jobs.data.wording import Wording, with_point


class Worded(Streamed):
    """Table that is read in batches of text, in its owner's words.

    wording:  the owner's names and values, as the job has them.
    """

    wording: Wording

    @cached_property
    def _state(self) -> str:
        """Version of the table at the first pass."""
        return self.version()

    def require_unchanged(self, state: str) -> None:
        """Raise DataError if the table may have changed since the first pass began. state: its version then."""
        if self.version() != state:
            raise changed(self.called)

    def collapse(self, coding: Coding) -> Coded:
        state = self._state
        coded = super().collapse(coding)
        self.require_unchanged(state)
        return coded

    def relabel(self, published: Mapping[str, Published], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        state = self._state
        yield from super().relabel(published, names)
        self.require_unchanged(state)

    def notes(self) -> list[str]:
        """Return the entries of `map` and `dates` that fit nothing in the table. Raises DataError."""
        if not self.wording.values and not self.wording.dates:
            return []
        names = self.column_names()
        found = {name: self._texts_in(name) if name in names else None for name in self.wording.values}
        idle = [*self.wording.idle(found), *self.wording.strange_dates(names)]
        return [f"{self.called}: {words}" for words in idle]

    def _texts_in(self, name: str) -> set[str]:
        """Return the different texts of a column as in the table. name: the job's name."""
        with self._readable():
            batches = self._batches([self._own_name(name)])
            return {as_read(text) for batch in batches for text in batch.column(0).dictionary.to_pylist()}

    def column_names(self) -> list[str]:
        """Return the job's names of the columns, in order. Raises DataError."""
        with self._readable():
            names = self._names()
        self.wording.check(names)
        return list(map(self.wording.name, names))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._readable():
            named = {self.wording.name(name): name for name in self._names()}
            for batch in self._batches([named.get(name, name) for name in columns]):
                worded = map(self.wording.worded, columns, batch.columns)
                yield pa.RecordBatch.from_arrays(list(worded), list(columns))

    def marks(self, columns: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """Count in a pass of its own, over these columns alone, if the owner names texts of a missing cell."""
        if not columns or not self.wording.has_marks:
            return {}
        found: dict[str, Counter[str]] = {name: Counter() for name in columns}
        named = {self.wording.name(name): name for name in self._names()}
        with self._readable():
            for batch in self._batches([named[name] for name in columns]):
                for name, column in zip(columns, batch.columns, strict=True):
                    texts = [self.wording.mark(name, text) for text in column.dictionary.to_pylist()]
                    for each in column.indices.value_counts().to_pylist():
                        if (mark := texts[each["values"]]) is not None:
                            found[name][mark] += each["counts"]
        return {name: counts for name, counts in found.items() if counts}

    def form_of_dates(self, name: str) -> str | None:
        return self.wording.dates.get(name)

    def written(self, name: str, row: int) -> str:
        """Return a cell without the owner's words: a text of `missing` reads as an empty cell elsewhere."""
        with self._readable():
            return cell_of(self._batches([self._own_name(name)]), row)

    def _own_name(self, name: str) -> str:
        """Return the name of a column in the table. name: the job's name."""
        return next(each for each in self._names() if self.wording.name(each) == name)

    def numerals(self, texts: Sequence[str]) -> Sequence[str]:
        return with_point(texts) if self._decimal == "," else texts

    @property
    def _decimal(self) -> str:
        return self.wording.decimal or "."

    def place(self, row: int) -> str:
        return f"row {row}"

    def about_names(self, names: Sequence[str], wanted: str) -> str:
        return about_header(names, wanted, ",")

    @abstractmethod
    def version(self) -> str:
        """Return a text that changes whenever the table may have changed, without reading rows. Raises DataError."""

    @property
    @abstractmethod
    def called(self) -> str:
        """Short name of the table in notes to the owner."""

    @abstractmethod
    def _names(self) -> list[str]:
        """Return the names of all columns as in the table, with blanks around."""

    @abstractmethod
    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream columns, by their names in the table, as dictionary-encoded text without the owner's words."""

    @abstractmethod
    def _readable(self) -> AbstractContextManager[None]:
        """Turn errors of the reader in the block into DataError."""
