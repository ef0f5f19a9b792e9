"""Both passes over a table that this process reads batch by batch (semantics §3).

Memory holds codes, not strings. Cells are read as text and interpreted by the coders alone: categorical values as
they stand but for their Unicode form, numbers as IEEE doubles. Errors name the column to everybody; place and value
only to the owner.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import DataError, changed
from anonymize.table import MAX_RECORDS, Codes, Ints, joined_by, pack
from jobs.data.arrow import pa, pc
from jobs.data.coders import BAD, DROPPED, EMPTY, CodedColumn, Coder, ColumnPass, missing_id
from jobs.data.coding import Coded, Coding, Published
from jobs.data.ids import normalized_ids, numbered_ids
from jobs.data.rows_read import UNUSABLE, WITHOUT_VALUE, RowsRead
from jobs.data.table_file import about_columns

_MOST_APART = 1 << 20
"""Rows that are kept before equal ones are joined."""


class Streamed(ABC):
    """A source that gives its rows in batches, in the same order each time."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream the named columns as dictionary-encoded text. Raises DataError."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Where a row stands, for the owner. ``row``: its number, from 1."""

    def about_names(self, names: Sequence[str], wanted: str) -> str:
        """What the owner is told of a table with columns ``names`` if it lacks ``wanted`` or has it twice."""
        return about_columns(names, wanted)

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """What is here stays as it is while it is read; a source that changes has a snapshot to give."""
        yield self

    def collapse(self, coding: Coding) -> Coded:
        """Pass 1. Raises DataError."""
        rows = ((batch, np.ones(batch.num_rows, dtype=np.int64)) for batch in self.batches(coding.names))
        return self.collapse_counted(coding, rows)

    def collapse_counted(self, coding: Coding, rows: Iterable[tuple[pa.RecordBatch, Ints]]) -> Coded:
        """Pass 1 over rows, each with how often the table has it: more than once only if they need not stay apart.

        rows: as :meth:`batches` gives them, and int64 of the same length. Raises DataError.
        """
        reader = _Reader(self, coding)
        for batch, weights in rows:
            reader.add(batch, weights)
        return reader.finish()

    def relabel(self, published: Mapping[str, Published], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Pass 2: the columns ``names`` of the rows that pass 1 kept, in the order of the table.

        A column that is not in ``published`` is given as it stands. Dictionary-encoded text throughout. Raises
        DataError.
        """
        row = 0
        columns = {name: _Column(name, how.coder, self) for name, how in published.items()}
        for batch in self.batches(names):
            given, dropped = {}, np.zeros(batch.num_rows, dtype=bool)
            for name in names:
                given[name] = batch.column(name)
                if name in published:
                    codes = columns[name].codes(given[name], row)
                    given[name] = labelled(codes, published[name])
                    dropped |= codes == DROPPED
            kept = pa.array(np.flatnonzero(~dropped))
            row += batch.num_rows
            yield pa.RecordBatch.from_arrays([given[name].take(kept) for name in names], list(names))


def labelled(codes: Codes, published: Published) -> pa.DictionaryArray:
    """How cells of these codes are published; of those that drop their row, anything."""
    places = published.places[np.maximum(codes, 0)]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), published.labels)


class _Column:
    """A column on its way through a pass."""

    def __init__(self, name: str, coder: Coder, source: Streamed) -> None:
        self._name = name
        self._coder = coder
        self._source = source
        self._pass: ColumnPass = coder.begin()
        self._kept: list[Codes] = []

    def codes(self, column: pa.DictionaryArray, row: int) -> Codes:
        """Code a batch, whose first row is the one after ``row``; each distinct text is read once."""
        values = compared(column.dictionary)
        places = column.indices.to_numpy()
        codes: Codes = _narrow(self._pass.codes(values))[places]
        bad = np.flatnonzero(codes == BAD)
        if bad.size:
            place = self._source.place(row + int(bad[0]) + 1)
            raise self._coder.refused(self._name, values[places[bad[0]]], place)
        return codes

    def n_outside(self, column: pa.DictionaryArray, weights: Ints) -> int:
        """How many rows of a batch have a value outside the domain."""
        values = compared(column.dictionary)
        return int(weights[self._pass.outside(values)[column.indices.to_numpy()]].sum()) if values else 0

    def keep(self, codes: Codes) -> None:
        """Those of rows that stay; none of them is negative."""
        self._kept.append(codes.view(f"u{codes.dtype.itemsize}"))

    def taken(self) -> Codes:
        """All that was kept; it is not kept any longer."""
        codes: Codes = np.concatenate([np.zeros(0, dtype=np.uint8), *self._kept])
        self._kept = []
        return codes

    def finish(self) -> CodedColumn:
        return self._pass.finished(self.taken())


class _Reader:
    """Collects the batches of pass 1."""

    def __init__(self, source: Streamed, coding: Coding) -> None:
        self._source = source
        self._coding = coding
        self._columns = {name: _Column(name, coder, source) for name, coder in coding.coders.items()}
        self._outside: Counter[str] = Counter()
        self._dropped: dict[str, Counter[str]] = {}
        self._ids: list[list[pa.Array]] = []
        self._plain: list[pa.RecordBatch] = []
        self._weights: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self._n_read = 0
        self._n_kept = 0
        self._n_apart, self._most_apart = 0, _MOST_APART

    def add(self, batch: pa.RecordBatch, weights: Ints) -> None:
        coded = {
            name: column.codes(batch.column(name), self._n_read) for name, column in self._columns.items()
        }
        if self._coding.outside:
            for name, column in self._columns.items():
                self._outside[name] += column.n_outside(batch.column(name), weights)
        dropped = np.zeros(batch.num_rows, dtype=bool)
        for name, codes in coded.items():
            dropped |= self._lost(name, batch.column(name), codes == DROPPED, weights)
        ids = self._ids_of(batch)
        if self._compares_ids:
            for name, column in zip(self._coding.ids, ids, strict=True):
                without = np.isin(np.asarray(column.to_numpy(zero_copy_only=False)), list(EMPTY))
                if self._coding.persons and self._coding.checked:
                    self._refuse(name, batch.column(name), without & ~dropped)
                dropped |= self._lost(name, batch.column(name), without, weights)
        self._keep(np.flatnonzero(~dropped), coded, ids, batch)
        self._count(weights, dropped)

    @property
    def _compares_ids(self) -> bool:
        return self._coding.matched or self._coding.persons

    def _ids_of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        ids = [batch.column(name).cast(pa.string()) for name in self._coding.ids]
        return [normalized_ids(column) for column in ids] if self._compares_ids else ids

    def _refuse(self, name: str, column: pa.DictionaryArray, without: NDArray[np.bool_]) -> None:
        """Raise DataError for the first row without an id, if there is one."""
        for row in np.flatnonzero(without)[:1].tolist():
            value = column.dictionary[column.indices[row].as_py()].as_py()
            place = self._source.place(self._n_read + row + 1)
            raise missing_id(name, value, place)

    def _keep(
        self, keep: Ints, coded: Mapping[str, Codes], ids: Sequence[pa.Array], batch: pa.RecordBatch
    ) -> None:
        for name, codes in coded.items():
            self._columns[name].keep(codes if len(keep) == len(codes) else codes[keep])
        if ids:
            self._ids.append([column.take(pa.array(keep)) for column in ids])
        if self._coding.plain:
            self._plain.append(batch.select(list(self._coding.plain)).take(pa.array(keep)))

    def _count(self, weights: Ints, dropped: NDArray[np.bool_]) -> None:
        kept = weights[~dropped]
        self._weights.append(kept)
        self._n_read += int(weights.sum())
        self._n_kept += int(kept.sum())
        not_too_many(self._n_kept)
        self._n_apart += len(kept)
        if self._n_apart > self._most_apart and not self._compares_ids:
            self._join()

    def _join(self) -> None:
        """Join equal rows of those kept so far: what is in memory are different rows."""
        codes = {name: column.taken() for name, column in self._columns.items()}
        columns = list(codes.values())
        keys = pack(columns, [int(own.max()) + 1 for own in columns])
        first, weights = joined_by(keys, np.concatenate(self._weights))
        for name, column in self._columns.items():
            column.keep(codes[name][first])
        self._weights, self._n_apart = [weights], len(first)
        self._most_apart = 2 * max(len(first), _MOST_APART)

    def _lost(
        self, name: str, column: pa.DictionaryArray, lost: NDArray[np.bool_], weights: Ints
    ) -> NDArray[np.bool_]:
        """The rows that a column drops, counted by reason."""
        if lost.any():
            by_text = np.zeros(len(column.dictionary), dtype=np.int64)
            np.add.at(by_text, column.indices.to_numpy()[lost], weights[lost])
            self._dropped.setdefault(name, Counter()).update(reasons(column.dictionary, by_text))
        return lost

    def finish(self) -> Coded:
        coding, ids = self._coding, self._all_ids()
        return Coded(
            {name: column.finish() for name, column in self._columns.items()},
            np.concatenate(self._weights),
            RowsRead(self._n_read, self._n_kept, self._dropped, +self._outside),
            _n_distinct(ids) if coding.ids and coding.checked and not coding.persons else None,
            ids if coding.matched else (),
            pa.Table.from_batches(self._plain) if self._plain else None,
            numbered_ids(ids) if coding.persons else None,
        )

    def _all_ids(self) -> list[pa.ChunkedArray]:
        return [
            pa.chunked_array([batch[i] for batch in self._ids], pa.string())
            for i in range(len(self._coding.ids))
        ]


def _narrow(codes: Ints) -> Codes:
    """The same codes in the least type that holds them: of every row of a table one is kept for each column."""
    least, most = int(codes.min(initial=0)), int(codes.max(initial=0))
    return codes.astype(np.min_scalar_type(most if least >= 0 else min(least, -most - 1)))


def _n_distinct(ids: Sequence[pa.ChunkedArray]) -> int:
    names = [str(i) for i in range(len(ids))]
    return int(pa.table(list(ids), names=names).group_by(names).aggregate([]).num_rows)


def compared(texts: pa.Array) -> list[str]:
    """Texts as they are compared: in Unicode NFC."""
    normalized: list[str] = pc.utf8_normalize(texts, form="NFC").to_pylist()
    return normalized


def reasons(texts: pa.Array, lost: Ints) -> Counter[str]:
    """How many rows the cells of a column drop, by reason. ``lost``: the rows that each text drops, shape (n,)."""
    empty = np.array([text.strip() in EMPTY for text in texts.to_pylist()], dtype=bool)
    n_empty = int(lost[empty].sum())
    return +Counter({WITHOUT_VALUE: n_empty, UNUSABLE: int(lost.sum()) - n_empty})


def not_too_many(n_rows: int) -> None:
    """Raises DataError if so many records are more than there may be."""
    if n_rows > MAX_RECORDS:
        raise DataError("too-many-rows", f"the table has more than {MAX_RECORDS} rows")


def refused_cell(source: Streamed, name: str, coder: Coder) -> DataError:
    """The error of the first cell that the coder of a column refuses; there is one, or the table changed."""
    column, row = _Column(name, coder, source), 0
    try:
        for batch in source.batches([name]):
            column.codes(batch.column(0), row)
            row += batch.num_rows
    except DataError as error:
        return error
    return changed()
