"""`data` in the configuration of a party: which source it names, and under which name the ledger has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.data.arrow_file import ArrowFile
from jobs.data.postgres import Postgres
from jobs.data.sources import Csv, Parquet, Source
from jobs.data.sql.duck_tables import DuckDb
from jobs.data.sql.spark_tables import Spark
from party.owner.data import Data


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"csv": {"path": "/t.csv"}}, Csv(Path("/t.csv"))),
        ({"csv": {"path": "/t.csv", "delimiter": ";"}}, Csv(Path("/t.csv"), ";")),
        ({"parquet": {"path": "/t.parquet"}}, Parquet(Path("/t.parquet"))),
        ({"arrow": {"path": "/t.feather"}}, ArrowFile(Path("/t.feather"))),
        ({"postgres": {"dsn_env": "A", "table": "b.c"}}, Postgres("A", table="b.c")),
        ({"postgres": {"dsn_env": "A", "query": "SELECT 1"}}, Postgres("A", "SELECT 1")),
        ({"spark": {"master": "spark://h:7077", "table": "a.b"}}, Spark("spark://h:7077", "a.b")),
        ({"spark": {"master": "local[2]", "path": "/t"}}, Spark("local[2]", path="/t")),
        ({"duckdb": {"path": "/t/*.parquet"}}, DuckDb(Path("/t/*.parquet"))),
        (
            {"duckdb": {"path": "/t.db", "table": "stays", "memory_limit": "500MB", "delimiter": ";"}},
            DuckDb(Path("/t.db"), "500MB", ";", "stays"),
        ),
    ],
)
def test_every_key_names_a_source(fields: dict[str, Any], source: Source) -> None:
    assert Data.model_validate(fields).source == source
    assert Data.model_validate(source.settings()).source == source


@pytest.mark.parametrize(
    "fields", [{}, {"csv": {"path": "a"}, "parquet": {"path": "b"}}, {"name": "patients"}]
)
def test_there_is_one_source(fields: dict[str, Any]) -> None:
    with pytest.raises(
        ValidationError,
        match="give exactly one of `csv`, `parquet`, `arrow`, `duckdb`, `postgres` and `spark`",
    ):
        Data.model_validate(fields)


def test_a_data_set_is_its_name_or_its_path_behind_all_links(tmp_path: Path) -> None:
    (tmp_path / "t.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    table = {"csv": {"path": str(tmp_path / "link.csv")}}
    assert Data.model_validate(table).data_set == str((tmp_path / "t.csv").resolve())
    assert Data.model_validate({"name": "patients", **table}).data_set == "patients"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"table": "a.b"}, "Field required"),
        ({"master": "local[2]"}, "give exactly one of `table` and `path`"),
        ({"master": "local[2]", "table": "a.b", "path": "/t"}, "give exactly one of `table` and `path`"),
        ({"master": "local[2]", "path": "/t.csv"}, "rules of its own"),
        ({"master": "local[2]", "path": "t.parquet"}, "write an absolute path"),
        ({"master": "local[2]", "path": "/t/*.parquet"}, "no pattern"),
        ({"master": "local[2]", "path": "s3a://key:secret@clinic/t"}, "without a password"),
        ({"master": "local[2]", "table": "b"}, "write database.name"),
        ({"master": "mesos://h", "table": "a.b"}, "write spark://HOST:PORT, yarn"),
        ({"master": "spark://h", "table": "a.b"}, "write spark://HOST:PORT, yarn"),
    ],
)
def test_a_table_that_spark_could_not_read(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Data.model_validate({"spark": fields})
