"""Inferences from a table, for its page: of readers within a requirement, and of readers with all columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any
from xml.etree.ElementTree import Element

from anonymize.lkc.metrics import largest_share
from anonymize.release import Release
from jobs.data.counted import counted
from jobs.lkc.entries import Entry, entries_read
from jobs.lkc.forms.form import form_of
from jobs.lkc.verify import told_apart
from jobs.page.parts import Line, facts, percent, warning
from jobs.page.words import term
from jobs.task import Task

_MOST_SUBSETS = 100
"""Most sets of columns that are counted for a page. Above, the page has the share for all columns as a bound."""


def inferences(task: Task, report: Mapping[str, Any], table: Release) -> Iterator[Element]:
    """Yield a table of the greatest shares of sensitive values, and a warning for each share that nothing bounds.

    table:  the rows that readers can make of the release.
    """
    told, entries = told_apart(table, task), entries_read(task.job)
    groups = form_of(task.job).groups(task.job)
    lines: list[Line] = []
    warnings = []
    for name in task.job.names("sensitive"):
        if name not in told.columns:
            continue
        values = report["sensitive"][name]["values"]
        of_all = largest_share(told, [groups], name, values)
        what = _value(task, name)
        for entry, found in zip(entries, report["requirements"], strict=True):
            share = _within(task, told, entry, found, name, values, of_all)
            lines.append((f"{name}, {_of_whom(entry)}", share, _of_entry(entry, name, what)))
        lines.append(
            (
                f"{name}, all attributes",
                percent(of_all),
                "The same share for a reader who knows every quasi-identifier.",
            )
        )
        lines += _of_groups(report, name, what)
        warnings += _unbounded(entries, name, what, of_all)
    if lines:
        yield facts(lines, head=(term("Inference", said="inference"), "figure", "meaning"))
    yield from (warning(words) for words in warnings)


def _of_whom(entry: Entry) -> str:
    of = "" if entry.of_all else f" of {', '.join(entry.columns)}"
    return f"L={entry.known} K={entry.said.K:,}{of}"


def _value(task: Task, name: str) -> str:
    column = task.job.columns[name]
    some = "protected " if column.values is not None else ""
    return f"{some}{'value' if column.level is None else 'category'} of {name}"


def _within(
    task: Task,
    told: Release,
    entry: Entry,
    found: Mapping[str, Any],
    name: str,
    values: Sequence[str],
    of_all: float,
) -> str:
    """Return the greatest share for a reader within an entry: from the report, or counted where no C asked for it.

    More columns never make the greatest share smaller: some part of a group has at least the share of the group.
    So sets of exactly L columns suffice, and the share for all columns is a bound.
    """
    if name in found.get("largest_share", {}):
        return percent(found["largest_share"][name])
    form = form_of(task.job)
    columns, most = form.quasi.known(entry, form.groups(task.job))
    most = min(most, len(columns))
    if comb(len(columns), most) > _MOST_SUBSETS:
        return f"at most {percent(of_all)}"
    return percent(largest_share(told, combinations(columns, most), name, values))


def _of_entry(entry: Entry, name: str, what: str) -> str:
    bound = entry.bounds.get(name, Fraction(1))
    allowed = f"The job allows {percent(float(bound))}." if bound < 1 else "No C below 1 bounds the share."
    return f"The largest share of a {what} among the records that a reader within the requirement finds. {allowed}"


def _of_groups(report: Mapping[str, Any], name: str, what: str) -> Iterator[Line]:
    """Yield further figures of the groups of a kd table."""
    found = report["metrics"].get("inference", {}).get(name)
    if found is not None:
        fewest = found["fewest_values"]
        meaning = f"Every group has {counted(fewest, 'value', 'values')} of {name} or more; with 1 a group tells it."
        yield f"{name}, fewest values", f"{fewest:,}", meaning
        yield (
            f"{name}, distance of a group",
            percent(found["greatest_t"]),
            f"The largest share of a group that has other values of {name} than the whole table has.",
        )


def _unbounded(entries: Sequence[Entry], name: str, what: str, of_all: float) -> list[str]:
    """Return a warning where no entry limits inferences, or where a reader with all columns goes beyond C."""
    reader = "a reader who knows every quasi-identifier of a person"
    if not any(entry.speaks_of(name) for entry in entries):
        return [
            f"Nothing bounds inferences of {name}: {reader} infers a {what} with up to {percent(of_all)}."
        ]
    bounds = [entry.bounds[name] for entry in entries if name in entry.bounded]
    if not bounds or of_all <= min(bounds):
        return []
    return [
        f"C of {name} allows {percent(float(min(bounds)))}, and holds for readers within the requirement alone: "
        f"{reader} infers a {what} with up to {percent(of_all)}."
    ]
