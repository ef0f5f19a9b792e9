"""Values between the two passes of a source, without a file, a job or a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from anonymize.table import Ints
from jobs.data.arrow import pa
from jobs.data.coders import CodedColumn, Coder
from jobs.data.ids import IdForm
from jobs.data.rows_read import RowsRead


@dataclass(frozen=True)
class Coding:
    """Coding of pass 1.

    coders:   the rule of each coded column, in job order.
    ids:      the columns that name a record together.
    checked:  a table without a usable row, or with a repeated id, is refused; otherwise nobody is told.
    outside:  count rows with a value outside a domain, for the owner alone.
    matched:  parties match records by id: ids are normalized, a row without an id is dropped, every record
              stays apart, in table order. Otherwise equal rows may be joined, in any order.
    plain:    matched: columns given unchanged beside the records.
    persons:  not matched: the same ids mean the same person, with one or more records. Ids are normalized,
              and people numbered. A row without an id is refused if the table is ``checked``; otherwise
              dropped.
    id_forms: the job's form of ids, by column; missing for ids that the job does not change.
    """

    coders: Mapping[str, Coder]
    ids: tuple[str, ...]
    checked: bool
    outside: bool
    matched: bool = False
    plain: tuple[str, ...] = ()
    persons: bool = False
    id_forms: Mapping[str, IdForm] = field(default_factory=dict)

    @property
    def of_counts(self) -> bool:
        """True if equal rows are as good as one row with a weight, and no row is told by its place."""
        return not (self.ids or self.outside or self.matched or self.persons)


@dataclass(frozen=True)
class Coded:
    """Result of pass 1 of a source.

    columns:  by name, all of shape (n,).
    weights:  number of records of each row: int64, shape (n,), positive.
    rows:     counts of the table's rows by outcome.
    n_ids:    number of different ids of the records; None without ids, unchecked, or with people told
              apart, since a person may have several records.
    ids:      matched: the normalized ids, an array of shape (n,) for each id column.
    plain:    matched: the plain columns, n rows of dictionary-encoded text.
    person:   persons: the person of each row, numbers from 0 in the order of the ids: int64, shape (n,).
    """

    columns: Mapping[str, CodedColumn] = field(repr=False)
    weights: Ints = field(repr=False)
    rows: RowsRead = field(repr=False)
    n_ids: int | None = field(default=None, repr=False)
    ids: Sequence[pa.ChunkedArray] = field(default=(), repr=False)
    plain: pa.Table | None = field(default=None, repr=False)
    person: Ints | None = field(default=None, repr=False)

    def some(self, rows: Ints) -> Coded:
        """Return some of the rows, by number. A row may be named more than once."""
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
    """Publication of a column in pass 2.

    coder:   its rule.
    places:  the place among the labels for each code: int64, shape (n_codes,).
    labels:  the published texts.
    """

    coder: Coder
    places: Ints = field(repr=False)
    labels: pa.Array = field(repr=False)
