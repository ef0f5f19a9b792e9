"""Both passes over a table read batch by batch in this process (semantics §3).

Memory holds codes, not strings. Only coders interpret the text of cells: categorical values unchanged except for
the Unicode form, numbers as IEEE doubles. Errors name the column to everybody; place and value only to the owner.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import DataError
from anonymize.table import MAX_RECORDS, Codes, Ints
from jobs.data.arrow import pa, pc
from jobs.data.coders import (
    BAD,
    DROPPED,
    EMPTY,
    CodedColumn,
    Coder,
    ColumnPass,
    TwoSpellings,
    in_form,
    missing_id,
)
from jobs.data.coding import Coded, Coding, Published
from jobs.data.ids import normalized_ids, numbered_ids
from jobs.data.rows_read import NO_METER, UNUSABLE, WITHOUT_VALUE, Meter, RowsRead, Stray
from jobs.data.table_file import shown
from jobs.data.unfit import Unfit, error_of, rows_of

_MOST_TOLD = 60
_MOST_KNOWN = 1 << 16
"""Most texts of a column whose codes are remembered."""
_ONE = np.int64(1)
_NO_CODES: Codes = np.zeros(0, dtype=np.uint8)
_EMPTY = min(DROPPED, BAD) - 1


class Streamed(ABC):
    """Source with rows in batches, in the same order each time.

    meter:  shows the rows read.
    """

    meter: Meter = NO_METER

    def n_rows_about(self) -> int | None:
        """Return the number of rows without reading the rows, about; None: unknown. Raises DataError."""
        return None

    @property
    @abstractmethod
    def identity(self) -> str:
        """Name of the table, for the owner."""

    @property
    def file(self) -> str:
        """Name of the file of the rows, for the owner; empty for a table that is no file."""
        return ""

    @property
    def held_at(self) -> str:
        """Digest of the place of the rows; empty if the identity is the place."""
        return ""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream the named columns as dictionary-encoded text. Raises DataError."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Return the place of a row, for the owner. ``row``: its number, from 1."""

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return the place of each of a few rows, for the owner. ``rows``: ascending."""
        return [self.place(row) for row in rows]

    def marks(self, columns: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """Count the rows with each of the owner's texts for a missing cell, by column with such a row.

        Raises DataError.
        """
        return {}

    def form_of_dates(self, name: str) -> str | None:
        """Return the form of a column's dates that the owner states; None: the job's form."""
        return None

    def written(self, name: str, row: int) -> str:
        """Return a cell as in the table, for the owner. ``row``: its number, from 1."""
        return cell_of(self.batches([name]), row)

    def numerals(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the texts of a column of numbers, with a decimal point."""
        return texts

    def collapse(self, coding: Coding) -> Coded:
        """Run pass 1. Raises DataError; for unfit values only after all rows, so that the owner reads of all
        values.
        """
        reader = Reader(self, coding)
        try:
            for batch in self.batches(reader.names):
                reader.add(batch, np.broadcast_to(_ONE, batch.num_rows))
                self.meter.rows(reader.n_read, self.n_rows_about)
        except DataError:
            reader.refuse_unfit()  # earlier findings come first
            raise
        reader.refuse_unfit()
        return reader.finish()

    def relabel(self, published: Mapping[str, Published], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Run pass 2: yield the columns ``names`` of the rows kept by pass 1, in table order.

        A column outside ``published`` is given unchanged. Dictionary-encoded text throughout. Raises DataError.
        """
        row = 0
        columns = {name: _Column(name, how.coder, self) for name, how in published.items()}
        for batch in self.batches(names):
            given, dropped = {}, np.zeros(batch.num_rows, dtype=bool)
            for name in names:
                given[name] = batch.column(name)
                if name in published:
                    codes = columns[name].codes(given[name], row)
                    columns[name].refuse_unfit()
                    given[name] = _labelled(codes, published[name])
                    dropped |= codes == DROPPED
            kept = pa.array(np.flatnonzero(~dropped))
            row += batch.num_rows
            self.meter.rows(row, self.n_rows_about)
            yield pa.RecordBatch.from_arrays([given[name].take(kept) for name in names], list(names))


def _refuse_unfit(columns: Sequence[Unfit], source: Streamed) -> None:
    """Raise DataError if a column has unfit values."""
    if unfit := [column for column in columns if column.n_rows]:
        for column in unfit:
            column.read_marks(source.written)
        rows = rows_of(unfit)
        raise error_of(unfit, dict(zip(rows, source.places(rows), strict=True)), source.file)


def _labelled(codes: Codes, published: Published) -> pa.DictionaryArray:
    places = published.places[np.maximum(codes, 0)]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), published.labels)


def cell_of(batches: Iterator[pa.RecordBatch], row: int) -> str:
    """Return a cell of the only column. row: its number, from 1."""
    for batch in batches:
        if row <= batch.num_rows:
            return str(batch.column(0)[row - 1].as_py())
        row -= batch.num_rows
    return ""  # the table has changed since


class _Column:
    """Column on its way through a pass. unfit: its refused values."""

    def __init__(self, name: str, coder: Coder, source: Streamed) -> None:
        self._name = name
        self._source, self._coder = source, coder
        self._pass: ColumnPass = coder.begin()
        self._read = source.numerals if coder.of_numbers else _unchanged
        self._known, self._codes = pa.array([], pa.string()), _NO_CODES
        self.unfit = Unfit(name, in_form(coder, source.form_of_dates(name)), self._read)
        self._kept: list[Codes] = []
        self.n_outside, self.n_inside = 0, 0
        self.first_outside: Stray | None = None

    def codes(self, column: pa.DictionaryArray, row: int) -> Codes:
        """Code a batch. row: number of rows before the batch."""
        places = column.indices.to_numpy()
        codes: Codes = self._codes_of(column.dictionary).take(places)  # faster than an index
        self.unfit.add(lambda: _texts(column.dictionary), places, codes, row)
        return codes

    def _codes_of(self, texts: pa.Array) -> Codes:
        """Return the code of each text. A text is read once, unless the column has very many texts."""
        found = pc.index_in(texts, self._known)
        if found.null_count:
            new = texts.filter(found.is_null())
            if len(self._known) + len(new) > _MOST_KNOWN:
                self._known, self._codes, new = texts.slice(0, 0), self._codes[:0], texts
            codes = self._pass.codes(self._read(_texts(new)))
            self._known = pa.concat_arrays([self._known, new])
            self._codes = _narrow(np.concatenate([self._codes, codes]))
            found = pc.index_in(texts, self._known)
        known: Codes = self._codes[found.to_numpy()]
        return known

    def listed(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the texts that the job lists as values of the column."""
        return tuple(text for text in texts if self._coder.lists(self._read([text])[0]))

    def refuse_unfit(self) -> None:
        """Raise DataError if the column has unfit values."""
        _refuse_unfit([self.unfit], self._source)

    def note_outside(self, column: pa.DictionaryArray, row: int) -> None:
        """Count the rows of a batch with a value outside the domain, and the rows with a value inside.

        row:  number of rows before the batch.
        """
        values = _texts(column.dictionary)
        if not values:
            return
        places = column.indices.to_numpy()
        outside = self._pass.outside(self._read(values))
        empty = np.array([value.strip() in EMPTY for value in values], dtype=bool)
        found = np.flatnonzero(outside[places])
        self.n_outside += len(found)
        self.n_inside += int((~outside & ~empty)[places].sum())
        if found.size and self.first_outside is None:
            self.first_outside = Stray(row + int(found[0]) + 1, values[places[found[0]]])

    def keep(self, codes: Codes) -> None:
        """Store the codes of the kept rows. Codes are not negative."""
        self._kept.append(codes.view(f"u{codes.dtype.itemsize}"))

    def finish(self) -> CodedColumn:
        codes = np.concatenate([np.zeros(0, dtype=np.uint8), *self._kept])
        self._kept = []
        try:
            return self._pass.finished(codes)
        except TwoSpellings as two:
            raise self._two_spellings(two.texts) from None

    def _two_spellings(self, texts: Sequence[str]) -> DataError:
        """Return the error that names both spellings, with the first row of each, to the owner."""
        first: dict[str, int] = {}
        row = 0
        for batch in self._source.batches([self._name]):
            column = batch.column(self._name)
            values, places = _texts(column.dictionary), column.indices.to_numpy()
            for text in texts:
                found = np.flatnonzero(
                    np.isin(places, [i for i, value in enumerate(values) if value == text])
                )
                if len(found):
                    first.setdefault(text, row + int(found[0]) + 1)
            row += batch.num_rows
        where = " and ".join(
            f"{self._source.place(first[text])}: {_told(text)}" if text in first else _told(text)
            for text in texts
        )
        return DataError(
            "data-two-spellings",
            f"column {self._name} has two spellings of the same value",
            column=self._name,
            private=f"{self._source.identity}: {where}",
        )


@dataclass(frozen=True)
class Alike:
    """Different texts of a column, numbered so that texts with the same number are coded alike.

    numbers:  of each text: int64, shape (n_texts,), from 0.
    texts:    a text for each number.
    dropped:  numbers of texts that drop their row.
    """

    numbers: Ints = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)
    dropped: tuple[int, ...] = ()


def alike(source: Streamed, name: str, coder: Coder, texts: pa.Array) -> Alike | None:
    """Number the different texts of a column; None if a text is unfit. texts: in the job's words."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(len(texts)), pa.int32()), texts)
    codes = _Column(name, coder, source).codes(column, 0).astype(np.int64)
    if (codes == BAD).any():
        return None
    # A reader counts empty and unusable texts apart.
    empty = np.array([text.strip() in EMPTY for text in texts.to_pylist()], dtype=bool)
    kinds = np.where((codes == DROPPED) & empty, _EMPTY, codes)
    found, first, numbers = np.unique(kinds, return_index=True, return_inverse=True)
    dropped = np.flatnonzero(found < 0).tolist()
    return Alike(numbers, tuple(texts.take(pa.array(first)).to_pylist()), tuple(dropped))


class Reader:
    """Collects the batches of pass 1. n_read: number of rows so far, those that are dropped included."""

    def __init__(self, source: Streamed, coding: Coding) -> None:
        self._source = source
        self._coding = coding
        self._columns = {name: _Column(name, coder, source) for name, coder in coding.coders.items()}
        self._dropped: dict[str, Counter[str]] = {}
        self._ids: list[list[pa.Array]] = []
        self._plain: list[pa.RecordBatch] = []
        self._weights: list[Ints] = []
        self._row = 0
        self.n_read = 0
        self._n_kept = 0

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        return [*self._coding.ids, *self._coding.coders, *self._coding.plain]

    def add(self, batch: pa.RecordBatch, weights: Ints) -> None:
        """Take in a batch. weights: number of equal rows of the table for each row of the batch."""
        coded = {name: column.codes(batch.column(name), self._row) for name, column in self._columns.items()}
        if not self.has_unfit:
            self._add_fit(batch, coded, weights)
        self._row += batch.num_rows
        self.n_read += int(weights.sum())

    def _add_fit(self, batch: pa.RecordBatch, coded: Mapping[str, Codes], weights: Ints) -> None:
        if self._coding.outside:
            for name, column in self._columns.items():
                column.note_outside(batch.column(name), self._row)
        dropped = np.zeros(batch.num_rows, dtype=bool)
        for name, codes in coded.items():
            dropped |= self._counted(name, batch.column(name), codes == DROPPED, weights)
        ids = self._ids_of(batch)
        if self._compares_ids:
            for name, column in zip(self._coding.ids, ids, strict=True):
                without = np.isin(np.asarray(column.to_numpy(zero_copy_only=False)), list(EMPTY))
                if self._coding.persons and self._coding.checked:
                    self._refuse(name, without & ~dropped)
                dropped |= self._counted(name, batch.column(name), without, weights)
        self._keep(np.flatnonzero(~dropped), coded, ids, batch, weights)

    @property
    def has_unfit(self) -> bool:
        """True if a column has an unfit value."""
        return any(column.unfit.n_rows for column in self._columns.values())

    def refuse_unfit(self) -> None:
        """Raise DataError if columns have unfit values."""
        _refuse_unfit([column.unfit for column in self._columns.values()], self._source)

    @property
    def _compares_ids(self) -> bool:
        return self._coding.matched or self._coding.persons

    def _ids_of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        ids = {name: batch.column(name).cast(pa.string()) for name in self._coding.ids}
        if not self._compares_ids:
            return list(ids.values())
        plain = {name: normalized_ids(column) for name, column in ids.items()}
        changed = {name: form.applied(plain[name]) for name, form in self._coding.id_forms.items()}
        return list({**plain, **changed}.values())

    def _refuse(self, name: str, without: NDArray[np.bool_]) -> None:
        """Raise DataError for the first row without an id, if any."""
        for row in np.flatnonzero(without)[:1].tolist():
            number = self._row + row + 1
            raise missing_id(name, self._source.place(number), self._source.written(name, number))

    def _keep(
        self,
        keep: Ints,
        coded: Mapping[str, Codes],
        ids: Sequence[pa.Array],
        batch: pa.RecordBatch,
        weights: Ints,
    ) -> None:
        for name, codes in coded.items():
            self._columns[name].keep(codes if len(keep) == len(codes) else codes[keep])
        if ids:
            self._ids.append([column.take(pa.array(keep)) for column in ids])
        if self._coding.plain:
            self._plain.append(batch.select(list(self._coding.plain)).take(pa.array(keep)))
        kept = weights[keep]
        self._weights.append(kept if (kept > 1).any() else np.broadcast_to(_ONE, len(kept)))
        self._n_kept += int(kept.sum())
        if self._n_kept > MAX_RECORDS:
            raise DataError("too-many-rows", f"the table has more than {MAX_RECORDS} rows")

    def _counted(
        self, name: str, column: pa.DictionaryArray, lost: NDArray[np.bool_], weights: Ints
    ) -> NDArray[np.bool_]:
        """Count the rows dropped by a column, by reason; return the rows."""
        if lost.any():
            empty = np.array([text.strip() in EMPTY for text in column.dictionary.to_pylist()])
            n_empty = int(weights[lost][empty[column.indices.to_numpy()[lost]]].sum())
            found = {WITHOUT_VALUE: n_empty, UNUSABLE: int(weights[lost].sum()) - n_empty}
            self._dropped.setdefault(name, Counter()).update(+Counter(found))
        return lost

    def finish(self) -> Coded:
        coding, ids = self._coding, self._all_ids()
        return Coded(
            {name: column.finish() for name, column in self._columns.items()},
            self._all_weights(),
            self._rows_read(),
            _n_distinct(ids) if coding.ids and coding.checked and not coding.persons else None,
            ids if coding.matched else (),
            pa.Table.from_batches(self._plain) if self._plain else None,
            numbered_ids(ids) if coding.persons else None,
        )

    def _all_weights(self) -> Ints:
        """Return the weights of the kept rows; weights of 1 each in the memory of one number."""
        n_rows = sum(map(len, self._weights))
        if self._n_kept == n_rows:
            return np.broadcast_to(_ONE, n_rows)
        return np.concatenate(self._weights)

    def _rows_read(self) -> RowsRead:
        columns = {name: column for name, column in self._columns.items() if column.n_outside}
        marks = self._source.marks(list(self._columns))
        listed = {name: self._columns[name].listed(found) for name, found in marks.items()}
        return RowsRead(
            self.n_read,
            self._n_kept,
            self._dropped,
            {name: column.n_outside for name, column in columns.items()},
            inside={name: column.n_inside for name, column in columns.items()},
            strays={name: column.first_outside for name, column in columns.items() if column.first_outside},
            marks=marks,
            listed={name: texts for name, texts in listed.items() if texts},
        )

    def _all_ids(self) -> list[pa.ChunkedArray]:
        return [
            pa.chunked_array([batch[i] for batch in self._ids], pa.string())
            for i in range(len(self._coding.ids))
        ]


def _narrow(codes: Ints) -> Codes:
    """Return the codes in the narrowest type. For every row of a table a code of each column is kept."""
    least, most = int(codes.min(initial=0)), int(codes.max(initial=0))
    return codes.astype(np.min_scalar_type(most if least >= 0 else min(least, -most - 1)))


def _n_distinct(ids: Sequence[pa.ChunkedArray]) -> int:
    names = [str(i) for i in range(len(ids))]
    return int(pa.table(list(ids), names=names).group_by(names).aggregate([]).num_rows)


def _unchanged(texts: Sequence[str]) -> Sequence[str]:
    return texts


def _told(text: str) -> str:
    """Return a text in quotes, with the numbers of characters that look like other characters."""
    return shown(text) if text.isascii() else f"{shown(text)} ({text[:_MOST_TOLD]!a})"


def _texts(found: pa.Array) -> list[str]:
    """Return texts in the form for comparison (:func:`jobs.data.table_file.as_read`)."""
    texts: list[str] = pc.utf8_trim_whitespace(pc.utf8_normalize(found, form="NFC")).to_pylist()
    return texts
