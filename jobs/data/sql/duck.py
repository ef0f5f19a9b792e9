"""DuckDB, inside this process: an engine for tables that need not fit into memory (extra `duckdb`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from jobs.data.arrow import pa, pc
from jobs.data.errors import library, unreadable
from jobs.data.hidden import short_lived
from jobs.data.sql.engine import quoted
from jobs.data.texts import as_text

_ROWS = 1 << 17
_FULL = "Out of Memory Error"
"""What DuckDB says first where it can spill no more."""
_NO_ROOM = "`memory_limit` is too little, and the temporary folder (TMPDIR) has no room for the rest"
_FROM_THE_START = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "allow_persistent_secrets": "false",
}
"""Nothing is fetched, and a name in a query means what was handed over and nothing else."""


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def started(files: Sequence[Path], memory_limit: str) -> Iterator[Duck]:
    """DuckDB, with access to some files and to nothing else.

    What does not fit into ``memory_limit`` (as `2GB`) is in a temporary folder of its own until the end, in clear: no
    more than the table is where it is. Raises DataError for what DuckDB cannot do.
    """
    duckdb = library("duckdb", "DuckDB", "duckdb")
    with short_lived("jointcut-duckdb") as folder, _told(duckdb.Error):
        connection = duckdb.connect(":memory:", config=_FROM_THE_START)
        try:
            for setting in (
                f"memory_limit = {literal(memory_limit)}",
                f"temp_directory = {literal(str(folder))}",
                f"allowed_paths = [{', '.join(literal(str(file)) for file in files)}]",
                "TimeZone = 'UTC'",
                "enable_external_access = false",
                "lock_configuration = true",
            ):
                connection.execute(f"SET {setting}")
            yield Duck(connection)
        finally:
            connection.close()


@contextmanager
def _told(kind: type[Exception]) -> Iterator[None]:
    """What the engine, or Arrow with what it gave, cannot do; in their words for the owner alone."""
    try:
        yield
    except (kind, OSError, pa.ArrowException) as error:  # the last two in the midst of the rows
        said = str(error)
        if said.startswith(_FULL):  # and goes on about settings that nobody can set here
            raise unreadable(said.partition("\n")[0], cause=_NO_ROOM) from error
        raise unreadable(said) from error


@dataclass(frozen=True)
class Duck:
    """DuckDB with nothing in it yet."""

    _connection: Any = field(repr=False)

    def attached(self, path: Path, table: str) -> DuckSession:
        """A table of a DuckDB database, which nobody writes to meanwhile."""
        self._connection.execute(f"ATTACH {literal(str(path))} AS given (READ_ONLY)")
        return DuckSession(self._connection, f"given.{quoted(table)}")

    def parquet(self, files: Sequence[Path], schema: pa.Schema, *, by_folder: bool) -> DuckSession:
        """Parquet files as one table; ``by_folder``: folders NAME=VALUE that they are in are columns, of text."""
        listed, hive = ", ".join(literal(str(file)) for file in files), str(by_folder).lower()
        table = f"read_parquet([{listed}], hive_partitioning = {hive}, hive_types_autocast = false)"
        return DuckSession(self._connection, table, schema)

    def loaded(self, names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> DuckSession:
        """A copy of columns of text, compressed; what becomes too large for the memory is spilled."""
        columns = {name: f"c{i}" for i, name in enumerate(names)}
        self._connection.execute("ATTACH ':memory:' AS given (COMPRESS)")
        texts = ", ".join(f"{column} VARCHAR" for column in columns.values())
        self._connection.execute(f"CREATE TABLE given.copy ({texts})")
        self._connection.execute("BEGIN")
        for batch in batches:
            self._connection.register("batch", pa.Table.from_batches([batch]))
            self._connection.execute("INSERT INTO given.copy SELECT * FROM batch")
            self._connection.unregister("batch")
        self._connection.execute("COMMIT")
        schema = pa.schema([(name, pa.string()) for name in names])
        return DuckSession(self._connection, "given.copy", schema, columns)


@dataclass(frozen=True)
class DuckSession:
    """A :class:`jobs.data.sql.engine.Session`.

    schema:   the types by which cells become text; None: those that DuckDB gives.
    columns:  how columns are called in SQL; without: by their names.
    """

    _connection: Any = field(repr=False)
    table: str
    schema: pa.Schema | None = None
    columns: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    @cached_property
    def found(self) -> pa.Schema:
        """The columns of the table as DuckDB gives them, in order."""
        with self._connection.sql(f"SELECT * FROM {self.table} LIMIT 0").to_arrow_reader() as reader:  # noqa: S608
            return reader.schema

    def _type(self, name: str) -> pa.DataType:
        """By which type cells become text."""
        kind = (self.schema or self.found).field(name).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def key(self, name: str) -> str:
        kind, column = self._type(name), self.columns.get(name, quoted(name))
        if pa.types.is_floating(kind):  # to SQL -0 is 0
            return f"CAST({column} AS VARCHAR)"
        return f"coalesce(CAST({column} AS VARCHAR) COLLATE C, '')" if _is_text(kind) else column

    def texts(self, name: str, keys: pa.Array) -> pa.DictionaryArray:
        kind = self._type(name)
        return as_text(keys if _is_text(kind) or keys.type == kind else pc.cast(keys, kind))

    def number(self, name: str) -> tuple[str, str] | None:
        kind, column = self._type(name), self.columns.get(name, quoted(name))
        if pa.types.is_float64(kind):
            return column, f"isnan({column})"
        return (f"CAST({column} AS DOUBLE)", "FALSE") if pa.types.is_integer(kind) else None

    def query(self, sql: str) -> Iterator[pa.RecordBatch]:
        with self._connection.sql(sql).to_arrow_reader(_ROWS) as reader:
            yield from reader

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        keys = ", ".join(f"{self.key(name)} AS {quoted(name)}" for name in names)
        return self.query(f"SELECT {keys} FROM {self.table}")  # noqa: S608

    def look_up(self, keys: pa.Array, codes: pa.Array) -> str:
        name = f"look_up_{next(self._numbers)}"
        self._connection.register(name, pa.table({"cell": keys, "code": codes}))
        return name


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
