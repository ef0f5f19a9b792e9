"""A party's table in PostgreSQL: a table, or what a query makes of several.

The text of a cell is that of a Parquet file of the same table (:mod:`jobs.data.texts`); of types that such a file
lacks it is PostgreSQL's own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from anonymize.errors import DataError
from anonymize.table import Ints
from jobs.data.arrow import pa
from jobs.data.coding import Coded, Coding
from jobs.data.errors import unreadable
from jobs.data.ledger_places import of_the_user
from jobs.data.postgres_address import Address, read_address
from jobs.data.postgres_session import Session, session, unreachable
from jobs.data.sql.engine import quoted
from jobs.data.streaming import Streamed
from jobs.data.table_file import about_columns
from jobs.data.texts import as_text

_TYPE = b"POSTGRESQL:type"
_AS_IT_IS = frozenset({"bool", "date", "float4", "float8", "int2", "int4", "int8", "timestamp"})
"""Types of which Arrow has the same, and equal cells the same text but for floating-point numbers."""
_FLOATS = frozenset({"float4", "float8"})
_NO_VALUE = frozenset({"bytea", "interval", "json", "jsonb", "money", "timestamptz", "timetz", "xml"})
"""Types whose cells are several values, or none that a job could name. Of a time with its zone nobody could say on
which side of midnight it is.
"""
_SAMPLE = 1 << 16
"""Of so many rows it is looked at how many are different, before the server counts them all or sends each."""
_CAST = "cast it in the query, as `admitted AT TIME ZONE 'Europe/Zurich'` or `array_to_string(codes, ';')`"


@dataclass(frozen=True)
class Postgres(Streamed):
    """A table in a database.

    dsn_env:  the name of the variable of the environment that has the address of the database, with its password.
    query:    a SELECT that gives the rows. table: or a table or view, `schema.name`. One of the two.
    """

    dsn_env: str
    query: str | None = field(default=None, repr=False)
    table: str | None = None
    _session: Session | None = field(default=None, repr=False, compare=False)
    _order: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def identity(self) -> str:
        """The database and the table, or the SHA-256 of the query: the same for every user and password."""
        if self.query is None:
            return f"{self._address.name}?table={self.table}"
        query = " ".join(self.query.split()).rstrip("; ")
        return f"{self._address.name}?query={hashlib.sha256(query.encode()).hexdigest()}"

    @property
    def ledger(self) -> Path:
        return of_the_user()

    def settings(self) -> dict[str, Any]:
        given = {"dsn_env": self.dsn_env, "query": self.query, "table": self.table}
        return {"postgres": {key: value for key, value in given.items() if value is not None}}

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        with self._reading() as reading:
            yield replace(self, _session=reading)

    def version(self) -> str:
        """Where the database stands: the same as long as nothing at all is written to the server's databases."""
        with self._reading() as reading:
            return reading.text("SELECT pg_current_snapshot()::text")

    def column_names(self) -> list[str]:
        with self._reading() as reading:
            return list(reading.schema(self._sql).names)

    def about_names(self, names: Sequence[str], wanted: str) -> str:
        return about_columns(names, wanted, ": PostgreSQL folds what is not in quotes")

    def place(self, row: int) -> str:
        """Rows have no number in a database; the value finds it."""
        return "in a row"

    def collapse(self, coding: Coding) -> Coded:
        """Pass 1. The server counts equal rows where there are many; then fewer travel.

        Records that others know by their ids come in the order of these, whatever the plan of the query.
        """
        with self._reading() as reading:
            order = (*coding.ids, *coding.coders) if coding.matched else ()
            steady = replace(self, _session=reading, _order=order)
            if coding.ids or not coding.coders or not steady._repeats(coding.names):
                return super(Postgres, steady).collapse(coding)
            return steady.collapse_counted(coding, steady._counted(coding.names))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._reading() as reading:
            for batch in reading.batches(self._rows(_cells(self._kinds(reading, columns)))):
                yield pa.RecordBatch.from_arrays(list(map(as_text, batch.columns)), list(columns))

    def _repeats(self, columns: Sequence[str]) -> bool:
        """Whether rows are worth counting at the server: at most half of the first ones are different."""
        with self._reading() as reading:
            first = f"{self._rows(_cells(self._kinds(reading, columns)))} LIMIT {_SAMPLE}"
            at_most_half = "(2 * count(DISTINCT s.*) <= count(*))::text"
            return reading.text(f"SELECT {at_most_half} FROM ({first}) AS s") == "true"  # noqa: S608

    def _counted(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        """The different rows, each with how often it is there.

        Floating-point numbers are told apart by their texts, too: -0 is equal to 0.
        """
        with self._reading() as reading:
            kinds = self._kinds(reading, columns)
            by = [_cell(name, kind) for name, kind in kinds.items()]
            by += [f"{quoted(name)}::text" for name, kind in kinds.items() if kind in _FLOATS]
            rows = self._rows([*_cells(kinds), "count(*)"])
            for batch in reading.batches(f"{rows} GROUP BY {', '.join(by)}"):
                *cells, n = batch.columns
                yield pa.RecordBatch.from_arrays(list(map(as_text, cells)), list(columns)), n.to_numpy()

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        """The transaction of our snapshot, or one of its own."""
        if self._session is not None:
            yield self._session
            return
        with session(self._address) as reading:
            yield reading

    @property
    def _address(self) -> Address:
        """Raises DataError, which repeats nothing of it."""
        text = os.environ.get(self.dsn_env)
        if not text:
            raise unreachable(f"the environment has no {self.dsn_env} with the address of the database")
        try:
            return read_address(text)
        except ValueError as error:
            raise unreachable(f"the address in {self.dsn_env} cannot be used: {error}") from None

    @property
    def _sql(self) -> str:
        """The rows, as they are asked for. By itself, so that two statements, or half of one, are refused."""
        if self.query is not None:
            return self.query
        return f"SELECT * FROM {'.'.join(map(quoted, str(self.table).split('.')))}"  # noqa: S608

    def _kinds(self, reading: Session, columns: Sequence[str]) -> dict[str, str]:
        """The types of some columns, once each. Raises DataError for one whose cells are no single value."""
        return _kinds_of(reading.schema(self._sql), columns)

    def _rows(self, cells: Sequence[str]) -> str:
        """The query for some expressions. What is in brackets may end with a comment, so it has lines of its own."""
        order = ", ".join(f'{quoted(name)}::text COLLATE "C"' for name in self._order)
        rows = f"SELECT {', '.join(cells)} FROM (\n{self._sql.rstrip().rstrip(';')}\n) AS t"  # noqa: S608
        return rows + (f" ORDER BY {order}" if order else "")


def _cells(kinds: Mapping[str, str]) -> list[str]:
    return [_cell(name, kind) for name, kind in kinds.items()]


def _cell(name: str, kind: str) -> str:
    """A cell as it travels. Under the collation C texts are equal that are the same: under others "a" may be "A"."""
    return quoted(name) if kind in _AS_IT_IS else f'{quoted(name)}::text COLLATE "C"'


def _kinds_of(schema: pa.Schema, columns: Sequence[str]) -> dict[str, str]:
    """By column its type as PostgreSQL calls it, which of lists begins with `_`.

    Raises DataError for what gives no rows, or a column whose cells are no single value.
    """
    if not schema.names:
        raise unreadable("the query is no SELECT")
    kinds = {name: (schema.field(name).metadata or {}).get(_TYPE, b"").decode() for name in columns}
    for name, kind in kinds.items():
        if kind in _NO_VALUE or kind.startswith("_"):
            raise DataError(
                "data-unreadable",
                f"column {name} is of a type that is no text, number, truth value, date or local time",
                column=name,
                private=f"{name} is {kind.removeprefix('_')}; {_CAST}",
            )
    return kinds
