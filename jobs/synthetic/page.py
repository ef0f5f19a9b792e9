"""Page of a synthetic table: the guarantee, the measured tables with their noise, and the fit of the drawn rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from anonymize.grid import Grid
from anonymize.release import Release
from anonymize.taxonomy import Taxonomy
from jobs.data.arrow import pa
from jobs.data.coders import numbers_in
from jobs.data.counted import counted, noun
from jobs.dp.page import guarantee
from jobs.page.html import tag
from jobs.page.parts import INTERVAL, Line, Section, bars, facts, number, paragraph, percent, warning
from jobs.synthetic.report import MANY, below_words, many_mended
from jobs.task import Task


def sections(task: Task, report: Mapping[str, Any], drawn: Release, marginals: Release) -> Iterator[Section]:
    """Yield the sections. drawn: the synthetic rows; marginals: the noisy counts."""
    yield guarantee(report, "the rows follow from the noisy counts, byte for byte")
    yield Section("Use", [warning(report["use"]), *_noise(report)])
    yield _one_way(task, report, marginals, drawn)
    yield _two_way(report)
    yield Section("Columns", [*_columns(task, report, marginals, drawn)])


def _noise(report: Mapping[str, Any]) -> Iterator[Any]:
    noise = report["mostly_noise"]
    if noise["tables"]:
        named = {table["table"]: _named(table["columns"]) for table in report["tables"]}
        n = len(noise["tables"])
        which = "; ".join(dict.fromkeys(named[number] for number in noise["tables"]))
        many = f"Of {counted(len(named), 'measured table', 'measured tables')} {n:,} {noun(n, 'is', 'are')}"
        yield warning(f"{many} mostly noise: {noise['meaning']}. Columns of these tables: {which}.")
    yield paragraph(f"The table has {report['rows']:,} synthetic rows.")
    for pair in report.get("order", []):
        first, second = pair["columns"]
        rows = counted(pair["mended_rows"], "drawn row", "drawn rows")
        yield paragraph(f"{rows} had {second} below {first}, and got the same value in both columns.")
        if many := many_mended(report, pair):
            yield warning(f"{many}.")
    for pair in report.get("unordered_dates", []):
        is_few = pair["rows_below"] < MANY * report["rows"]
        yield paragraph(below_words(pair)) if is_few else warning(below_words(pair))


def _named(columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"the pair {' and '.join(columns)}"


def _one_way(task: Task, report: Mapping[str, Any], marginals: Release, drawn: Release) -> Section:
    """Compare each column of the drawn rows with its noisy counts: the share of rows that would have to move."""
    lines = []
    for table in report["tables"]:
        if len(table["columns"]) == 1 and table["by"].startswith("leaf"):
            (name,) = table["columns"]
            measured = _measured(marginals, table["table"])
            away = _distance(measured, _drawn(task, drawn, name, list(measured)))
            lines.append((name, percent(away), *_of_noise(table, measured)))
    words = (
        "Share of drawn rows that would have to change for the column to have exactly the noisy counts, and the "
        "share that noise alone makes of counts without error. A difference of this size or less is no fault of the "
        "rows."
    )
    head = ("column", "difference", "of noise about", "noise")
    return Section("One column at a time", [paragraph(words), facts(lines, head=head)])


def _of_noise(table: Mapping[str, Any], measured: Mapping[str, int]) -> tuple[str, str]:
    """Return the share of rows that the noise of a column moves on average, and the noise in words.

    A draw of discrete Laplace noise of rate r is on average 1 / sinh(r) from 0; half of all errors is one way.
    """
    rate = 1 / float(table["scale"])
    moved = table["counts"] / math.sinh(min(rate, _MOST_RATE)) / 2
    share = percent(min(moved / max(sum(measured.values()), 1), 1))
    return share, f"95 of 100 counts are off by {table['half_width_95']:,} or less."


_MOST_RATE = 100.0
"""Rate of noise above which no count has noise."""


def _measured(marginals: Release, table: int) -> dict[str, int]:
    """Return the noisy counts of a table of one column, without negative counts."""
    columns = {
        name: np.array(column.labels, dtype=object)[column.codes]
        for name, column in marginals.columns.items()
    }
    of_table = columns["table"] == str(table)
    found: dict[str, int] = {}
    for value, count in zip(columns["value"][of_table], columns["count"][of_table], strict=True):
        found[value] = found.get(value, 0) + int(count)
    return {value: max(count, 0) for value, count in found.items()}


def _drawn(task: Task, drawn: Release, name: str, values: Sequence[str]) -> dict[str, int]:
    """Return the drawn rows by value, or by interval for a column of numbers; in the order of ``values``."""
    column = drawn.columns[name]
    found = dict.fromkeys(values, 0)
    rows = np.bincount(column.codes, minlength=len(column.labels))
    for label, n in zip(
        measured_labels(task.taxonomies.get(name), column.labels, values), rows.tolist(), strict=True
    ):
        found[label] = found.get(label, 0) + n
    return found


def measured_labels(
    domain: Taxonomy | Grid | None, labels: Sequence[str], values: Sequence[str]
) -> list[str]:
    """Return the measured value of each drawn text."""
    if not isinstance(domain, Grid):
        return list(labels)
    cells = domain.cells(numbers_in(domain, pa.array(labels, pa.string())))
    runs = {value: run for value in values if (run := domain.interval(value)) is not None}
    of_cell = {cell: value for value, run in runs.items() for cell in range(run.first, run.last)}
    return [of_cell.get(cell, "") for cell in cells.tolist()]


def _distance(measured: Mapping[str, int], drawn: Mapping[str, int]) -> float:
    """Return the total variation distance of two tables of counts."""
    of_measured, of_drawn = sum(measured.values()) or 1, sum(drawn.values()) or 1
    values = {*measured, *drawn}
    return sum(abs(measured.get(v, 0) / of_measured - drawn.get(v, 0) / of_drawn) for v in values) / 2


def _two_way(report: Mapping[str, Any]) -> Section:
    """Show for each measured pair how much dependence was measured, and how well the drawn rows follow."""
    fit = {each["table"]: each for each in report["fit"]}
    lines: list[Line] = []
    for edge in report["edges"]:
        told, is_noise = fit[edge["table"]], edge["table"] in report["mostly_noise"]["tables"]
        beyond = max(edge["measured_minus_expected"] - float(edge["of_noise_about"]), 0)
        lines.append(
            (
                " and ".join(edge["columns"]),
                number(int(beyond)),
                _fit_words(float(told["chi_square"]) / told["counts"]),
                "Most of its counts are noise: the dependence may rest on few counts." if is_noise else "",
            )
        )
    missing = report["not_measured"]
    rest = f"{counted(len(missing['pairs']), 'pair is', 'pairs are')} not measured, and {missing['meaning']}."
    head = ["pair", "dependence in records", "fit of the rows"]
    if any(line[-1] for line in lines):
        head.append("noise")
    lines = [line[: len(head)] for line in lines]
    return Section("Two columns at a time", [facts(lines, head=head) if lines else None, paragraph(rest)])


_GOOD, _FAIR = 1.5, 3.0
"""Greatest ratios of a good and of a fair fit: squared distance from the noisy counts, by that of noise alone."""


def _fit_words(ratio: float) -> str:
    word = "good" if ratio <= _GOOD else "fair" if ratio <= _FAIR else "poor"
    return f"{word}: {ratio:.1f} times the squared distance from the noisy counts that noise alone makes"


def _columns(task: Task, report: Mapping[str, Any], marginals: Release, drawn: Release) -> Iterator[Any]:
    yield paragraph("Shares of the drawn rows.", "soft")
    leaves = {
        table["columns"][0]: table["table"]
        for table in report["tables"]
        if len(table["columns"]) == 1 and table["by"].startswith("leaf")
    }
    for name in drawn.columns:
        values = list(_measured(marginals, leaves[name])) if name in leaves else []
        yield tag("h3", name)
        found = _drawn(task, drawn, name, values)
        yield bars({value: n for value, n in found.items() if n or INTERVAL.fullmatch(value)}, name)
