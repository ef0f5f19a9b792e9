"""Spark as an engine for tables that lie in a cluster (extra `spark`).

It is told plain SQL and small tables; no code of ours goes there. Rows come back as Arrow, one partition at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from anonymize.errors import DataError
from jobs.data.arrow import pa, pc
from jobs.data.sql.spark_process import quiet, told
from jobs.data.texts import as_text

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_AS_THEY_ARE = _INTEGERS | {"boolean", "binary"}
_NUMBERS = count()
"""Of the views that were ever made; names are of all threads."""


def quoted(name: str) -> str:
    """An identifier in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def reading(spark: Any, frame: Any) -> Iterator[SparkSession]:
    """A session on a table. ``spark``: Spark's own session; ``frame``: its DataFrame of the table."""
    session = SparkSession(spark, frame)
    try:
        yield session
    finally:
        session.end()


@dataclass(frozen=True)
class SparkSession:
    """A :class:`jobs.data.sql.engine.Session`."""

    _spark: Any = field(repr=False)
    _frame: Any = field(repr=False)
    _views: list[str] = field(default_factory=list, repr=False)

    @cached_property
    def table(self) -> str:
        return self._named(self._frame)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """The columns with their types, as Spark calls them."""
        return {each.name: each.dataType.simpleString() for each in self._frame.schema.fields}

    def key(self, name: str) -> str:
        kind, column = self._kinds[name], quoted(name)
        if kind == "string":
            return f"coalesce({column}, '')"
        if kind.startswith(("string collate", "char(", "varchar(")):  # compared by their bytes
            return f"coalesce(CAST(CAST({column} AS BINARY) AS STRING), '')"
        if kind in ("float", "double", "void"):  # to SQL -0 is 0
            return f"CAST({column} AS STRING)"
        if kind == "date":
            return f"unix_date({column})"
        if kind in ("timestamp", "timestamp_ntz"):
            return f"unix_micros(CAST({column} AS TIMESTAMP))"
        if kind in _AS_THEY_ARE or kind.startswith("decimal("):
            return column
        raise _without_text(name, kind)

    def texts(self, name: str, keys: pa.Array) -> pa.DictionaryArray:
        with told():
            kind = _WRITTEN_AS.get(self._kinds[name], lambda: keys.type)()
            return as_text(keys if keys.type == kind else pc.cast(keys, kind))

    def number(self, name: str) -> tuple[str, str] | None:
        kind, column = self._kinds[name], quoted(name)
        if kind == "double":
            return column, f"isnan({column})"
        return (f"CAST({column} AS DOUBLE)", "FALSE") if kind in _INTEGERS else None

    def query(self, sql: str) -> Iterator[pa.RecordBatch]:
        with told():
            frame = self._spark.sql(sql)
            kinds = [each.dataType.simpleString() for each in frame.schema.fields]
            schema = pa.schema([(f"c{i}", _arrow(kind)) for i, kind in enumerate(kinds)])
            # `toLocalIterator` of PySpark makes Python objects of all cells; `toArrow` gives all rows at once.
            batches = frame._jdf.toArrowBatchRdd().toLocalIterator()
            while batches.hasNext():
                yield pa.ipc.read_record_batch(pa.py_buffer(batches.next()), schema)

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """In the order of the keys: that of a cluster is another each time."""
        keys = [self.key(name) for name in names]
        places = ", ".join(str(i + 1) for i in range(len(names)))
        return self.query(f"SELECT {', '.join(keys)} FROM {self.table} ORDER BY {places}")  # noqa: S608

    def look_up(self, keys: pa.Array, codes: pa.Array) -> str:
        with told(), quiet():
            small = self._spark.createDataFrame(pa.table({"cell": keys, "code": codes}))
            return self._named(small.hint("broadcast"))

    def version(self) -> str:
        """Of all that the table says, whatever the order of its rows; columns without a text are left out."""
        kept = [name for name in self._kinds if self._has_text(name)]
        row = f"xxhash64({', '.join(map(self.key, kept))})" if kept else "0"
        total = f"SELECT count(*), sum(CAST({row} AS DECIMAL(20, 0))) FROM {self.table}"  # noqa: S608
        return repr([batch.to_pylist() for batch in self.query(total)])

    def _has_text(self, name: str) -> bool:
        try:
            return bool(self.key(name))
        except DataError:
            return False

    def _named(self, frame: Any) -> str:
        name = f"jointcut_{next(_NUMBERS)}"
        with told():
            frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def end(self) -> None:
        """Forget the views."""
        with told():
            for name in self._views:
                self._spark.catalog.dropTempView(name)


_WRITTEN_AS = {
    "float": lambda: pa.float32(),
    "double": lambda: pa.float64(),
    "date": lambda: pa.date32(),
    "timestamp": lambda: pa.timestamp("us", "UTC"),
    "timestamp_ntz": lambda: pa.timestamp("us"),
}
"""Of keys of another type than the cells: that of the cells."""
_ARROW = {
    "string": lambda: pa.string(),
    "tinyint": lambda: pa.int8(),
    "smallint": lambda: pa.int16(),
    "int": lambda: pa.int32(),
    "bigint": lambda: pa.int64(),
    "boolean": lambda: pa.bool_(),
    "binary": lambda: pa.binary(),
}


def _arrow(kind: str) -> pa.DataType:
    """The type in which Spark gives a key, a code or a number of rows."""
    if kind.startswith("decimal("):
        precision, scale = kind.removeprefix("decimal(").rstrip(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW[kind]()


def _without_text(name: str, kind: str) -> DataError:
    message = f"column {name} is of a type that is no text, number, truth value, date or time"
    private = f"{name} is {kind}; make one column of it in a view"
    return DataError("data-unreadable", message, column=name, private=private)
