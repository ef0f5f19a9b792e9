"""Functions that are imported when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.later import _Function, _Module, later
from jobs.lkc.methods import METHODS
from jobs.modes import MODES

FACADES = (
    "dp.charged",
    "dp.model",
    "lkc.methods",
    "lkc.model",
    "modes",
    "partitions",
    "sequences.model",
    "synthetic.model",
)


def test_it_is_the_function_of_the_module() -> None:
    dumps = later("json").dumps
    assert dumps({"a": 1}, indent=None) == '{"a": 1}'
    with pytest.raises(ValueError, match="Expecting value"):
        later("json").loads("nothing")


def functions_of(holder: Any) -> Iterator[_Function]:
    yield from (each for each in vars(holder).values() if isinstance(each, _Function))


@pytest.mark.parametrize("name", FACADES)
def test_what_is_stood_for_is_there(name: str) -> None:
    facade = importlib.import_module(f"jobs.{name}")
    named = [*functions_of(facade), *(each for each in vars(facade).values() if isinstance(each, _Module))]
    assert named
    for each in named:
        if isinstance(each, _Function):
            assert callable(getattr(importlib.import_module(each.module), each.name))
        else:
            importlib.import_module(each.name)


@pytest.mark.parametrize("row", [*MODES, *METHODS.values()], ids=lambda row: getattr(row, "name", "method"))
def test_every_row_names_functions_that_are_there(row: Any) -> None:
    for each in functions_of(row):
        assert callable(getattr(importlib.import_module(each.module), each.name))
