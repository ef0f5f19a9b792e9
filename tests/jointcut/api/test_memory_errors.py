"""Errors about a table in memory name its rows and columns, and no file; wrong arguments have sentences of ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import jointcut as jc
from jointcut.api.wording import in_memory

AGE = jc.Column(role="qid", numeric=jc.Numeric(min=0, max=100, step=25))
SEX = jc.Column(role="qid", suppress=["f", "m"])
DAY = jc.Column(role="qid", dates=jc.Dates(start="2024-01-01", to="2025-01-01", step="1mo"))
TABLE = pd.DataFrame({"age": [20, 30, 60, 70], "sex": ["f", "m", "f", "m"]}, index=["p1", "p2", "p3", "p4"])
OF_FILES = re.compile(
    r"\bfile looks|delimiter|beside the path|under `data`|header|\bline\b|check the file|configuration"
)
OF_PYDANTIC = re.compile(
    r"[Ii]nput should|tring should|ist should|valid (integer|number|string|list)|unable to parse"
)


def job(**keys: Any) -> jc.Job:
    fields = {
        "name": "visits",
        "model": jc.Lkc(L=1, K=2),
        "goal": "general",
        "columns": {"age": AGE, "sex": SEX},
    }
    return jc.Job(**{**fields, **keys})


def joint(**keys: Any) -> jc.Job:
    return job(partition="horizontal", parties={"north": jc.Party(), "south": jc.Party()}, **keys)


def raised(call: Callable[[], object]) -> jc.Error:
    with pytest.raises(jc.Error) as error:
        call()
    return error.value


@pytest.mark.parametrize(
    ("table", "keys", "private"),
    [
        (TABLE.assign(sex=["f", "m", "x", "m"]), {}, "row with the label 'p3' (position 2): 'x'"),
        (TABLE.assign(age=["20", "a", "60", "70"]), {}, "row with the label 'p2' (position 1): 'a'"),
        (TABLE.assign(age=["20,5", "30,5", "60", "70"]), {}, "row with the label 'p1' (position 0): '20,5'"),
        (TABLE.assign(day="31.12.2024"), {"columns": {"day": DAY}}, "position 0): '31.12.2024'"),
        (
            TABLE.set_axis([7, 5, 9, 3]).assign(sex=["f", "m", "x", "m"]),
            {},
            "row with the label 9 (position 2): 'x'",
        ),
        (TABLE.assign(sex=["f", "NA", "m", "m"]), {}, "'NA'; if the value is missing, leave the cell empty"),
        (pl.DataFrame({"age": [1, 2], "sex": ["f", "x"]}), {}, "row 2 (position 1): 'x'"),
        (
            pd.DataFrame({"age;sex": ["20;f"]}),
            {},
            "your table: it has age;sex; the name looks like several names",
        ),
        (TABLE[[]], {}, "your table has no column"),
        (TABLE.iloc[:0], {}, "0 rows read"),
    ],
)
def test_errors_name_rows_of_the_table(table: Any, keys: dict[str, Any], private: str) -> None:
    error = raised(lambda: jc.anonymize(table, job(**keys)))
    assert private in error.private
    assert not OF_FILES.search(f"{error} {error.private}"), f"{error} {error.private}"


@pytest.mark.parametrize("in_process", [True, pytest.param(False, marks=pytest.mark.more)])
@pytest.mark.parametrize("wrong", ["north", "south"])
def test_an_error_of_a_party_has_the_row_of_its_table(wrong: str, in_process: bool) -> None:
    tables = {"north": TABLE, "south": TABLE.reset_index(drop=True)}
    tables[wrong] = tables[wrong].assign(sex=["f", "m", "x", "m"])
    error = raised(lambda: jc.simulate(joint(), tables, in_process=in_process))
    label = "'p3'" if wrong == "north" else "2"
    assert error.private in (f"row with the label {label} (position 2): 'x'", "row 3 (position 2): 'x'")
    assert (error.party is None) == ("label" not in error.private)
    assert error.remedy.startswith(
        "correct the value in your table (None for a missing cell), or change the job: "
    )


def test_an_error_about_a_file_keeps_its_words(tmp_path: Path) -> None:
    TABLE.assign(sex=["f", "m", "x", "m"]).to_csv(tmp_path / "table.csv")
    error = raised(lambda: jc.anonymize(tmp_path / "table.csv", job()))
    assert error.private == "table.csv, line 4: 'x'"
    error = raised(lambda: jc.simulate(joint(), {"north": TABLE, "south": tmp_path / "table.csv"}))
    assert error.private == "table.csv, line 4: 'x'"


def test_quoted_values_stay() -> None:
    """A value may look like a place."""
    said = in_memory("row 3: 'row 4: x', row 1,200: 'y'", lambda row: f"<{row}>")
    assert said == "<2>: 'row 4: x', <1199>: 'y'"


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        (
            "K",
            "5,10",
            "K='5,10': write a whole number, e.g. 5. What to do: give a value, or a list of values: K=[5, 10]",
        ),
        ("K", 0, "K=0: write a number from 1 on"),
        ("K", [5, 2.5], "K=2.5: write a whole number"),
        ("L", "some", "L='some': write a whole number above 0, e.g. 5, or `all`"),
        ("C", {"ill": 0.5}, "C={'ill': 0.5}: "),
        ("goal", "best", "goal='best': write 'general' or 'classification'"),
    ],
)
def test_wrong_requirements_have_our_sentences(argument: str, value: Any, said: str) -> None:
    error = raised(lambda: jc.explore(job(), TABLE, **{argument: value}))
    assert said in str(error)
    assert not OF_PYDANTIC.search(str(error))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (lambda: jc.Column(role="qid", separator=""), "write a text of 1 or more characters"),
        (lambda: jc.Normalize(strip_prefix="é" * 65), "write a text of at most 64 characters"),
    ],
)
def test_lengths_have_our_sentences(part: Callable[[], object], said: str) -> None:
    error = raised(part)
    assert said in str(error)
    assert not OF_PYDANTIC.search(str(error))


@pytest.mark.parametrize("keys", [{"splits": "5"}, {"splits": 2.5}, {"seed": "a"}, {"scores": 5}])
def test_wrong_arguments_of_evaluate_are_told(keys: dict[str, Any]) -> None:
    (name,) = keys
    assert raised(lambda: jc.evaluate(job(), TABLE, **keys)).message.startswith(f"{name}=")
