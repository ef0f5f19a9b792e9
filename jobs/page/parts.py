"""Parts of a page about a release.

A term links to its meaning at the end of the page. docs/report.md has the same meanings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias
from xml.etree.ElementTree import Element

import numpy as np

from anonymize.release import LabelledColumn
from anonymize.table import Ints
from jobs.data.counted import counted
from jobs.page.html import Content, isolated, rows, tag

Line: TypeAlias = Sequence[Content]
"""Line of a table."""
INTERVAL = re.compile(r"\[([^,]+),([^,)]+)\)( or \?)?")
"""Form of an interval of numbers or dates, maybe with the records without a value."""
_CODE = re.compile(r"`([^`\n]+)`")
"""Key or command in a sentence."""
_PERCENT = re.compile(r"(?<=\d)%(?!\w)")
"""Sign of percent directly behind a number."""
MOST_BARS = 24
"""Most bars of a column."""
_EMPTY = "without a value"
"""Label of the bar of empty cells."""
_MOST_INTERVALS = 20
"""Most bars of joined intervals."""


@dataclass(frozen=True)
class Section:
    """Part of a page under a heading."""

    title: str
    content: Sequence[Content] = field(repr=False)

    @property
    def anchor(self) -> str:
        """Name of the heading, for links of the page."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())

    @property
    def n_warnings(self) -> int:
        """Number of the highlighted warnings."""
        elements = (each for each in self.content if isinstance(each, Element))
        return sum(part.get("class") == "warning" for each in elements for part in each.iter())

    def element(self) -> Element:
        return tag(
            "section", tag("h2", self.title, id=self.anchor), *self.content, aria_labelledby=self.anchor
        )


def sentence(words: str) -> str:
    """Return words as a sentence. A Greek letter at the beginning stays a symbol."""
    text = words.strip()
    first = text[:1].upper() if text[:1].isascii() else text[:1]
    return first + text[1:] + ("" if text.endswith(".") else ".")


def paragraph(text: str, kind: str = "") -> Element:
    return tag("p", *marked(text), **({"class_": kind} if kind else {}))


def marked(text: str) -> Iterator[Content]:
    """Yield a sentence with keys and commands as code, and with a space before each sign of percent."""
    parts = _CODE.split(_PERCENT.sub("\u00a0%", text))
    for place, part in enumerate(parts):
        yield tag("code", part) if place % 2 else part or None


def warning(text: str) -> Element:
    """Return a highlighted warning."""
    return tag("div", paragraph(text), class_="warning")


def checked(what: str, more: str = "") -> Element:
    """Return the sentences on a check of the table: no approval of the job. more: a sentence on the check."""
    return paragraph(f"Checked: {what}. {more}{_NO_APPROVAL}", "soft")


_NO_APPROVAL = "The check says that the table is as the job asks, not that the job asks for enough."


def listing(items: Iterable[str]) -> Element | None:
    """Return a list of sentences; None without a sentence."""
    found = [tag("li", *marked(item)) for item in items]
    return tag("ul", *found) if found else None


def facts(entries: Iterable[Line], head: Sequence[str | Element]) -> Element:
    """Return a table of figures: a name, the figure or figures, and mostly the meaning."""
    names = (each if isinstance(each, str) else "".join(each.itertext()) for each in head)
    label = "table of " + ", ".join(filter(None, names))
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
    """Print a number: all digits before the point, three digits of a smaller number."""
    is_whole = isinstance(value, int) or abs(value) >= _WHOLE
    return f"{round(value):,}" if is_whole else f"{Decimal(f'{value:.3g}'):f}"


_WHOLE = 999.5
"""Least number that is printed without a fraction."""


def size(n_bytes: int) -> str:
    """Print a number of bytes in three digits: 999 B, 12.3 MB."""
    value, unit = float(n_bytes), 0
    while value >= _WHOLE and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{number(value)}\u00a0{_UNITS[unit]}"


_UNITS = ("B", "kB", "MB", "GB", "TB")


def pairs(values: Iterable[tuple[str, str]]) -> Element:
    """Return names with their values in a line."""
    parts: list[Content] = []
    for name, value in values:
        parts += [", " if parts else "", isolated(name), " ", isolated(value)]
    return tag("span", *parts)


def bars(counts: Mapping[str, int], name: str, labels: Sequence[str] | None = None) -> Element:
    """Return bars with the shares of the records.

    counts:  records by value, in order.
    name:    of the column, for screen readers.
    labels:  all values of the column in order, also values without a record; by default the counted values.
    """
    total = sum(counts.values()) or 1
    lines: Iterator[Element] = (
        tag(
            "tr",
            tag("th", value or _EMPTY, scope="row"),
            tag("td", _bar(n / total), aria_hidden="true"),
            tag("td", percent(n / total), class_="number"),
        )
        for value, n in in_few(counts, labels or list(counts))
    )
    return tag("table", tag("tbody", *lines), class_="bars", aria_label=f"values of {name}")


def about_joined(counts: Mapping[str, int]) -> str:
    """Say that bars are coarser than the values of a table; empty if each value has its bar."""
    if len(counts) <= MOST_BARS:
        return ""
    width = -(-sum(INTERVAL.fullmatch(value) is not None for value in counts) // _MOST_INTERVALS)
    joins = (
        f"a bar joins up to {width} neighbouring intervals" if width > 1 else "the rarest values have one bar"
    )
    return f"The table has {len(counts):,} different values here, finer than the bars: {joins}."


def in_few(counts: Mapping[str, int], labels: Sequence[str]) -> list[tuple[str, int]]:
    """Join values until few are left: neighbouring intervals, and the rarest of all other values at the end.

    So every record is in a bar. Joined intervals may overlap where the published intervals overlap.
    """
    if len(counts) <= MOST_BARS:
        return list(counts.items())
    intervals = [found for label in labels if (found := INTERVAL.fullmatch(label))]
    width = -(-len(intervals) // _MOST_INTERVALS) or 1
    runs = [intervals[first : first + width] for first in range(0, len(intervals), width)]
    joined: Counter[str] = Counter()
    for run in runs:
        joined[_hull(run)] += sum(counts.get(each[0], 0) for each in run)
    others = {value: n for value, n in counts.items() if not INTERVAL.fullmatch(value)}
    room = MOST_BARS - len(joined)
    if len(others) <= room:
        return [*joined.items(), *others.items()]
    frequent = set(sorted(others, key=lambda value: -others[value])[: room - 1])
    kept = [(value, n) for value, n in others.items() if value in frequent]
    rare = sum(n for value, n in others.items() if value not in frequent)
    return [*joined.items(), *kept, (f"{len(others) - len(kept):,} others", rare)]


def _hull(run: Sequence[re.Match[str]]) -> str:
    """Return the interval that holds all intervals of a run, in the order of their beginning."""
    last = max((each[2] for each in run), key=_place)
    missing = next((each[3] for each in run if each[3]), "")
    return f"[{run[0][1]},{last}){missing}"


_SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)
"""Least sizes of the classes of groups."""


def by_size(sizes: Ints, k: int) -> dict[str, int]:
    """Count the records by the size of their group, in classes; k: the least size of a further class."""
    edges = sorted({*_SIZES, k})
    place = np.searchsorted(np.array(edges), sizes, side="right") - 1
    found = np.bincount(place, weights=sizes, minlength=len(edges)).astype(np.int64)
    return {_between(edges, i): int(n) for i, n in enumerate(found) if n}


def _between(edges: Sequence[int], i: int) -> str:
    if i == len(edges) - 1:
        return f"{edges[i]:,} records and more"
    first, last = edges[i], edges[i + 1] - 1
    return counted(first, "record", "records") if first == last else f"{first:,} to {last:,} records"


def counts_of(column: LabelledColumn, weights: Ints | None) -> dict[str, int]:
    """Return the records of each occurring value, in the order of the column's labels."""
    found = np.bincount(column.codes, weights=weights, minlength=len(column.labels)).astype(np.int64)
    counts: dict[str, int] = {}
    for label, n in zip(column.labels, found.tolist(), strict=True):
        if n:
            counts[label] = counts.get(label, 0) + n
    return counts


def ordered(counts: Mapping[str, int], labels: Sequence[str]) -> dict[str, int]:
    """Return counts in the order of labels; then intervals by their beginning, and others by frequency."""
    place = {label: i for i, label in enumerate(labels)}

    def rank(label: str) -> tuple[int, bool, _Place, int, str]:
        found = INTERVAL.fullmatch(label)
        start = _place(found[1]) if found else _NOWHERE
        return place.get(label, len(place)), found is None, start, -counts[label], label

    order = sorted(counts, key=rank)
    return {label: counts[label] for label in order}


_Place: TypeAlias = tuple[float, str]
_NOWHERE: _Place = 0.0, ""


def _place(text: str) -> _Place:
    """Return a key that orders numbers by size, and dates by their text."""
    try:
        return float(text), ""
    except ValueError:
        return 0.0, text


def _bar(share: float) -> Element:
    """Return a bar with a share of the width, at least a hair if the share is not 0."""
    width = max(round(100 * share, 2), 0.3) if share else 0
    bar = tag("rect", width=f"{width}%", height="100%", rx="2")
    return tag("svg", bar, focusable="false", role="presentation")


WORDS: Mapping[str, str] = {
    "Quasi-identifier": "A column that an attacker may know of a person, such as age or town.",
    "Group": "The records that agree on all quasi-identifiers, or in the whole sequence.",
    "Prosecutor risk": "The highest chance to find the record of a person known to be in the table: 1 / size of the "
    "smallest group.",
    "Journalist risk": "The highest chance to find the record of a person, if the reader does not know who is in the "
    "table: at most the prosecutor risk.",
    "Marketer risk": "The expected share of records found by a reader who knows everybody: groups / records.",
    "Unique records": "The records that are alone in their group.",
    "Inference": "A guess of a sensitive value from the group of a person. C is the largest allowed share of a "
    "protected value in a group.",
    "Detail lost (NCP)": "Normalized certainty penalty: the share of a column's domain that a published value "
    "covers, 0 % for raw values and 100 % for a single value that covers all.",
    "Discernibility": "The sum of the squares of the sizes of all groups, divided by the square of the number of "
    "records.",
    "ε": "The bound of differential privacy: no release is more than e^ε times as likely with a record as without "
    "the record.",
    "δ": "The chance that the bound of ε fails.",
    "Noise": "A random number that differential privacy adds to every count.",
    "Naive Bayes": "A classifier that takes the columns as independent of each other within a class.",
}
"""Meaning of each term."""


def term(word: str, more: str = "", said: str = "") -> Element:
    """Return a term with a link to its meaning. more: text behind the term. said: the term in another form."""
    assert word in WORDS, "a word with a meaning"
    return tag("a", (said or word) + more, href=f"#{_anchor(word)}")


def with_term(text: str, word: str, said: str, kind: str = "p") -> Element:
    """Return a sentence whose first ``said`` is a link to the meaning of a word. kind: of the element."""
    before, found, after = text.partition(said)
    assert found, "a sentence with the term"
    return tag(kind, *marked(before), term(word, said=said), *marked(after))


def _anchor(word: str) -> str:
    return "word-" + "".join(letter if letter.isalnum() else "-" for letter in word.lower())


def with_words(sections: Iterable[Section]) -> list[Element]:
    """Return sections as elements. A last section has the meaning of every linked term."""
    made = [section.element() for section in sections]
    links = {link.get("href") for element in made for link in element.iter("a")}
    used = [word for word in WORDS if f"#{_anchor(word)}" in links]
    entries = [each for word in used for each in (tag("dt", word, id=_anchor(word)), tag("dd", WORDS[word]))]
    return [*made, *([Section("Words", [tag("dl", *entries)]).element()] if entries else [])]
