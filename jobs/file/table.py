"""Keys about a table: its file or the engine with the table, and the owner's words for names and values."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from jobs.data.dialect import Dialect
from jobs.data.wording import Wording
from jobs.file.fields import DELIMITER, DateForm, Fields, FilePath, Name

if TYPE_CHECKING:
    from pathlib import Path

    from jobs.data.sources import Source


def _known_encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError as error:
        raise ValueError("write the name of a text encoding, such as utf-8, cp1252 or utf-16") from error


class WordedFile(Fields):
    """Keys for the words of a table: every kind of file has these."""

    missing: tuple[str, ...] = Field(
        default=(),
        description="Texts that mean a missing cell in every column, besides an empty cell and `?`: NA, -9, ...",
    )
    true: tuple[str, ...] = Field(
        default=(), description="Texts that mean the value `true`: TRUE, 1, yes, ..."
    )
    false: tuple[str, ...] = Field(default=(), description="Texts that mean the value `false`.")
    decimal: Literal[".", ","] | None = Field(
        default=None,
        description="The sign before the fraction of a number. Unset: found in the head of a CSV, with a note.",
    )
    rename: dict[str, str] = Field(
        default={}, description="The job's name of a column, by its name in the table: {kunde: customer}."
    )
    map: dict[str, dict[str, str]] = Field(
        default={},
        description="The job's values, by column (its name in the job) and value in the table: {sex: {1: M, 2: F}}. "
        "Other values stay.",
    )

    dates: dict[str, DateForm] = Field(
        default={},
        description="The form of the dates in the table, by column (its name in the job), where the job has another "
        "form: {admitted: DD.MM.YYYY}.",
    )

    @property
    def wording(self) -> Wording:
        return Wording(self.missing, self.true, self.false, self.rename, self.map, self.dates, self.decimal)


class TextFile(WordedFile):
    """Keys of a text file."""

    delimiter: str | None = Field(
        default=None,
        pattern=DELIMITER,
        description="csv: the separator, one ASCII character but no quote. Unset: found in the first lines (a comma, "
        "`;`, a tab or `|`), with a note.",
    )
    quote: str = Field(
        default='"', pattern=r"^[!-~]$", description="csv: the sign around values that hold the separator."
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] | None = Field(
        default=None,
        description="csv: the encoding of the text, such as utf-8, cp1252 or utf-16. Unset: UTF-8 or UTF-16; a text "
        "that is neither is read as cp1252 (Windows and Latin-1), with a note.",
    )

    @property
    def dialect(self) -> Dialect:
        return Dialect(self.delimiter, self.quote, self.encoding)


_LEAST_MB = 200
MEMORY = r"^[1-9][0-9]*(MB|GB)$"
SPARK_MASTER = r"^(local(\[([1-9][0-9]*|\*)\])?|spark://\S+|yarn|k8s://\S+)$"


def _memory(said: str) -> str:
    """Refuse another form of a memory limit. Raises ValueError."""
    if not re.fullmatch(MEMORY, said):
        raise ValueError(f"{said!r} is no memory limit: write a whole number with MB or GB, as 500MB or 2GB")
    if said.endswith("MB") and int(said.removesuffix("MB")) < _LEAST_MB:
        raise ValueError(f"{said} is too little memory for DuckDB: write {_LEAST_MB}MB or more")
    return said


class DuckDbTable(WordedFile):
    """A table that DuckDB reads from files."""

    path: FilePath = Field(
        description="The files: a path, a pattern such as visits/*.parquet, or a folder of Parquet or CSV files. "
        "Folders in it named KEY=VALUE are columns, too. Or a single SQLite file."
    )
    table: str | None = Field(
        default=None,
        min_length=1,
        description="The name of a table or view, for a SQLite file. A file with one table needs no name.",
    )
    memory_limit: Annotated[
        str, AfterValidator(_memory), WithJsonSchema({"type": "string", "pattern": MEMORY})
    ] = Field(
        default="2GB",
        description="The memory of the engine, as 500MB or 2GB. Beyond it DuckDB uses the disk.",
    )


class PostgresTable(WordedFile):
    """A table or query of a PostgreSQL server."""

    dsn_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="The name of the environment variable with the connection string (libpq: a URI or key=value).",
    )
    dsn_file: FilePath | None = Field(
        default=None, description="A file of mode 0600 with the connection string, instead of `dsn_env`."
    )
    query: str | None = Field(default=None, description="A SELECT that gives the table.")
    table: str | None = Field(
        default=None, description="The name of the table, or schema.table, instead of `query`."
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for first, second in (("dsn_env", "dsn_file"), ("query", "table")):
            given = [key for key in (first, second) if getattr(self, key) is not None]
            if len(given) != 1:
                raise ValueError(f"give `{first}` or `{second}`: {' and '.join(given) or 'neither'} is there")
        return self


class SparkTable(WordedFile):
    """A table that a cluster of Spark reads."""

    master: str = Field(
        pattern=SPARK_MASTER,
        description="The cluster: spark://HOST:PORT, yarn, k8s://..., or local[2] for two cores of this machine.",
    )
    table: str | None = Field(
        default=None,
        description="The name of the table in Spark's catalog, or schema.table, instead of `path`.",
    )
    path: str | None = Field(
        default=None,
        min_length=1,
        description="The files: a path, a pattern such as visits/*.parquet, or a folder of Parquet or CSV files. "
        "With a scheme (hdfs:, s3a:) wherever the cluster finds them. Folders named KEY=VALUE are columns, too.",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.table is None) == (self.path is None):
            raise ValueError(
                f"give `table` or `path`: {'neither' if self.table is None else 'table and path'} is there"
            )
        return self


@dataclass(frozen=True)
class Opened:
    """Mark of a key that names a source.

    by:     makes the source from the key's value, the name of the data set, and the folder of its ledger.
    named:  True if nothing but `name` identifies the data set.
    """

    by: Callable[[Any, str, Path], Source]
    named: bool = False


def _duckdb(table: DuckDbTable, name: str, home: Path) -> Source:
    from jobs.data.duckdb import DuckDb

    return DuckDb(name, home, table.wording, home / table.path, table.memory_limit, table.table)


def _postgres(table: PostgresTable, name: str, home: Path) -> Source:
    from jobs.data.postgres import Dsn, Postgres

    dsn = Dsn(table.dsn_env, None if table.dsn_file is None else home / table.dsn_file)
    return Postgres(name, home, table.wording, dsn=dsn, query=table.query, table=table.table)


def _spark(table: SparkTable, name: str, home: Path) -> Source:
    from jobs.data.spark import Spark, located

    path = None if table.path is None else located(table.path, home)
    return Spark(name, home, table.wording, table.master, table.table, path)


class Held(Fields):
    """Keys of which exactly one names a source."""

    name: Name | None = Field(
        default=None,
        description="Name of the data set in the privacy ledger. Another name has another budget. A file has its "
        "path behind all links by default; for `duckdb`, `postgres` and `spark` the name is required.",
    )
    duckdb: Annotated[DuckDbTable | None, Opened(_duckdb, named=True)] = Field(
        default=None,
        description="Parquet and CSV files of any size and number, or a SQLite file, read by DuckDB. "
        "Needs `jointcut[duckdb]`.",
    )
    postgres: Annotated[PostgresTable | None, Opened(_postgres, named=True)] = Field(
        default=None, description="A PostgreSQL server. Needs `jointcut[postgres]`."
    )
    spark: Annotated[SparkTable | None, Opened(_spark, named=True)] = Field(
        default=None, description="A cluster of Spark. Needs `jointcut[spark]` and Java."
    )

    @classmethod
    def kinds(cls) -> Mapping[str, Opened]:
        """Return every key that names a source."""
        fields = cls.model_fields.items()
        return {key: how for key, field in fields for how in field.metadata if isinstance(how, Opened)}

    @property
    def kind(self) -> str:
        """Key that is given."""
        return next(key for key in self.kinds() if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [key for key in self.kinds() if getattr(self, key) is not None]
        if len(given) != 1:
            *others, last = (f"`{key}`" for key in self.kinds())
            raise ValueError(f"give exactly one of {', '.join(others)} and {last}")
        if self.kinds()[given[0]].named and self.name is None:
            raise ValueError(
                f"give `name`, too: only a name identifies the table of `{given[0]}` in the ledger"
            )
        return self

    @property
    def wording(self) -> Any:
        """Words of the table's owner."""
        return getattr(self, self.kind).wording

    def opened(self, home: Path) -> Source:
        """Return the table, in the form for the two passes. home: the folder of a single holder's ledger."""
        source: Source = self.kinds()[self.kind].by(getattr(self, self.kind), self.name or "", home)
        return source
