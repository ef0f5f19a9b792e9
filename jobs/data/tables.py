"""Tables of a party, made by pass 1."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from anonymize.release import LabelledColumn
from anonymize.table import CodedTable, Ints
from jobs.data.rows_read import RowsRead, matched_fields, matched_words

if TYPE_CHECKING:
    from anonymize.joint.columns import Holding


class Table(Protocol):
    """Table as read by the partition of a job; all of the table is for the owner alone."""

    @property
    def rows(self) -> RowsRead:
        """Fate of the rows."""
        ...

    @property
    def ids(self) -> Collection[bytes] | None:
        """Ids that match records between parties, each different; None without matching."""
        ...

    def canonical(self) -> bytes:
        """Return the content after pass 1, in the same bytes for any order of the rows."""
        ...

    def told(self, n_matched: int | None) -> tuple[dict[str, Any], list[str]]:
        """Tell the fate of the rows, in numbers and in sentences.

        n_matched:  how many records all parties have; None where nothing is matched.
        """
        ...


@dataclass(frozen=True)
class Loaded:
    """All columns of some records.

    party:   the party of each row, if a column tells: a place in the schema's parties.
    person:  the person of each row, if the job tells people apart: numbers from 0 in the order of the ids.
    raw:     the quasi-identifiers before generalization, by name and row, if published. Rows that differ in
             raw values alone then stand apart.
    """

    table: CodedTable = field(repr=False)
    rows: RowsRead = field(repr=False)
    party: Ints | None = field(default=None, repr=False)
    person: Ints | None = field(default=None, repr=False)
    raw: Mapping[str, LabelledColumn] = field(default_factory=dict, repr=False)

    @property
    def raw_of_records(self) -> dict[str, LabelledColumn]:
        """Quasi-identifiers before generalization by record, in the order of the rows."""
        rows = np.repeat(np.arange(len(self.table.weights)), self.table.weights)
        return {name: LabelledColumn(c.labels, c.codes[rows]) for name, c in self.raw.items()}

    def some(self, rows: Ints) -> Loaded:
        """Return some rows of the table, by number; the counts of read rows stay."""
        party = None if self.party is None else self.party[rows]
        person = None if self.person is None else self.person[rows]
        raw = {name: LabelledColumn(c.labels, c.codes[rows]) for name, c in self.raw.items()}
        return Loaded(self.table.some(rows), self.rows, party, person, raw)

    @property
    def ids(self) -> None:
        return None

    def canonical(self) -> bytes:
        people = () if self.person is None else (self.person,)
        axes = self.table.schema.axes(self.table.cells)
        parts = (*self.table.qid, *axes, self.table.weights, *people)
        columns = np.stack([np.asarray(column, dtype="<i8") for column in parts])
        return np.ascontiguousarray(columns[:, np.lexsort(columns)]).tobytes()

    def told(self, n_matched: int | None) -> tuple[dict[str, Any], list[str]]:
        return self.rows.fields(), self.rows.words()


@dataclass(frozen=True)
class LoadedColumns:
    """Party's columns of a vertical job: a row for each record, with its id."""

    holding: Holding = field(repr=False)
    rows: RowsRead = field(repr=False)

    @property
    def ids(self) -> list[bytes]:
        return self.holding.ids

    def canonical(self) -> bytes:
        """Return the ids behind their lengths, in order; then our columns in the same order."""
        holding = self.holding
        order = sorted(range(len(holding.ids)), key=holding.ids.__getitem__)
        ids = b"".join(len(holding.ids[i]).to_bytes(4, "little") + holding.ids[i] for i in order)
        ours = [c for c in (*holding.qid, holding.classes, *holding.sensitive) if c is not None]
        return ids + b"".join(np.ascontiguousarray(c, dtype="<i8")[order].tobytes() for c in ours)

    def told(self, n_matched: int | None) -> tuple[dict[str, Any], list[str]]:
        fields, words = self.rows.fields(), self.rows.words()
        if n_matched is None:
            return fields, words
        n_ids = len(self.holding.ids)
        return fields | matched_fields(n_ids, n_matched), words + matched_words(n_ids, n_matched)
