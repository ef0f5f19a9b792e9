"""`data` in the configuration of a party: which source it names, and under which name the ledger has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.data.dialect import Dialect
from jobs.data.sources import Csv, Excel, Feather, Parquet, Source
from jobs.data.wording import Wording
from party.owner.data import Data


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"csv": {"path": "/t.csv"}}, Csv(Path("/t.csv"))),
        (
            {"csv": {"path": "/t.csv", "delimiter": ";", "quote": "'", "encoding": "cp1252", "decimal": ","}},
            Csv(Path("/t.csv"), Wording(decimal=","), Dialect(";", "'", "cp1252")),
        ),
        (
            {
                "parquet": {
                    "path": "/t.parquet",
                    "missing": ["NA"],
                    "rename": {"a": "b"},
                    "map": {"b": {"1": "x"}},
                }
            },
            Parquet(Path("/t.parquet"), Wording(("NA",), rename={"a": "b"}, values={"b": {"1": "x"}})),
        ),
        (
            {"feather": {"path": "/t.feather", "true": ["1"]}},
            Feather(Path("/t.feather"), Wording(true=("1",))),
        ),
        ({"excel": {"path": "/t.xlsx", "sheet": "S"}}, Excel(Path("/t.xlsx"), sheet="S")),
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
        match="give exactly one of `duckdb`, `postgres`, `spark`, `csv`, `parquet`, `feather` and `excel`",
    ):
        Data.model_validate(fields)


def test_a_data_set_is_its_name_or_its_path_behind_all_links(tmp_path: Path) -> None:
    (tmp_path / "t.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    table = {"csv": {"path": str(tmp_path / "link.csv")}}
    assert Data.model_validate(table).data_set == str((tmp_path / "t.csv").resolve())
    assert Data.model_validate({"name": "patients", **table}).data_set == "patients"
