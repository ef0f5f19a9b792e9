"""Rows of pass 2 in memory: codes in the narrowest types, and texts as Arrow has them.

A column that is published as it stands can have as many texts as there are rows. So no text is an object of Python
but while it is looked at, and rows that are equal are joined while they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from anonymize.release import LabelledColumn, Release
from anonymize.table import Codes, Ints, joined_by, narrowest, pack, units
from jobs.data.arrow import pa, pc

_MOST_APART = 1 << 18
"""Rows that are kept before equal ones are joined."""
_AT_ONCE = 1 << 14
"""Texts that are objects of Python at the same time."""


class Texts(Sequence[str]):
    """Texts in one buffer of Arrow's; what makes an Arrow array of them takes the buffer as it is."""

    def __init__(self, array: pa.LargeStringArray) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        found = self._array[place]
        return Texts(found) if isinstance(place, slice) else str(found)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._array.slice(start, _AT_ONCE).to_pylist()

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:
        return self._array if type is None else self._array.cast(type)


def held_rows(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Release:
    """The rows of all batches: columns ``names`` in their order, dictionary-encoded text without nulls.

    Each column lists the labels that it has, each once, in the order of their code points; entries are in the order
    of the rows, unless there are so many that equal ones are joined. Raises what reading the batches does.
    """
    columns = {name: _Held() for name in names}
    weights: list[Ints] = [units(0)]
    n_apart, most = 0, _MOST_APART
    for batch in batches:
        for column, cells in zip(columns.values(), batch.columns, strict=True):
            column.add(cells)
        weights.append(units(batch.num_rows))
        n_apart += batch.num_rows
        if n_apart > most:
            weights = [_joined(list(columns.values()), np.concatenate(weights))]
            n_apart = len(weights[0])
            most = 2 * max(n_apart, _MOST_APART)
    return Release({name: column.finished() for name, column in columns.items()}, np.concatenate(weights))


@dataclass
class _Held:
    """A column while it is read, batch by batch: the texts that each has, and the cells by number of their text."""

    codes: list[Codes] = field(default_factory=list, repr=False)
    texts: list[pa.LargeStringArray] = field(default_factory=list, repr=False)

    def add(self, cells: pa.DictionaryArray) -> None:
        texts = cells.dictionary.cast(pa.large_string())
        self.put(cells.indices.to_numpy().astype(narrowest(len(texts))), texts)

    def put(self, codes: Codes, texts: pa.LargeStringArray) -> None:
        self.codes.append(codes)
        self.texts.append(texts)

    def taken(self) -> tuple[Codes, pa.LargeStringArray]:
        """All cells by number of their text, and the texts, each once; nothing is kept any longer."""
        starts = np.cumsum([0, *map(len, self.texts)])
        numbered = pa.concat_arrays([pa.array([], pa.large_string()), *self.texts]).dictionary_encode()
        self.texts, texts = [], numbered.dictionary
        number = numbered.indices.to_numpy().astype(narrowest(len(texts)))
        codes = [number[start:][own] for start, own in zip(starts.tolist(), self.codes, strict=False)]
        self.codes = []
        return np.concatenate([number[:0], *codes]), texts

    def finished(self) -> LabelledColumn:
        """The column with the labels that it has, in order."""
        codes, texts = self.taken()
        present = np.flatnonzero(np.bincount(codes, minlength=len(texts)))
        order = present[pc.sort_indices(texts.take(pa.array(present))).to_numpy()]  # by bytes: by code points
        place = np.zeros(len(texts), dtype=narrowest(len(order)))
        place[order] = np.arange(len(order))
        return LabelledColumn(Texts(texts.take(pa.array(order))), place[codes])


def _joined(columns: Sequence[_Held], weights: Ints) -> Ints:
    """Join equal rows of those that are held; return how many each stands for. weights: of them until now."""
    taken = [column.taken() for column in columns]
    first, joined = joined_by(pack([own for own, _ in taken], [len(texts) for _, texts in taken]), weights)
    for column, (codes, texts) in zip(columns, taken, strict=True):
        column.put(codes[first], texts)
    return joined
