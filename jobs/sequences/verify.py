"""Check of released paths by the definition: the last gate before writing, and a check for holders of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anonymize.table import Schema
from anonymize.trajectory.paths import Paths
from anonymize.verification.sequences import Bound, Claim, Examined, bound_of, examine
from jobs.errors import PartyError
from jobs.file.values import values_of
from jobs.sequences.reading import settings
from jobs.sequences.requirement import bounds
from jobs.task import Task

_DIGITS = 6


@dataclass(frozen=True)
class Verified:
    """Findings. protected: the categories with a bounded share, by sensitive column."""

    examined: Examined
    protected: Mapping[str, tuple[str, ...]] = field(repr=False)


def claim_of(task: Task, schema: Schema) -> Claim:
    """Return the claim of the job file about its table, word for word. schema: of the table."""
    asked, confidences = settings(task.job), bounds(task.job)
    axes = schema.axes(np.arange(schema.n_cells))[1:]
    found: list[Bound] = []
    for column, codes in zip(schema.sensitive, axes, strict=True):
        if confidences[column.name] < 1 and column.protected:
            of_cells = column.tests(codes)
            found.append(bound_of(column.name, column.protected, of_cells, confidences[column.name]))
    return Claim(asked.L, asked.K, tuple(found))


def require_verified(task: Task, paths: Paths, schema: Schema) -> Verified:
    """Raise PartyError unless the paths meet the requirement; return the findings."""
    examined = examine(paths, claim_of(task, schema))
    if examined.finding is not None:
        raise PartyError("verification-failed", str(examined.finding))
    domains = {column.name: column.domain for column in schema.sensitive}
    protected = {n: tuple(sorted(values_of(task, n, domain).protected)) for n, domain in domains.items()}
    return Verified(examined, protected)


def verified_fields(task: Task, verified: Verified) -> dict[str, Any]:
    """Return the report's fields of the requirement: the demands, and the table's figures."""
    asked, examined = settings(task.job), verified.examined
    bounded = [n for n, bound in bounds(task.job).items() if bound < 1 and verified.protected.get(n)]
    return {
        "L": asked.L,
        "K": asked.K,
        "C": {name: str(bound) for name, bound in bounds(task.job).items()},
        "sequences": examined.sequences[1:],
        "fewest_records": examined.fewest,
        "largest_share": {n: round(float(examined.shares.get(n, 0)), _DIGITS) for n in bounded},
    }
