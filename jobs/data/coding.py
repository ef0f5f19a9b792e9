"""Values between the two passes of a source, without a file, a job or a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from anonymize.table import Ints
from jobs.data.arrow import pa
from jobs.data.coders import CodedColumn, Coder
from jobs.data.rows_read import RowsRead


@dataclass(frozen=True)
class Coding:
    """Pass 1.

    coders:   the rule of each column that is coded, in job order.
    ids:      the columns that name a record together.
    checked:  a table without a usable row, or with an id twice, is refused; otherwise nobody is told.
    outside:  the rows with a value outside a domain are counted, for the owner alone.
    matched:  records are found at other parties by their ids: ids are normalized, a row without an id is dropped,
              every record stays apart, in the order of the table. Otherwise equal rows may be joined, in any order.
    plain:    matched: columns that are given as they stand beside the records.
    persons:  not matched: who has the same ids is one person, of one or more records: ids are normalized, and people
              numbered. A row without an id is refused where the table is ``checked``; otherwise it is dropped.
    """

    coders: Mapping[str, Coder]
    ids: tuple[str, ...]
    checked: bool
    outside: bool
    matched: bool = False
    plain: tuple[str, ...] = ()
    persons: bool = False


@dataclass(frozen=True)
class Coded:
    """Result of pass 1 of a source.

    columns:  by name, all of one shape (n,).
    weights:  how many records each row stands for: int64, shape (n,), positive.
    rows:     what became of the table's rows.
    n_ids:    how many different ids the records have; None if the coding has no ids, is not checked, or tells people
              apart, who may have several records.
    ids:      matched: the normalized ids, one array of shape (n,) for each id column.
    plain:    matched: the plain columns, n rows of dictionary-encoded text.
    person:   persons: by row whose record it is, numbers from 0 in the order of the ids: int64, shape (n,).
    """

    columns: Mapping[str, CodedColumn] = field(repr=False)
    weights: Ints = field(repr=False)
    rows: RowsRead = field(repr=False)
    n_ids: int | None = field(default=None, repr=False)
    ids: Sequence[pa.ChunkedArray] = field(default=(), repr=False)
    plain: pa.Table | None = field(default=None, repr=False)
    person: Ints | None = field(default=None, repr=False)

    def some(self, rows: Ints) -> Coded:
        """Some of the rows, by number; a row may be named more than once."""
        taken = pa.array(rows)
        return replace(
            self,
            columns={
                name: replace(column, codes=column.codes[rows]) for name, column in self.columns.items()
            },
            weights=self.weights[rows],
            n_ids=None,
            ids=[column.take(taken) for column in self.ids],
            plain=None if self.plain is None else self.plain.take(taken),
            person=None if self.person is None else self.person[rows],
        )


@dataclass(frozen=True)
class Published:
    """Pass 2: how a column is published.

    coder:   its rule.
    places:  the place among the labels for each code: int64, shape (n_codes,).
    labels:  the texts that are published.
    """

    coder: Coder
    places: Ints = field(repr=False)
    labels: pa.Array = field(repr=False)
