"""Page of a release of sequences: the requirement, what is left, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from anonymize.table import Ints, tally
from jobs.data.counted import counted, noun
from jobs.page.html import Content, tag
from jobs.page.page import promises
from jobs.page.parts import (
    Line,
    Section,
    bars,
    by_size,
    facts,
    listing,
    number,
    ordered,
    paragraph,
    percent,
    sentence,
    term,
    warning,
    with_term,
)
from jobs.promises import weakness
from jobs.sequences.domains import time_column
from jobs.sequences.own_page import sizes_of_paths
from jobs.sequences.reading import settings
from jobs.sequences.report import records_words
from jobs.sequences.requirement import bounds
from jobs.sequences.reread import Reread
from jobs.sequences.sentences import item_words
from jobs.sequences.settings import GLOBAL
from jobs.task import Task


def sections(task: Task, report: Mapping[str, Any], sentences: list[str], seen: Reread) -> Iterator[Section]:
    """Yield the sections. sentences: what no reader can do, from the job. seen: the records of the release."""
    sizes = sizes_of_paths(seen.paths)
    yield promises(report, sentences, weakness([settings(task.job).K]))
    yield _risk(task, report, sizes)
    yield _groups(task, sizes)
    yield Section("Records", [*_records(report["items"], seen)])
    yield _left(report)
    yield Section("To keep more detail", [listing(_frees(task))])
    if limits := report["limits"]:
        yield Section("What the table does not promise", [listing(map(sentence, limits))])


def _risk(task: Task, report: Mapping[str, Any], sizes: Ints) -> Section:
    asked = report["requirement"]
    least = asked["fewest_records"] or report["records"]
    lines: list[Line] = [
        (
            term("Prosecutor risk", ", within L"),
            percent(1 / least),
            f"The highest chance of a reader with L={asked['L']} items of a person in the table to find the record: "
            f"1 in {least:,}.",
        ),
        *_of_whole(sizes, settings(task.job).K),
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


def _of_whole(sizes: Ints, k: int) -> Iterator[Line]:
    """Yield the risk for a reader who knows whole released sequences. sizes: records of each different sequence."""
    n, least = int(sizes.sum()), int(sizes.min())
    unique, below = int((sizes == 1).sum()), int(sizes[sizes < k].sum())
    yield (
        term("Prosecutor risk", ", whole sequence"),
        percent(1 / least),
        f"The same chance for a reader who knows the whole released sequence of a person: 1 in {least:,}. No L below "
        "the length of the sequence bounds the chance.",
    )
    yield (
        term("Journalist risk", ", whole sequence"),
        f"at most {percent(1 / least)}",
        "The same reader, if the reader does not know that the person is in the table: never higher.",
    )
    yield (
        term("Marketer risk", ", whole sequence"),
        percent(len(sizes) / n),
        "The expected share of records that a reader finds who knows the whole sequences of everybody: "
        f"{counted(len(sizes), 'group', 'groups')} among {counted(n, 'record', 'records')}.",
    )
    yield (
        term("Unique records", ", whole sequence"),
        percent(unique / n),
        f"{counted(unique, 'record has', 'records have')} a sequence that no other record has.",
    )
    yield (
        f"Records below K={k:,}, whole sequence",
        percent(below / n),
        f"{counted(below, 'record is', 'records are')} in groups smaller than K.",
    )


def _groups(task: Task, sizes: Ints) -> Section:
    words = (
        f"{counted(len(sizes), 'group', 'groups')} of records with the same whole sequence. Share of the records by "
        "the size of their group:"
    )
    return Section(
        "Group sizes",
        [
            with_term(words, "Group", noun(len(sizes), "group", "groups")),
            bars(by_size(sizes, settings(task.job).K), "group sizes"),
        ],
    )


def _records(items: str, seen: Reread) -> Iterator[Content]:
    """Yield the lengths of the released sequences, and the shares of places, values and times in them."""
    paths = seen.paths
    lengths = tally(paths.lengths, paths.weights, int(paths.lengths.max()) + 1)
    yield tag("h3", f"{items.capitalize()} in a record")
    yield bars(
        {str(n): records for n, records in enumerate(lengths.tolist()) if records}, f"number of {items}"
    )
    weights = np.repeat(paths.weights, paths.lengths)
    parts = [("Values", seen.vocabulary.locations_of(paths.items), seen.places)]
    if seen.times:
        parts = [("Places", *parts[0][1:]), ("Times", seen.vocabulary.cells_of(paths.items), seen.times)]
    for title, codes, labels in parts if len(weights) else ():
        found = tally(codes, weights, len(labels)).tolist()
        counts = {label: n for label, n in zip(labels, found, strict=True) if n}
        yield tag("h3", title)
        yield paragraph(f"Share of all {items} of the table.", "soft")
        yield bars(counts if title == "Times" else ordered(counts, ()), title.lower())


def _frees(task: Task) -> Iterator[str]:
    """Yield the settings that keep more items, from the job."""
    asked = settings(task.job)
    _, many = item_words(task.job)
    if asked.L > 1:
        yield f"A smaller L: readers who know fewer {many} of a person. Most {many} are lost to the largest sets."
    if asked.K > 1:
        yield f"A smaller K: {many} in fewer records stay."
    if bounded := [name for name, bound in bounds(task.job).items() if bound < 1]:
        yield f"A larger C of {', '.join(bounded)}, or fewer protected values."
    if time_column(task.job) is not None:
        yield "A coarser time: records then have more readings in common."
    if asked.suppress == GLOBAL:
        yield f"`suppress: local` takes {many} out of single records, not out of all."


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
        warning(words) if words.startswith("warning") else paragraph(f"{words}.") for words in _lost(report)
    ]
    return Section("Worth of the table", [facts(lines, head=("measure", "figure", "meaning")), *lost])


def _lost(report: Mapping[str, Any]) -> list[str]:
    return records_words(report, report["items"]) if "lost" in report else []
