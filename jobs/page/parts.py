"""Parts of a page about a release."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from xml.etree.ElementTree import Element

import numpy as np

from anonymize.release import LabelledColumn
from anonymize.table import Ints
from jobs.data.counted import counted
from jobs.page.html import Content, rows, tag

Line: TypeAlias = Sequence[Content]
"""Line of a table."""
INTERVAL = re.compile(r"\[([^,]+),([^,)]+)\)")
"""Form of an interval of numbers or dates."""
MOST_BARS = 24
"""Most values of a column with a bar; the most frequent values have bars."""


@dataclass(frozen=True)
class Section:
    """Part of a page under a heading."""

    title: str
    content: Sequence[Content] = field(repr=False)

    def element(self) -> Element:
        name = "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())
        return tag("section", tag("h2", self.title, id=name), *self.content, aria_labelledby=name)


def sentence(words: str) -> str:
    """Return words as a sentence. A Greek letter at the beginning stays a symbol."""
    text = words.strip()
    first = text[:1].upper() if text[:1].isascii() else text[:1]
    return first + text[1:] + ("" if text.endswith(".") else ".")


def paragraph(text: str, kind: str = "") -> Element:
    return tag("p", text, **({"class_": kind} if kind else {}))


def verdict(text: str, *, good: bool = True) -> Element:
    """Return a highlighted sentence."""
    return tag("div", tag("p", text), class_="verdict" if good else "warning")


def listing(items: Iterable[str]) -> Element | None:
    """Return a list of sentences; None without a sentence."""
    found = [tag("li", item) for item in items]
    return tag("ul", *found) if found else None


def facts(entries: Iterable[Line], head: Sequence[str]) -> Element:
    """Return a table of figures: a name, the figure or figures, and mostly the meaning."""
    label = "table of " + ", ".join(filter(None, head))
    return tag(
        "div", rows(*entries, head=head), class_="scroll", tabindex="0", role="group", aria_label=label
    )


def percent(share: float) -> str:
    """Print a share. A share that is not 0 is never printed as 0 %, and a share below 1 never as 100 %."""
    if 0 < share < 0.001:
        return "<\u00a00.1\u00a0%"
    if 0.999 < share < 1:
        return ">\u00a099.9\u00a0%"
    return f"{share:.1%}".replace(".0%", "%").replace("%", "\u00a0%")


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def bars(counts: Mapping[str, int], name: str) -> Element:
    """Return a bar for each value: its share of the records. name: of the column, for screen readers."""
    total = sum(counts.values()) or 1
    shown = counts
    if len(counts) > MOST_BARS:
        frequent = sorted(counts, key=lambda value: -counts[value])[:MOST_BARS]
        shown = {value: n for value, n in counts.items() if value in set(frequent)}
    lines: Iterator[Element] = (
        tag(
            "tr",
            tag("th", value, scope="row"),
            tag("td", _bar(n / total), aria_hidden="true"),
            tag("td", percent(n / total), class_="number"),
        )
        for value, n in shown.items()
    )
    table = tag("table", tag("tbody", *lines), class_="bars", aria_label=f"values of {name}")
    if len(shown) == len(counts):
        return table
    rest = sum(counts.values()) - sum(shown.values())
    others = counted(len(counts) - len(shown), "other value", "other values")
    words = f"and {others} with {percent(rest / total)} of the records"
    return tag("div", table, paragraph(words, "soft"))


def counts_of(column: LabelledColumn, weights: Ints | None) -> dict[str, int]:
    """Return the records of each occurring value, in the order of the column's labels."""
    found = np.bincount(column.codes, weights=weights, minlength=len(column.labels)).astype(np.int64)
    counts: dict[str, int] = {}
    for label, n in zip(column.labels, found.tolist(), strict=True):
        if n:
            counts[label] = counts.get(label, 0) + n
    return counts


def ordered(counts: Mapping[str, int], labels: Sequence[str]) -> dict[str, int]:
    """Return counts in the order of labels; then intervals of numbers by their beginning, and others by frequency."""
    place = {label: i for i, label in enumerate(labels)}

    def rank(label: str) -> tuple[float, float, str]:
        start = _number(INTERVAL.sub(r"\1", label)) if INTERVAL.fullmatch(label) else None
        return place.get(label, len(place)), -counts[label] if start is None else start, label

    order = sorted(counts, key=rank)
    return {label: counts[label] for label in order}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _bar(share: float) -> Element:
    """Return a bar with a share of the width, at least a hair if the share is not 0."""
    width = max(round(100 * share, 2), 0.3) if share else 0
    bar = tag("rect", width=f"{width}%", height="100%", rx="2")
    return tag("svg", bar, focusable="false", role="presentation")
