"""`report.json` of a synthetic table: the request, measurements, spending, and the guarantee toward each audience.

Nothing in the report is exact: everything follows from the job and the openings, so every party can check a report.
The coordinator adds time, software and cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from anonymize.synthetic.fit import Floats, Model, added_up, fitted
from anonymize.synthetic.loop import SyntheticOutcome, question
from anonymize.synthetic.marginals import pairs_of
from anonymize.synthetic.opened import Measured, rows_above_noise
from jobs.data.counted import counted, noun
from jobs.dp.report import half_width, spent_fields
from jobs.release.report import asked_fields, joint_fields
from jobs.synthetic.marginals import bin_labels, marginals_csv, measured_tables, pair_of, scale_text
from jobs.synthetic.requirement import settings
from jobs.synthetic.result import SyntheticResult
from jobs.synthetic.table import dates_below, mended_rows, seed_of
from jobs.task import Shown, Task

_USE = (
    "Statistics come from marginals.csv, whose noise is known. Use synthetic.csv only if you need rows: standard "
    "errors, confidence intervals and tests computed from its rows are wrong."
)


def report_fields(task: Task, result: SyntheticResult) -> dict[str, Any]:
    """Describe a release."""
    outcome = result.outcome
    model = fitted(outcome.schema, outcome.opened)
    report = asked_fields(task) | {
        "rows": model.n_rows,
        "use": _USE,
        "tables": [_table_fields(outcome, number, m) for number, m in enumerate(measured_tables(outcome), 1)],
        "mostly_noise": _mostly_noise(outcome, model.n_rows),
        "bins": _bin_fields(outcome),
        "edges": _edge_fields(outcome),
        "not_measured": _not_measured(outcome),
        "fit": fit_fields(outcome, model),
        "seed": seed_of(task, marginals_csv(outcome)).hex(),
        "privacy": _privacy_fields(task, result),
        **_order_fields(task, outcome, model),
        **_date_fields(task, outcome, model),
    }
    return report | task.mode.fields(task, result, None)


def _order_fields(task: Task, outcome: SyntheticOutcome, model: Model) -> dict[str, Any]:
    """Return the rows that broke the order of columns before the mending; empty without an order."""
    names = settings(task.job).order
    if not names:
        return {}
    mended = mended_rows(task, outcome, model)
    return {
        "order": [
            {"columns": list(pair), "mended_rows": n} for pair, n in zip(pairwise(names), mended, strict=True)
        ]
    }


def _date_fields(task: Task, outcome: SyntheticOutcome, model: Model) -> dict[str, Any]:
    """Return the rows with dates in the rarer order, by pair of unordered date columns; empty without pairs."""
    found = dates_below(task, outcome, model)
    fields = [{"columns": list(pair), "rows_below": n} for pair, n in found.items()]
    return {"unordered_dates": fields} if fields else {}


def _table_fields(outcome: SyntheticOutcome, number: int, measured: Measured) -> dict[str, Any]:
    marginal = measured.marginal
    step = "leaf" if number <= len(outcome.schema.qid) else "bin"
    return {
        "table": number,
        "columns": pair_of(marginal, outcome.schema),
        "by": step if marginal.n_classes == 1 else f"{step} and class",
        "counts": marginal.size,
        "scale": scale_text(measured),
        "half_width_95": half_width(float(measured.rate)),
    }


def _mostly_noise(outcome: SyntheticOutcome, n_rows: int) -> dict[str, Any]:
    """Return the tables with fewer records than noise, for the noisy number of rows."""
    tables = enumerate(measured_tables(outcome), 1)
    return {
        "meaning": "the counts are on average smaller than the scale of their noise: the marginals, and the rows "
        "made from the marginals, show little about records",
        "tables": [number for number, m in tables if n_rows < rows_above_noise(m.marginal, m.rate)],
    }


def _bin_fields(outcome: SyntheticOutcome) -> dict[str, Any]:
    """Return the bins of each column with their numbers of leaves; the label of a taxonomy's bin lists the leaves."""
    return {
        column.name: [
            {"bin": label, "leaves": axis.bins.count(number)}
            for number, label in enumerate(bin_labels(column, axis))
        ]
        for column, axis in zip(outcome.schema.qid, outcome.opened.axes, strict=True)
    }


def _edge_fields(outcome: SyntheticOutcome) -> list[dict[str, Any]]:
    """Return the measured pairs, as chosen: the distance from the expectation, and the distance of noise alone."""
    if not outcome.opened.pairs:
        return []
    asked = question(outcome.opened.bins, outcome.opened.pairs[0].rate)
    numbers = {pair: number for number, pair in enumerate(asked.pairs)}
    first = 2 * len(outcome.schema.qid) + 1
    return [
        {
            "columns": pair_of(measured.marginal, outcome.schema),
            "table": first + place,
            "expected_rows": int(asked.expected[numbers[measured.marginal]].sum()),
            "measured_minus_expected": int(
                abs(measured.counts - asked.expected[numbers[measured.marginal]]).sum()
            ),
            "of_noise_about": asked.penalties[numbers[measured.marginal]],
        }
        for place, measured in enumerate(outcome.opened.pairs)
    ]


def _not_measured(outcome: SyntheticOutcome) -> dict[str, Any]:
    """Return the pairs that the model takes for independent, except through further columns."""
    measured = {m.marginal.columns for m in outcome.opened.pairs}
    pairs = [pair for pair in pairs_of(outcome.opened.axes, 1) if pair.columns not in measured]
    given = " given the class" if outcome.schema.class_name is not None else ""
    return {
        "meaning": f"independent{given}, apart from dependence through measured pairs between the two columns",
        "pairs": [pair_of(pair, outcome.schema) for pair in pairs],
    }


def fit_fields(outcome: SyntheticOutcome, model: Model) -> list[dict[str, Any]]:
    """Return χ² of the model against each table, by the variance of its noise.

    The value is about the number of counts if all difference is noise.
    """
    tables = zip(measured_tables(outcome), _modelled(outcome, model), strict=True)
    return [
        {
            "table": number,
            "chi_square": f"{float(added_up(np.square(expected - m.counts)) / m.variance):.4g}",
            "counts": m.counts.size,
        }
        for number, (m, expected) in enumerate(tables, 1)
    ]


def _modelled(outcome: SyntheticOutcome, model: Model) -> Iterator[Floats]:
    """Yield the model's counts for each table."""
    for axis, margin, shares in zip(model.axes, model.margins, model.leaves, strict=True):
        yield (added_up(margin, 1)[np.array(axis.bins)] * shares)[:, None]
    for measured, margin in zip(outcome.opened.bins, model.margins, strict=True):
        yield margin if measured.marginal.n_classes == margin.shape[1] else added_up(margin, 1)[:, None]
    for edge in model.edges:
        yield edge.table


def _privacy_fields(task: Task, result: SyntheticResult) -> dict[str, Any]:
    """Return ε, δ, the itemized account, and the guarantee in words."""
    return {**spent_fields(task, result), **task.mode.words(task, result)}


def joint_run_fields(task: Task, result: SyntheticResult, _: None) -> dict[str, Any]:
    """Return the fields of a joint run: repetition, computing parties, reveals."""
    return {"repeated": result.repeated, **joint_fields(task), "reveals": list(result.reveals)}


def shown_fields(report: Mapping[str, Any]) -> Shown:
    """Return the fields for the console."""
    privacy, rows, edges = report["privacy"], report["rows"], len(report["edges"])
    unit = privacy["unit"].removeprefix("one ")
    guarantee = f"epsilon {privacy['epsilon']}, delta {privacy['delta']}, per {unit}"
    return Shown(
        f"{counted(rows, 'synthetic row', 'synthetic rows')}, {counted(edges, 'pair', 'pairs')} of columns measured",
        {"rows": rows},
        [
            guarantee,
            *(f"  {words}" for words in privacy["guarantees"]),
            report["use"],
            *_noise_words(report),
            *_order_words(report),
            *_date_words(report),
        ],
    )


def _order_words(report: Mapping[str, Any]) -> Iterator[str]:
    """Say how many rows of each ordered pair of columns were mended, and warn of many."""
    for pair in report.get("order", []):
        yield (
            f"Order: {counted(pair['mended_rows'], 'drawn row', 'drawn rows')} had {pair['columns'][1]} below "
            f"{pair['columns'][0]}; both columns of such a row now have the same value."
        )
        if warning := many_mended(report, pair):
            yield f"warning: {warning}"


MANY = 0.05
"""Share of mended rows, or of rows out of order, from which rows show little of what lies between two columns."""


def many_mended(report: Mapping[str, Any], pair: Mapping[str, Any]) -> str:
    """Return the warning of many mended rows of an ordered pair; empty for few. Both counts are of drawn rows."""
    share, (first, second) = pair["mended_rows"] / max(report["rows"], 1), pair["columns"]
    if share < MANY:
        return ""
    is_measured = any(set(edge["columns"]) == {first, second} for edge in report["edges"])
    why = "the noise hides the order" if is_measured else "the pair was not measured"
    return (
        f"{share:.0%} of the rows were mended to keep {second} from lying below {first}, because {why}: what lies "
        f"between {first} and {second} is mostly made up. Publish the length between the two in place of {second}, "
        "take larger cells, or raise epsilon"
    )


_MOST_PAIRS = 3
"""Most pairs of date columns on the console."""


def _date_words(report: Mapping[str, Any]) -> Iterator[str]:
    """Say how many rows have dates in the rarer order, for the first pairs of date columns without an order."""
    pairs = report.get("unordered_dates", [])
    for pair in pairs[:_MOST_PAIRS]:
        yield f"Dates: {below_words(pair)}"
    if len(pairs) > _MOST_PAIRS:
        yield f"Dates: {counted(len(pairs) - _MOST_PAIRS, 'more pair is', 'more pairs are')} in the report."


def below_words(pair: Mapping[str, Any]) -> str:
    """Say how many rows have dates of an unordered pair in the rarer order."""
    (first, second), n = pair["columns"], pair["rows_below"]
    cure = f"; if that is impossible, say `order: [{first}, {second}]` under model.dp" if n else ""
    return f"{counted(n, 'drawn row', 'drawn rows')} {noun(n, 'has', 'have')} {second} before {first}{cure}."


def _noise_words(report: Mapping[str, Any]) -> list[str]:
    """Return the warning that counts are mostly noise, if some are."""
    # A release kept by an earlier version lacks the key.
    noise, n_tables = report.get("mostly_noise", {"tables": []}), len(report["tables"])
    if not noise["tables"]:
        return []
    return [f"Mostly noise: {len(noise['tables'])} of {n_tables} tables; {noise['meaning']}."]
