"""Tables whose engine does pass 1: the engine counts rows that the job reads alike, and gives numbers, not texts.

The engine first lists the different texts of each column. This process codes the texts by the job's rules, and gives
texts with the same code the same number. The engine then joins the numbers to the rows, and counts equal rows. So an
engine needs no rule of the job, and the result is that of reading row by row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anonymize.table import Ints
from jobs.data.arrow import pa
from jobs.data.coding import Coded, Coding
from jobs.data.database import Database
from jobs.data.streaming import Alike, Reader, alike
from jobs.data.table_file import changed

MOST_TEXTS = 1 << 22
"""Most different texts of a column. A table with more is read row by row."""
_KEY_BITS = 63


@dataclass(frozen=True)
class Numbered:
    """Column whose texts have numbers.

    name:   of the column in the table.
    texts:  all different texts of the column, as the engine has the texts.
    alike:  their numbers.
    key:    key that holds the number, among the keys of a row.
    shift:  lowest bit of the number in the key.
    """

    name: str
    texts: pa.Array = field(repr=False)
    alike: Alike = field(repr=False)
    key: int
    shift: int

    @property
    def parts(self) -> pa.Array:
        """Part of the key for each text: a key is the sum of the parts of its columns."""
        return pa.array(self.alike.numbers << self.shift, pa.int64())

    @property
    def dropped(self) -> list[int]:
        """Parts of texts that drop their row."""
        return [number << self.shift for number in self.alike.dropped]

    def column(self, keys: Ints) -> pa.DictionaryArray:
        """Return the column of rows with some keys, with a text for each number."""
        numbers = (keys >> self.shift) & ((1 << _bits(self.alike)) - 1)
        return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), list(self.alike.texts))


def _bits(found: Alike) -> int:
    return max(len(found.texts) - 1, 0).bit_length()


def packed(columns: Mapping[str, tuple[pa.Array, Alike]]) -> list[Numbered]:
    """Return columns with their places in keys of at most 63 bits. columns: texts and numbers by name."""
    made, key, used = [], 0, 0
    for name, (texts, found) in columns.items():
        if used + _bits(found) > _KEY_BITS:
            key, used = key + 1, 0
        made.append(Numbered(name, texts, found, key, used))
        used += _bits(found)
    return made


def keys_as_sql(columns: Sequence[Numbered]) -> list[str]:
    """Return each key of a row as SQL, over the parts of columns: `m0.part` and so on."""
    n_keys = max((column.key for column in columns), default=-1) + 1
    return [
        " + ".join(f"m{i}.part" for i, column in enumerate(columns) if column.key == key)
        for key in range(n_keys)
    ]


def kept_as_sql(columns: Sequence[Numbered]) -> str:
    """Return the condition of rows that no text drops, as SQL over the parts of columns."""
    dropped = (f"m{i}.part <> {part}" for i, column in enumerate(columns) for part in column.dropped)
    return " AND ".join(["true", *dropped])


class Engine(Database):
    """Table in an engine that counts equal rows."""

    def collapse(self, coding: Coding) -> Coded:
        """Let the engine count the rows that the job reads alike, where the job asks for nothing else.

        If a value is unfit, the rows are read one by one after all: only then do values have a place.
        """
        state = self._state
        ids = coding.ids if coding.checked else ()
        asked = replace(coding, ids=())
        if asked.of_counts and not any(map(self.wording.reader, ids)):
            with self._readable():
                named = {self.wording.name(name): name for name in self._names()}
                columns = self._numbered({name: named[name] for name in coding.coders}, coding)
                if columns is not None:
                    n_ids = self._count_ids(columns, [named[name] for name in ids]) if ids else None
                    coded = replace(self._coded(columns, asked), n_ids=n_ids)
                    self.require_unchanged(state)
                    return coded
        return super().collapse(coding)

    def _numbered(self, named: Mapping[str, str], coding: Coding) -> list[Numbered] | None:
        """Number the texts of columns; None if a column has too many texts, or an unfit text.

        named:  names in the table by the job's names.
        """
        self.meter.rows(0, self.n_rows_about)
        found, of_columns = {}, self._distinct(list(named.values()))
        if of_columns is None or max(map(len, of_columns), default=0) > MOST_TEXTS:
            return None
        for name, texts in zip(named, of_columns, strict=True):
            read = self.wording.reader(name)
            words = texts if read is None else pa.array(map(read, texts.to_pylist()), pa.string())
            if (numbers := alike(self, name, coding.coders[name], words)) is None:
                return None
            found[named[name]] = texts, numbers
        return packed(found)

    def _coded(self, columns: Sequence[Numbered], coding: Coding) -> Coded:
        reader = Reader(self, coding)
        self.meter.rows(0, self.n_rows_about)
        for keys, counts in self._counted(columns):
            if any(key.null_count for key in keys):
                raise changed(self.name)
            of_keys = [np.asarray(key, np.int64) for key in keys]
            found = [column.column(of_keys[column.key]) for column in columns]
            reader.add(pa.RecordBatch.from_arrays(found, list(coding.coders)), np.asarray(counts, np.int64))
        return reader.finish()

    @abstractmethod
    def _distinct(self, columns: Sequence[str]) -> Sequence[pa.Array] | None:
        """Return the different texts of each column, by its name in the table; None if the memory is too small."""

    @abstractmethod
    def _counted(self, columns: Sequence[Numbered]) -> Iterator[tuple[Sequence[pa.Array], pa.Array]]:
        """Yield the keys of rows, and the number of rows with equal keys; null for a text without a number."""

    @abstractmethod
    def _count_ids(self, columns: Sequence[Numbered], ids: Sequence[str]) -> int:
        """Count the different values of some columns together, among the rows that no text drops."""
