"""No array of data stands in a `repr`: of every dataclass, whoever adds one (CONTRIBUTING.md, rule 3)."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

import anonymize
import coordinator
import evaluation
import jobs
import party
from anonymize.release import Release
from anonymize.table import Ints

ARRAYS = (np.ndarray, pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)
# Circuits of `crypto` are public, and what is not has tests of its own there.
PACKAGES = (anonymize, jobs, party, coordinator, evaluation)


def classes_of(package: ModuleType) -> Iterator[type]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        for each in vars(module).values():
            if isinstance(each, type) and each.__module__ == found.name:
                yield each


def hints_of(kind: type) -> dict[str, Any]:
    """The types of a class's fields, also those that its module imports for the type checker alone."""
    later: dict[str, Any] = {}
    for module in {sys.modules[each.__module__] for each in kind.__mro__} - {builtins}:
        later |= _imported_for_types(module)
    return get_type_hints(kind, localns=later)


@cache
def _imported_for_types(module: ModuleType) -> dict[str, Any]:
    later: dict[str, Any] = {}
    blocks = (node for node in ast.parse(_text_of(module)).body if isinstance(node, ast.If))
    for block in (each for each in blocks if ast.unparse(each.test) == "TYPE_CHECKING"):
        imported = [each for each in block.body if isinstance(each, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imported, []), module.__name__, "exec"), later)  # noqa: S102  our own imports
    later.pop("__builtins__", None)
    return later


def _text_of(module: ModuleType) -> str:
    ours = module.__name__.partition(".")[0] in {package.__name__ for package in PACKAGES}
    return inspect.getsource(module) if ours else ""


def has_array(kind: Any) -> bool:
    """Return True if an array may stand somewhere in values of a type."""
    origin = get_origin(kind)
    if any(each in ARRAYS for each in (kind, origin)):
        return True
    return origin is not Callable and any(map(has_array, get_args(kind)))


def shown_of(kind: type) -> Iterator[str]:
    """The fields of which a generated `repr` shows the value."""
    if dataclasses.is_dataclass(kind):
        if hasattr(kind.__repr__, "__wrapped__"):  # not a class's own
            yield from (field.name for field in dataclasses.fields(kind) if field.repr)
    elif issubclass(kind, tuple):
        yield from getattr(kind, "_fields", ())


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_no_array_is_in_a_repr(package: ModuleType) -> None:
    found = []
    for kind in classes_of(package):
        hints = hints_of(kind)
        found += [
            f"{kind.__module__}.{kind.__qualname__}.{name}"
            for name in shown_of(kind)
            if has_array(hints[name])
        ]
    assert found == []


@dataclasses.dataclass
class Shows:
    number: int
    hidden: Ints = dataclasses.field(repr=False)
    counts: dict[str, tuple[Ints, ...]] | None = None


@dataclasses.dataclass
class SaysItself:
    codes: Ints

    def __repr__(self) -> str:
        return "SaysItself()"


class Row(NamedTuple):
    codes: Ints


def test_which_fields_count() -> None:
    def of(kind: type) -> list[str]:
        return [name for name in shown_of(kind) if has_array(hints_of(kind)[name])]

    assert (of(Shows), of(SaysItself), of(Row), of(Release)) == (["counts"], [], ["codes"], [])
