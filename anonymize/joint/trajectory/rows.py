"""Record of a released table as bytes, of a public width for all records, for the shuffle (:mod:`crypto.mixing`).

If records have at most one place at a time, and if it takes fewer bytes, a row lists the place of every time cell.
Otherwise it lists the items, ascending, in as many slots as a record may have items. Zero means no item. The
sensitive cell follows. Whole numbers are big-endian, in the bytes of the greatest value. Every record has a single
encoding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anonymize.table import Ints, tally
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths, collapsed
from crypto.encoding import bytes_for, digits_of, of_digits
from crypto.errors import LocalProtocolError
from crypto.mixing import Rows


@dataclass(frozen=True)
class RowCoding:
    """Encoding of records. All settings are public.

    max_items:  most items of a record. one_place: True if no record has two items of the same time cell.
    n_cells:    number of sensitive cells.
    """

    vocabulary: Vocabulary
    max_items: int
    n_cells: int
    one_place: bool = False

    @property
    def _by_time(self) -> bool:
        """True if the places of all time cells take fewer bytes than ``max_items`` items."""
        words = self.vocabulary
        by_time = words.n_cells * bytes_for(words.n_locations)
        return self.one_place and by_time < self.max_items * bytes_for(words.n_items)

    @property
    def _slots(self) -> tuple[int, int]:
        """Numbers of a row before the sensitive cell, and the greatest value of each."""
        words = self.vocabulary
        return (words.n_cells, words.n_locations) if self._by_time else (self.max_items, words.n_items)

    @property
    def width(self) -> int:
        """Bytes of a row."""
        n_slots, most = self._slots
        return n_slots * bytes_for(most) + bytes_for(self.n_cells - 1)

    def encoded(self, paths: Paths) -> Rows:
        """Return a row for every record: shape (n_records, width).

        Raises LocalProtocolError for a path that does not fit: such a path was refused at reading.
        """
        n_slots, most = self._slots
        path, when = np.repeat(np.arange(paths.n_paths), paths.lengths), self.vocabulary.cells_of(paths.items)
        at_once = (path[1:] == path[:-1]) & (when[1:] == when[:-1])  # items ascend, so times do
        if (paths.lengths > self.max_items).any() or (self.one_place and at_once.any()):
            raise LocalProtocolError("a path with more items than a row holds")
        if self._by_time:
            keys, values = path * n_slots + when, self.vocabulary.locations_of(paths.items)
        else:
            keys, values = path * n_slots + np.arange(len(path)) - paths.starts[path], paths.items
        slots = np.zeros(paths.n_paths * n_slots, dtype=np.int64)
        slots[keys] = values.astype(np.int64) + 1
        digits = digits_of(slots, bytes_for(most)).reshape(paths.n_paths, n_slots * bytes_for(most))
        rows = np.concatenate(
            [digits, digits_of(paths.cells.astype(np.int64), bytes_for(self.n_cells - 1))], axis=1
        )
        return np.repeat(rows, paths.weights, axis=0)

    def decoded(self, rows: Rows) -> Paths:
        """Return the records of rows, equal records collapsed. Raises ValueError for a row that encodes no record.

        Equal consecutive rows are decoded once: in a sorted table, every different row.
        """
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        weights = np.diff(np.flatnonzero(new), append=len(rows))
        paths, path_of = self._collapsed(rows[new])
        return replace(paths, weights=tally(path_of, weights, paths.n_paths))

    def _collapsed(self, rows: Rows) -> tuple[Paths, Ints]:
        """Return the records of rows, and the path of every row."""
        n_slots, most = self._slots
        slots = of_digits(rows[:, : n_slots * bytes_for(most)].reshape(len(rows) * n_slots, bytes_for(most)))
        slots, cells = slots.reshape(len(rows), n_slots), of_digits(rows[:, n_slots * bytes_for(most) :])
        held = slots > 0
        if (slots > most).any() or (cells >= self.n_cells).any():
            raise ValueError("a number that stands for nothing")
        if self._by_time:
            _, when = np.nonzero(held)
            items = self.vocabulary.codes(when, slots[held] - 1)
        else:
            order = self.vocabulary.cells_of(slots - 1) if self.one_place else slots
            if (held[:, 1:] & (~held[:, :-1] | (order[:, 1:] <= order[:, :-1]))).any():
                raise ValueError("items out of order, or after the last")
            items = (slots[held] - 1).astype(np.int32)
        lengths = held.sum(axis=1)
        if (lengths > self.max_items).any():
            raise ValueError("more items than a record may have")
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return collapsed(items, starts, cells, self.vocabulary.n_items)
