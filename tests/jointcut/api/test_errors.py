"""Errors of the Python interface have the ids of the catalogue, and speak of arguments."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import jointcut as jc
from anonymize.errors import DataError
from jobs.errors import CATALOGUE, ConfigError, PartyError, Problem
from jointcut.api.errors import told


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("lower epsilon, or allow more with `--budget`", "lower epsilon, or allow more with `budget`"),
        ("leave --as-records out", "leave as_records out"),
        ("--class x: is given twice", "class_ x: is given twice"),
        ("run: coordinator run JOB --out DIR", "run: jointcut.anonymize"),
        ("`coordinator budget JOB`; or say `--ledger`", "`jointcut.budget`; or say `ledger`"),
        ("fit a model: coordinator clusters fit", "fit a model: coordinator clusters fit"),
        ("each owner looks with `party budget --accept`", "each owner looks with `party budget --accept`"),
        ("see the command with --help", "see help() of the function"),
        ("the coordinator alone receives", "the coordinator alone receives"),
        ("the coordinator run by north", "the coordinator run by north"),
    ],
)
def test_options_are_arguments(said: str, shown: str) -> None:
    error = jc.Error(Problem("usage", said, remedy=said))
    assert (error.message, error.remedy) == (shown, shown)
    assert shown in str(error)


@pytest.mark.parametrize("error_id", CATALOGUE)
def test_every_error_of_the_catalogue_is_told(error_id: str) -> None:
    inner = PartyError(error_id, "a fault", party="north", phase="read", column="age", private="secret 7")
    with pytest.raises(jc.Error) as raised, told():
        raise inner
    error = raised.value
    assert (error.id, error.message, error.party, error.column) == (error_id, "a fault", "north", "age")
    assert error.where == "north, phase read, column age"
    assert error.remedy
    assert error.exit_code == CATALOGUE[error_id].exit_code
    assert error.private == "secret 7"
    assert "secret" not in f"{error}{error!r}"
    assert str(error).endswith("More for the owner of the table: `error.private`.")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own bytes
    assert (str(again), again.private) == (str(error), error.private)


def test_errors_of_all_layers_are_told() -> None:
    for inner, error_id in (
        (DataError("data-empty", "no row"), "data-empty"),
        (ConfigError("usage", "wrong"), "usage"),
        (PermissionError(13, "no", "/x"), "io-failed"),
    ):
        with pytest.raises(jc.Error) as raised, told():
            raise inner
        assert raised.value.id == error_id


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), told():
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), told():
        raise KeyboardInterrupt


SEX = {"sex": jc.Column(role="qid", suppress=["f", "m"])}
TABLE = pd.DataFrame({"sex": ["f", "m"] * 6})


def single(**keys: Any) -> jc.Job:
    return jc.Job(**{"name": "visits", "model": jc.Lkc(L=1, K=2), "goal": "general", "columns": SEX, **keys})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: jc.Dp(method="synthetic", epsilon=1), "write jointcut.Synthetic(epsilon=...)"),
        (lambda: jc.Dp(epsilon=20, specializations=3), "say `accept_large_epsilon=True` to consent"),
        (
            lambda: jc.Column("qid"),
            "Column: a value has no key. What to do: write the key: jointcut.Column(role=",
        ),
        (lambda: single(columns={}), "name 1 or more columns, e.g. {sex: {role: qid, suppress: [F, M]}}."),
        (lambda: jc.Clock(to="5 days", step="6h"), "with `relative=True` a length of time, e.g. 14d or 36h"),
        (
            lambda: jc.Column(role="time", relative=True, clock=jc.Clock(to="2026-01-31T14:05", step="6h")),
            "leave `start` and `fold` out, and write a length of time at `to`, e.g. 14d",
        ),
        (
            lambda: jc.Column(role="sensitive", domain=["a"], values=["b"]),
            "and 'b' is not. What to do: add the value to `domain`, or leave the value out of `values`",
        ),
        (
            lambda: single(name="a/b"),
            "What to do: write a name of letters, digits, dots, dashes and underscores",
        ),
        (lambda: single(goal="classification"), 'What to do: add the column, or say `goal="general"`'),
        (
            lambda: single(columns={"a\u200bb": SEX["sex"]}),
            "write the text without the character, in the job and",
        ),
        (lambda: single(columns={"=a+1": SEX["sex"]}), "write a text that begins with a letter or a digit"),
        (lambda: single(columns={"x" * 300: SEX["sex"]}), "write at most 256 characters"),
        (lambda: jc.evaluate(single(), TABLE), "write `role: class` at the column"),
        (
            lambda: jc.anonymize(None, single()),
            "give a path, a DataFrame of pandas or polars, or an Arrow table",
        ),
    ],
)
def test_an_error_says_what_to_write(wrong: Callable[[], object], words: str) -> None:
    with pytest.raises(jc.Error) as raised:
        wrong()
    assert words in str(raised.value)


def test_a_table_given_in_python_needs_no_name() -> None:
    """Neither in a dict, nor where the job becomes a job of several holders."""
    keys = {"version": 1, "name": "visits", "partition": "single", "goal": "general"}
    keys |= {"model": {"lkc": {"L": 1, "K": 2}}, "columns": {"sex": {"role": "qid", "suppress": ["f", "m"]}}}
    assert len(jc.anonymize(TABLE, keys).table) == len(TABLE)
    parties = {"north": jc.Party(), "south": jc.Party()}
    for job in (single(), single(data="t.csv")):
        joint = job.with_(partition="horizontal", parties=parties)
        assert joint.settings.data is None
    text = single().to_yaml()
    assert text.startswith("# `data: table.csv` stands for a table given in Python.\n")
    assert jc.Job.from_yaml(text) == single()
    assert "stands for" not in single(data="t.csv").to_yaml()
    assert "stands for" not in joint.to_yaml()


@pytest.mark.parametrize(
    ("column", "value", "remedy"),
    [
        (
            jc.Column(role="qid", numeric=jc.Numeric(min=0, max=10, step=1)),
            99,
            "or widen `min` and `max`; if",
        ),
        (
            jc.Column(role="qid", dates=jc.Dates(start="2024-01-01", to="2025-01-01", step="1mo")),
            "1999-01-01",
            "or widen `from` and `to`; if",
        ),
    ],
)
def test_a_value_outside_is_told_with_the_ends_of_its_domain(
    column: jc.Column, value: object, remedy: str
) -> None:
    with pytest.raises(jc.Error) as raised:
        jc.anonymize(pd.DataFrame({"x": [value] * 4}), single(columns={"x": column}))
    assert remedy in raised.value.remedy
    assert "clock" not in raised.value.remedy
