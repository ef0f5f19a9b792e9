"""What the page of a synthetic table shows: what was measured, how noisy it is, what is left to chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.pages.blocks import Bar, Bars, Fact, Opening, Rows, Section, Sentences, Told
from jobs.pages.guarantees import WORDS, epsilon_fact, guarantee
from jobs.pages.words import number
from jobs.task import Task


def told(task: Task, report: Mapping[str, Any]) -> Told:
    """What the page says of a report of a synthetic table."""
    noisy = _mostly_noise(report)
    opening = Opening(
        "Invented records, drawn from noisy counts of the real ones, so that nobody can tell from them whether "
        "somebody's record was counted.",
        [
            epsilon_fact(report),
            Fact("Rows", number(report["rows"]), "invented records; their number is noisy, too"),
            Fact(
                "Pairs measured", number(len(report["edges"])), "of columns, whose relation the rows follow"
            ),
            Fact(
                "Mostly noise", number(len(noisy)), f"of {len(report['tables'])} measured tables", bool(noisy)
            ),
        ],
        [report["use"]],
    )
    return Told(
        opening, [_measured(report), _pairs(report), _bins(report), guarantee(report)], (*WORDS, *_WORDS)
    )


def _measured(report: Mapping[str, Any]) -> Section:
    noisy = _mostly_noise(report)
    rows = [
        [
            number(each["table"]),
            " × ".join(each["columns"]),
            each["by"],
            number(each["counts"]),
            f"± {each['half_width_95']}",
            "yes" if each["table"] in noisy else "",
        ]
        for each in report["tables"]
    ]
    heads = ["table", "columns", "counted by", "counts", "noise, 95 % of it", "mostly noise"]
    return Section(
        "What was measured",
        [
            Sentences(["All that the rows follow are these counts, which stand in marginals.csv."]),
            Rows(
                "Measured tables, each count with noise of the size given", heads, rows, frozenset({0, 3, 4})
            ),
        ],
    )


def _mostly_noise(report: Mapping[str, Any]) -> Sequence[int]:
    """The tables that are mostly noise; a release that was kept by an earlier version does not say it."""
    return tuple(report.get("mostly_noise", {"tables": ()})["tables"])


def _pairs(report: Mapping[str, Any]) -> Section:
    """How much each pair told that single columns did not, beside what noise alone would."""
    most = max((each["measured_minus_expected"] for each in report["edges"]), default=0)
    bars = [
        Bar(
            " × ".join(each["columns"]),
            each["measured_minus_expected"] / most if most else 0.0,
            f"{number(each['measured_minus_expected'])}, noise about {number(each['of_noise_about'])}",
        )
        for each in report["edges"]
    ]
    not_measured = report["not_measured"]
    pairs = "; ".join(" × ".join(pair) for pair in not_measured["pairs"])
    lines = [f"Not measured, and so {not_measured['meaning']}: {pairs}."] if pairs else []
    picture = Bars(
        "Pairs of columns: how far their counts are from what single columns make expect, in records",
        ("pair", "records"),
        bars,
    )
    return Section(
        "How columns go together", [*([picture] if bars else []), *([Sentences(lines)] if lines else [])]
    )


def _bins(report: Mapping[str, Any]) -> Section:
    rows = [
        [name, number(len(bins)), ", ".join(each["bin"] for each in bins)]
        for name, bins in report["bins"].items()
    ]
    return Section(
        "How finely pairs were counted",
        [Rows("Bins of each column", ["column", "bins", "which"], rows, frozenset({1}))],
    )


_WORDS = (
    ("bin", "values of a column that were counted together in pairs"),
    ("pair", "two columns that were counted together, so that the rows follow how they go together"),
)
