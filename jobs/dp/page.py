"""Page of a DP release: the guarantee, the noise of counts, and the cells that stand out of the noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from anonymize.release import Release
from anonymize.table import Ints
from jobs.data.counted import counted
from jobs.dp.report import half_width
from jobs.dp.requirement import settings
from jobs.page.html import tag
from jobs.page.parts import Line, Section, bars, facts, listing, number, ordered, paragraph, percent, sentence
from jobs.page.words import term
from jobs.task import Task


def guarantee(report: Mapping[str, Any]) -> Section:
    """Return the section on the guarantee of any DP release."""
    privacy = report["privacy"]
    lines: list[Line] = [
        (term("ε"), str(privacy["epsilon"]), _meaning(Fraction(privacy["epsilon"]))),
        (term("δ"), str(privacy["delta"]), "The chance that the bound of ε fails; 0 for a pure guarantee."),
        ("Protected", privacy["unit"], "The bound compares the table with a table that lacks this much."),
    ]
    spent = [
        (each["for"], each["epsilon"], f"iteration {each['iteration']}" if each["iteration"] else "")
        for each in privacy["account"]
    ]
    return Section(
        "What the table promises",
        [
            listing(sentence(words) for words in privacy["guarantees"]),
            facts(lines, head=("parameter", "value", "meaning")),
            tag("h3", "Not covered"),
            listing(sentence(words) for words in privacy.get("not_covered", [])),
            tag("h3", "Spending of ε"),
            facts(spent, head=("for", "ε", "")),
        ],
    )


def _meaning(epsilon: Fraction) -> str:
    factor = float(np.exp(min(float(epsilon), 700)))
    return (
        f"With or without the protected unit, every release is at most e^ε = {factor:.4g} times as likely. A smaller "
        "ε protects more."
    )


def sections(task: Task, report: Mapping[str, Any], counts: Release) -> Iterator[Section]:
    """Yield the sections of noisy counts. counts: the cells as released, a row each, with the column `count`."""
    yield guarantee(report)
    values = counts_in(counts)
    yield _cells(task, report, values)
    yield Section("Columns", [*_columns(task, report, counts, values)])


def counts_in(cells: Release) -> Ints:
    """Return the column `count` of released cells: int64, shape (n_cells,)."""
    column = cells.columns["count"]
    found: Ints = np.array([int(text) for text in column.labels], dtype=np.int64)[column.codes]
    return found


def _cells(task: Task, report: Mapping[str, Any], values: Ints) -> Section:
    """Return the noise of counts, and the number of cells above the noise."""
    width = _half_width(task, report)
    lines: list[Line] = [("Cells", number(report["cells"]), "Combinations of published values.")]
    if report["cells_listed"] != report["cells"]:
        meaning = "Cells whose noisy count reached the threshold."
        lines.append(("Listed cells", number(report["cells_listed"]), meaning))
    if width is None:
        meaning = "Both parties of the compute pair add noise of their own to every count."
        lines.append((term("Noise"), "twice", meaning))
    else:
        clear = np.abs(values) > width
        total = np.abs(values).sum() or 1
        lines += [
            (term("Noise"), f"± {width:,}", "The error of at least 95 of 100 counts is no larger."),
            (
                "Counts above the noise",
                percent(float(clear.mean()) if len(values) else 0),
                f"{counted(int(clear.sum()), 'count is', 'counts are')} farther from 0 than the noise: trust these "
                f"cells. They hold {percent(float(np.abs(values)[clear].sum() / total))} of the listed records. "
                "Of the other cells trust sums, not single cells.",
            ),
        ]
    return Section("Counts and noise", [facts(lines, head=("measure", "figure", "meaning"))])


def _half_width(task: Task, report: Mapping[str, Any]) -> int | None:
    """Return the error that 95 of 100 counts do not exceed; None where two parties add noise of their own."""
    if report["privacy"]["noise"] == "each":
        return None
    epsilon = next(
        Fraction(each["epsilon"]) for each in report["privacy"]["account"][::-1] if "counts" in each["for"]
    )
    return half_width(float(epsilon / (settings(task.job).max_records_per_person or 1)))


def _columns(task: Task, report: Mapping[str, Any], counts: Release, values: Ints) -> Iterator[Any]:
    yield paragraph("Sums of noisy counts by published value. A sum below 0 is shown as 0.", "soft")
    for name, column in counts.columns.items():
        if name in task.job.columns:
            sums = np.bincount(column.codes, weights=values, minlength=len(column.labels)).astype(np.int64)
            yield tag("h3", name)
            found = {label: max(int(n), 0) for label, n in zip(column.labels, sums, strict=True)}
            yield bars(ordered(found, report["cut"].get(name, ())), name)
