"""Small valid jobs and configurations as the text-only fields that YAML gives, for tests to bend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anonymize.release import LabelledColumn, Release
from tests.support.placed import placed

PARTIES = ("hospital-a", "hospital-b", "hospital-c")

COLUMNS: Mapping[str, Any] = {
    "patient": {"role": "id"},
    "job": {"role": "qid", "taxonomy": {"Any": {"Blue": ["Janitor", "Mover"], "White": ["Lawyer"]}}},
    "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}},
    "transfused": {"role": "class", "domain": ["Y", "N"]},
    "surgery": {"role": "sensitive", "domain": ["Heart", "Knee", "Rare"], "values": ["Rare"]},
}


AS_IT_IS: Mapping[str, Any] = {"role": "plain", "publish_as_is": "true"}
"""A plain column that tells of single people, and is meant to."""


def release_of(names: list[str], rows: list[tuple[str, ...]]) -> Release:
    """A released table of these rows."""
    built = {}
    for i, name in enumerate(names):
        labels = tuple(dict.fromkeys(row[i] for row in rows))
        built[name] = LabelledColumn(labels, np.array([labels.index(row[i]) for row in rows], dtype=np.int64))
    return Release(built)


def single_job(**changes: Any) -> dict[str, Any]:
    """A job of one holder; ``changes`` replace keys, None removes one."""
    fields = {
        "version": "1",
        "name": "sample",
        "partition": "single",
        "model": {"lkc": {"L": "2", "K": "2", "C": "0.5"}},
        "columns": COLUMNS,
        "data": "table.csv",
    }
    return _changed(fields, changes)


def joint_job(**changes: Any) -> dict[str, Any]:
    """A horizontal job of three parties under a leader."""
    fields = single_job(data=None) | {
        "partition": "horizontal",
        "disclosure": "leader",
        "parties": {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate(PARTIES, 1)},
        "leader": PARTIES[0],
    }
    return _changed(fields, changes)


def vertical_job(**changes: Any) -> dict[str, Any]:
    """A vertical job of a loan company and a bank; the sample columns in two hands."""
    fields = single_job(data=None) | {
        "partition": "vertical",
        "parties": {
            "loan": {"address": "127.0.0.1:7401", "columns": ["job"]},
            "bank": {"address": "127.0.0.1:7402", "columns": ["age", "surgery"]},
        },
    }
    return _changed(fields, changes)


def columns(**changes: Any) -> dict[str, Any]:
    """The sample columns with some replaced, added, or removed (None)."""
    return _changed(COLUMNS, changes)


def _changed(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return placed({key: _copy(value) for key, value in {**fields, **changes}.items() if value is not None})


def _copy(value: Any) -> Any:
    """Return a copy of what YAML writes: tests change jobs."""
    if isinstance(value, Mapping):
        return {key: _copy(each) for key, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value
