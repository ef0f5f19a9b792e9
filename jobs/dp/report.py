"""`report.json` of a DP release: the request, decisions, spending, and the guarantee toward each audience.

The report holds only public or released values: no row numbers, scores, timings or sizes that depend on data.
Everything here follows from job and release, so every party can check a report. The coordinator adds time, software
and cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from anonymize.dp.accounting import Accountant
from anonymize.dp.diffgen import barred
from anonymize.release import cut_labels
from jobs.data.counted import noun
from jobs.dp import budget
from jobs.dp.requirement import requirement, settings
from jobs.dp.result import DpResult
from jobs.dp.sentences import sensitive_words, unit_words
from jobs.release.report import asked_fields, joint_fields, printed_candidate
from jobs.task import Shown, Task

_OUTSIDE = 0.05
"""Share of Laplace draws farther than ln 20 scales: 5 of 100."""


def report_fields(task: Task, result: DpResult) -> dict[str, Any]:
    """Describe a DP release."""
    table, outcome = result.table, result.outcome
    report = asked_fields(task) | {
        "cells": table.n_cells,
        "cells_listed": table.cells.n_rows,
        "threshold": table.threshold,
        "specializations": [printed_candidate(outcome.schema, step.candidate) for step in outcome.steps],
        "discarded": [],
        "cut": {c.name: list(cut_labels(c, outcome.cut, i)) for i, c in enumerate(outcome.schema.qid)},
        "privacy": privacy_fields(task, result),
    }
    return report | task.mode.fields(task, result, None)


def privacy_fields(task: Task, result: DpResult) -> dict[str, Any]:
    """Return ε, δ, the itemized account, and the guarantee in words."""
    return {
        **spent_fields(task, result),
        "utility": settings(task.job).utility,
        "noise": result.noise,
        "engine": settings(task.job).engine if task.job.roster else "single holder",
        **task.mode.words(task, result),
        "sensitive_columns": sensitive_words(task.job),
    }


class Spending(Protocol):
    """Result, as far as its guarantee goes."""

    @property
    def delta(self) -> str: ...

    @property
    def spent(self) -> Accountant: ...


def spent_fields(task: Task, result: Spending) -> dict[str, Any]:
    """Return ε and δ, the protected unit, and the spending."""
    return {
        "epsilon": str(budget.settings(task.job).epsilon),
        "delta": result.delta,
        "unit": unit_words(task.job),
        "relation": f"adding or removing {unit_words(task.job)}",
        "account": account_fields(result.spent),
    }


def account_fields(spent: Accountant) -> list[dict[str, Any]]:
    """Return every charge, in order; the charges add up to ε."""
    return [{"for": c.purpose, "epsilon": str(c.epsilon), "iteration": c.iteration} for c in spent.charges]


def joint_run_fields(task: Task, result: DpResult, _: None) -> dict[str, Any]:
    """Return the fields of a joint run: repetition, effect of the limit on cells, parties, reveals."""
    schema = result.outcome.schema
    return {
        "repeated": result.repeated,
        "barred_by_max_cells": [
            {
                "attribute": schema.qid[place.column].name,
                "value": schema.qid[place.column].label(place.node),
                "from_iteration": turn,
            }
            for place, turn in barred(schema, requirement(task), result.outcome.steps).items()
        ],
        **joint_fields(task),
        "reveals": list(result.reveals),
    }


def shown_fields(report: Mapping[str, Any]) -> Shown:
    """Return the fields for the console: cells, which do not disclose the number of people, and the guarantees."""
    privacy = report["privacy"]
    unit = privacy["unit"].removeprefix("one ")
    guarantee = f"epsilon {privacy['epsilon']}, delta {privacy['delta']}, per {unit}"
    made = len(report["specializations"])
    return Shown(
        f"{_cells(report)}, {made} {noun(made, 'specialization', 'specializations')}",
        {"cells": report["cells"]},
        [guarantee, *(f"  {words}" for words in privacy["guarantees"])],
    )


def _cells(report: Mapping[str, Any]) -> str:
    # A release kept by an earlier version says `rows`.
    listed, cells = report.get("cells_listed", report.get("rows")), report["cells"]
    return f"{cells} cells" if listed == cells else f"{listed} cells listed of {cells}"


def outside_any(n_counts: int) -> float:
    """Return the chance of an error beyond a bound that lets all of many counts hold at once, in 95 of 100 tables.

    The noises are independent: (1 - chance)^n_counts = 0.95.
    """
    return -math.expm1(math.log1p(-_OUTSIDE) / n_counts)


def half_width(rate: float, chance: float = _OUTSIDE) -> int:
    """Return the least bound on the error of 95 of 100 counts, for discrete Laplace noise of the given rate.

    P(|noise| > w) = 2 exp(-rate (w + 1)) / (1 + exp(-rate)).
    chance:  of an error beyond the bound, if not 5 of 100.
    """
    fraction = 2 / (1 + math.exp(-rate))
    width = max(0, math.ceil(math.log(fraction / chance) / rate) - 1)
    while fraction * math.exp(-rate * (width + 1)) > chance:  # the logarithm was rounded
        width += 1
    return width


def half_width_of_two(rate: float, chance: float = _OUTSIDE) -> int:
    """Return the least bound on the error of 95 of 100 counts with two such noises, one of each party.

    chance:  of an error beyond the bound, if not 5 of 100.
    With p = exp(-rate): P(noise = k) = ((1 - p) / (1 + p))^2 p^|k| (|k| + (1 + p^2) / (1 - p^2)).
    """
    p, rest = math.exp(-rate), -math.expm1(-rate)

    def outside(width: int) -> float:
        least = width + 1
        mean = (least + p / rest) + (1 + p * p) / (rest * (1 + p))
        return 2 * rest / (1 + p) ** 2 * p**least * mean

    below, width = -1, 0
    while outside(width) > chance:
        below, width = width, 2 * width + 1
    while width - below > 1:
        middle = (below + width) // 2
        below, width = (middle, width) if outside(middle) > chance else (below, middle)
    return width


def half_width_of_sum(rate: float, n_noises: int) -> int:
    """Return about the bound on the error of 95 of 100 sums of many counts: 1.96 standard deviations."""
    variance = 2 * n_noises * math.exp(-rate) / math.expm1(-rate) ** 2
    return math.ceil(1.96 * math.sqrt(variance))
