"""Where an owner's table is: `data` in the configuration of a party.

Each field says what it means, its unit, and what a bad value costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, model_validator

from jobs.data.arrow_file import ArrowFile
from jobs.data.sources import Csv, Parquet, Source
from jobs.data.sql.duck_tables import MEMORY_LIMIT, DuckDb
from jobs.database import PostgresTable, SparkTable
from jobs.fields import Delimiter, Fields, FilePath, MemoryLimit, Name


class TableFile(Fields):
    """A table in a file."""

    path: FilePath = Field(description="The file; a CSV may end in .gz.")
    delimiter: Delimiter = Field(
        default=",",
        description="csv: the separator, one ASCII character but no quote.",
    )


class DuckTable(Fields):
    """A table that DuckDB reads."""

    path: FilePath = Field(
        description="A file; a folder, with all Parquet or all CSV files in it and below (folders NAME=VALUE are "
        "columns); a pattern as `stays/*.parquet`; or a database of DuckDB or SQLite."
    )
    table: str | None = Field(
        default=None, min_length=1, description="The table or view, where the path is a database."
    )
    memory_limit: MemoryLimit = Field(
        default=MEMORY_LIMIT,
        description="How much memory DuckDB takes, as `2GB`; besides, the daemon holds what a job makes of the rows. "
        "Too small: it is slow, or runs out of memory where it cannot spill.",
    )
    delimiter: Delimiter = Field(
        default=",",
        description="CSV files: the separator, one ASCII character but no quote.",
    )


@dataclass(frozen=True)
class Opened:
    """Marks a key of :class:`Data` that names a source. ``by``: makes the source of what the key holds."""

    by: Callable[[Any], Source]


class Data(Fields):
    """Where the table is: exactly one of these."""

    name: Name | None = Field(
        default=None,
        description="Name of the data set in the privacy ledger; default its path behind all links, or "
        "the database with the table or the SHA-256 of the query. Another name is another budget.",
    )
    csv: Annotated[TableFile | None, Opened(lambda file: Csv(file.path, file.delimiter))] = Field(
        default=None, description="UTF-8 text with a header line."
    )
    parquet: Annotated[TableFile | None, Opened(lambda file: Parquet(file.path))] = Field(
        default=None, description="An Apache Parquet file."
    )
    arrow: Annotated[TableFile | None, Opened(lambda file: ArrowFile(file.path))] = Field(
        default=None, description="An Arrow file, as Feather (version 2) is one."
    )
    duckdb: Annotated[
        DuckTable | None, Opened(lambda t: DuckDb(t.path, t.memory_limit, t.delimiter, t.table))
    ] = Field(
        default=None,
        description="A table that need not fit into memory, or of many files, or in a database: with DuckDB (extra "
        "`jointcut[duckdb]`).",
    )
    postgres: Annotated[PostgresTable | None, Opened(lambda table: table.source)] = Field(
        default=None, description="A table in PostgreSQL."
    )
    spark: Annotated[SparkTable | None, Opened(lambda table: table.source)] = Field(
        default=None, description="A table that Spark reads (extra `jointcut[spark]`)."
    )

    @classmethod
    def _kinds(cls) -> Mapping[str, Opened]:
        """Every key that names a source."""
        fields = cls.model_fields.items()
        return {key: how for key, field in fields for how in field.metadata if isinstance(how, Opened)}

    @model_validator(mode="after")
    def _exactly_one(self) -> Data:
        self.only_one_of(*self._kinds())
        return self

    @property
    def source(self) -> Source:
        """The table, as the two passes take it."""
        key = self.only_one_of(*self._kinds())
        return self._kinds()[key].by(getattr(self, key))

    @property
    def data_set(self) -> str:
        """Under which name the privacy ledger keeps the table."""
        return self.name or self.source.identity
