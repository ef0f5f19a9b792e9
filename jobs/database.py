"""A table in a database or a cluster, as a job and a party's configuration name it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from jobs.data.postgres import Postgres
from jobs.data.sql.spark_tables import Spark
from jobs.fields import Fields, in_form

VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
Variable = Annotated[str, *in_form(VARIABLE, "write the name of a variable, not what is in it")]
SchemaTable = Annotated[str, *in_form(r"^[^.]+\.[^.]+$", "write schema.name, e.g. public.stays")]
SparkMaster = Annotated[
    str,
    *in_form(
        r"^(local(\[([1-9][0-9]*|\*)\])?|spark://[^\s@/?#,]+:[0-9]+(,[^\s@/?#,]+:[0-9]+)*|yarn|k8s://[^\s@]+)$",
        "write spark://HOST:PORT, yarn, k8s://HOST:PORT or local[N]",
    ),
]
CatalogTable = Annotated[
    str, *in_form(r"^[^.]+(\.[^.]+){1,2}$", "write database.name or catalog.database.name")
]
SparkPath = Annotated[
    str,
    *in_form(
        r"^(/|[a-z][a-z0-9+.-]*://?)[^:\s*?\[{]+$",
        "write an absolute path, or one with a scheme as hdfs://; without a password, and no pattern",
    ),
]


class PostgresTable(Fields):
    """A table in PostgreSQL: by its name, or what a query makes of several."""

    dsn_env: Variable = Field(
        description="The name of the variable of the environment that has the database's address: "
        "postgresql://USER:PASSWORD@HOST:PORT/DATABASE. The address itself stands in no file.",
    )
    table: SchemaTable | None = Field(
        default=None,
        description="schema.name of a table or view, in the case that the database has it in.",
    )
    query: str | None = Field(
        default=None,
        min_length=1,
        description="Instead of `table`: one SELECT that gives the rows. It should give the same rows each time.",
        repr=False,
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> PostgresTable:
        self.only_one_of("table", "query")
        return self

    @property
    def source(self) -> Postgres:
        """The table, as the two passes take it."""
        return Postgres(self.dsn_env, self.query, self.table)


class SparkTable(Fields):
    """A table that Spark reads, on a cluster or here."""

    master: SparkMaster = Field(
        description="The cluster: spark://HOST:PORT, yarn or k8s://…; or local[N], N threads of this machine.",
    )
    table: CatalogTable | None = Field(
        default=None,
        description="database.name of a table or view in the catalog that Spark's own configuration names.",
    )
    path: SparkPath | None = Field(
        default=None,
        description="Instead of `table`: a Parquet file, or a folder of them; absolute, or with the scheme of a file "
        "system, as hdfs://namenode/clinic/stays.",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> SparkTable:
        self.only_one_of("table", "path")
        if self.path is not None and self.path.lower().endswith((".csv", ".csv.gz")):
            raise ValueError("Spark reads CSV by rules of its own: give it Parquet or a table, or use `csv`")
        return self

    @property
    def source(self) -> Spark:
        """The table, as the two passes take it."""
        return Spark(self.master, self.table, self.path)
