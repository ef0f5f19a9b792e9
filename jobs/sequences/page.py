"""What the page of published paths shows: how much is left, who can be found, what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.data.counted import counted
from jobs.pages.blocks import Block, Fact, Facts, Opening, Rows, Section, Sentences, Told
from jobs.pages.words import number, share
from jobs.task import Task


def told(task: Task, report: Mapping[str, Any]) -> Told:
    """What the page says of a report of sequences or sets."""
    requirement, items = report["requirement"], report["items"]
    fewest = requirement["fewest_records"]
    opening = Opening(
        f"{counted(report['records'], 'record', 'records')} with {number(report['instances'])} {items}, without "
        "those by which a person could be told from others.",
        [
            Fact("Records", number(report["records"]), "paths, or sets, of the published table"),
            Fact(items.capitalize(), number(report["instances"]), "that are left in all of them"),
            Fact(
                "Fewest who are alike",
                "none" if fewest is None else number(fewest),
                f"records that somebody finds who knows up to {requirement['L']} {items} that some record has",
            ),
            Fact(
                "Empty",
                number(report["empty_paths"]),
                "records of which nothing is left but that they exist",
                bool(report["empty_paths"]),
            ),
        ],
        [f"Checked: {report['verified']}."],
    )
    return Told(opening, [_risk(report), _worth(report), *_lost(report)], _WORDS)


def _risk(report: Mapping[str, Any]) -> Section:
    requirement = report["requirement"]
    rows = [
        [
            name,
            ", ".join(map(str, report["sensitive"].get(name, ()))),
            c,
            share(requirement["largest_share"].get(name, 0)),
        ]
        for name, c in requirement["C"].items()
    ]
    heads = ["sensitive column", "protected values", "C allows", "most certain anybody is"]
    blocks: list[Block] = [
        Facts(
            [
                Fact(
                    "Chance to pick a person's record",
                    "at most " + share(1 / requirement["K"]),
                    f"for somebody who knows up to {requirement['L']} {report['items']}: K is {requirement['K']}",
                )
            ]
        )
    ]
    if rows:
        blocks.append(
            Rows("How certain somebody becomes of a protected value", heads, rows, frozenset({2, 3}))
        )
    return Section("Risk", blocks)


def _worth(report: Mapping[str, Any]) -> Section:
    facts = []
    if report.get("maximal_frequent") is not None:
        facts.append(
            Fact(
                "Maximal frequent sequences",
                number(report["maximal_frequent"]),
                "the longest sequences that many records share, in the published table",
            )
        )
    tested = [sum(sweep["tested"]) for sweep in report.get("sweeps", ())]
    rows = [
        [str(n), number(all_tested), number(sum(sweep["kept"]))]
        for n, (all_tested, sweep) in enumerate(zip(tested, report.get("sweeps", ()), strict=True), 1)
    ]
    blocks: list[Block] = [Facts(facts)] if facts else []
    if rows:
        blocks.append(
            Rows(
                "What was tested, sweep by sweep",
                ["sweep", "tested", "frequent enough"],
                rows,
                frozenset({1, 2}),
            )
        )
    return Section("What is left to see", blocks)


def _lost(report: Mapping[str, Any]) -> list[Section]:
    """What a single holder's records lost."""
    if "lost" not in report:
        return []
    lost, items = report["lost"], report["items"]
    of = lost["of_instances"]
    lost_share = share(lost["instances"] / of) if of else "0 %"
    facts = [
        Fact(
            f"{items.capitalize()} left out",
            f"{number(lost['instances'])} ({lost_share})",
            f"of {number(of)} that the records had",
        ),
        Fact("Records touched", number(lost["records"]), "lost something"),
    ]
    meaning = (
        [report["gaps"]["meaning"]]
        if isinstance(report.get("gaps"), Mapping) and "meaning" in report["gaps"]
        else []
    )
    return [Section("What was left out", [Facts(facts), *([Sentences(meaning)] if meaning else [])])]


_WORDS = (
    ("reading", "one place of one person at one time"),
    ("L", "how many readings somebody may know of a person"),
    ("K", "how many records somebody finds at least who knows so many, or none"),
    ("C", "how certain somebody may become at most of a protected value"),
)
