"""Values of Python in the form of a job file: mappings, lists and texts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from numbers import Number
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from jobs.errors import ConfigError


def written(value: Any) -> Any:
    """Return a value as a job file has the value: each scalar is a text, and None is left out of mappings.

    Arrays and series of NumPy, pandas and polars count as lists. A whole float has no ``.0``, as in a table given in
    Python. Raises ConfigError for values of other types, and for missing values in a list.

    >>> written({"K": 5, "C": 0.5, "domain": ("a", 1, 2.0), "insider": True, "t": None})
    {'K': '5', 'C': '0.5', 'domain': ['a', '1', '2'], 'insider': 'true'}
    """
    match value:
        case str():
            return str(value)
        case bool():
            return str(value).lower()
        case date():
            return value.isoformat()
        case float():
            return str(value).removesuffix(".0")
        case Number() | Path():
            return str(value)
        case BaseModel():
            return written(value.model_dump(mode="json", exclude_unset=True, exclude_none=True))
        case Mapping():
            return {_key(key): written(each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [written(_present(each)) for each in value]
    for method in ("tolist", "to_list"):
        if hasattr(value, method):
            return written(getattr(value, method)())
    raise ConfigError(
        "job-invalid",
        f"a job cannot have a value of type {type(value).__name__}",
        remedy="write texts, numbers, dates, lists and mappings",
    )


def _present(value: Any) -> Any:
    """Return a value of a list. Raises ConfigError for None, NaN and NaT, which are missing cells of a table."""
    if value is None or (isinstance(value, float | date) and value != value):  # NaN differs from NaN
        raise ConfigError(
            "job-invalid",
            "a list of a job has a missing value (None, NaN)",
            remedy="leave missing values out: df['city'].dropna().unique(); `missing` says what becomes of missing "
            "cells",
        )
    return value


def _key(key: object) -> str:
    text = written(key)
    if not isinstance(text, str):
        raise ConfigError("job-invalid", "a key of a job is a text", remedy="write the name of the key")
    return text
