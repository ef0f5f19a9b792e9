"""Errors of the Python interface have the ids of the catalogue, and speak of arguments."""

from __future__ import annotations

import pickle

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
