"""Jobs with one thing wrong: a key that is missing, has another value, or is another model's."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.corpus.cases import CASES
from tests.support.commands import invoke
from tests.support.placed import placed

BASES = (
    "classification", "kd", "anatomy", "clusters", "sealed", "leader", "joint kd", "vertical", "dp", "dp horizontal",
    "synthetic", "synthetic vertical", "sequences", "sequences of two",
)  # fmt: skip
OTHERS: Mapping[str, Any] = {
    "goal": "general",
    "method": "kd",
    "split": "median",
    "score": "tdr",
    "contexts": "cells",
    "withhold": "1/10",
    "link": "none",
    "release": "anatomy",
    "quasi": "exact",
    "insider": "true",
    "secure_sum": "ring",
    "disclosure": "strict",
    "deliver": "coordinator",
    "data": "table.csv",
    "leader": "nobody",
}
"""Keys that are right in some job, with a value that they have there."""
MANY = 4
"""Of the wrong values inside one column or model every so many."""


def faults() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each job by a name that says what was done to it."""
    for base in BASES:
        fields = dict(CASES[base].fields)
        for number, path in enumerate(_paths(fields)):
            if len(path) > 2 and number % MANY:
                continue
            yield f"{base}: without {'.'.join(path)}", _changed(fields, path, None)
            yield f"{base}: nonsense in {'.'.join(path)}", _changed(fields, path, "nonsense")
        for key, value in OTHERS.items():
            changed = placed({**fields, key: value})
            if changed != fields:
                yield f"{base}: {key} {value}", changed


def _paths(fields: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in fields.items():
        yield (*above, key)
        if isinstance(value, Mapping) and key not in ("taxonomy", "clusters"):
            yield from _paths(value, (*above, key))


def _changed(fields: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    found = copy.deepcopy(dict(fields))
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    if value is None:
        del inner[path[-1]]
    return found


def said(fields: Mapping[str, Any], folder: Path) -> str:
    """Return how `validate` ends, its error and the keys that it names; of a job that is right, only that."""
    job = folder / "job.yaml"
    job.write_text(json.dumps(fields), encoding="utf-8")
    ran = invoke("coordinator", "validate", job, "--format", "json")
    if ran.code == 0:
        return "0"
    problem = ran.problem
    keys = sorted(set(re.findall(r"`([\w.]+)`|columns\.(\w+)", problem["message"])))
    return json.dumps([ran.code, problem["error"], ["".join(key) for key in keys]])
