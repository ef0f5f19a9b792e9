"""Page of a release of sequences: the requirement, what is left, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.data.counted import counted
from jobs.page.page import promises
from jobs.page.parts import Line, Section, facts, listing, number, paragraph, percent, sentence, verdict
from jobs.page.words import term
from jobs.sequences.report import records_words
from jobs.task import Task


def sections(task: Task, report: Mapping[str, Any], sentences: list[str]) -> Iterator[Section]:
    """Yield the sections. sentences: what no reader can do, from the job."""
    yield promises(report, sentences)
    yield _risk(report)
    yield _left(report)
    if limits := report["limits"]:
        yield Section("What the table does not promise", [listing(map(sentence, limits))])


def _risk(report: Mapping[str, Any]) -> Section:
    asked = report["requirement"]
    least = asked["fewest_records"] or report["records"]
    lines: list[Line] = [
        (
            term("Prosecutor risk"),
            percent(1 / least),
            f"The highest chance of a reader with L={asked['L']} items of a person in the table to find the record: "
            f"1 in {least:,}.",
        ),
        *(
            (
                f"Inference of {name}",
                percent(share),
                "The largest share of a protected value among such records.",
            )
            for name, share in asked.get("largest_share", {}).items()
        ),
        (
            "Different sequences",
            " / ".join(f"{n:,}" for n in asked["sequences"]),
            "Of 1, 2, … L items; every one of them was counted.",
        ),
    ]
    return Section("Risk", [facts(lines, head=("risk", "figure", "meaning"))])


def _left(report: Mapping[str, Any]) -> Section:
    items, frequent = report["items"], report.get("maximal_frequent")
    empty = counted(report["empty_paths"], "record has", "records have")
    lines = [
        ("Records", number(report["records"]), f"{empty} no {items} left."),
        (items.capitalize(), number(report["instances"]), "In all records together."),
    ]
    if frequent is not None:
        lines.append(("Frequent sequences", number(frequent), "Maximal sequences that many records share."))
    lost = [
        verdict(words, good=False) if words.startswith("warning") else paragraph(f"{words}.")
        for words in _lost(report)
    ]
    return Section("Worth of the table", [facts(lines, head=("measure", "figure", "meaning")), *lost])


def _lost(report: Mapping[str, Any]) -> list[str]:
    return records_words(report, report["items"]) if "lost" in report else []
