"""Hierarchy makers: keys of a column that are short for a `taxonomy`.

A column takes a maker as a mapping and keeps the nested taxonomy alone. So canonical job, hash, verifier and joint
runs are those of a job with the taxonomy written by hand.

Sources of the ICD chapters: World Health Organization, International Statistical Classification of Diseases, 10th
revision (22 chapters); ICD-9-CM, tabular list (17 chapters and two supplementary classifications). The ranges are
public facts; the titles are shortened.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from pydantic import Field, field_validator

from jobs.file.fields import Fields, Nested

ROOT = "*"
"""Root above all values of a column without a separate taxonomy."""
_VALUES = "All values of the column, each once"


class Maker(Fields):
    """A taxonomy in one line. The job that is hashed and sent has the taxonomy instead."""

    values: tuple[str, ...]

    @field_validator("values")
    @classmethod
    def _each_once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        stripped = tuple(value.strip() for value in values)
        if not values or len(set(stripped)) != len(values):
            raise ValueError("list each value once, and at least one")
        return stripped

    def taxonomy(self) -> Nested:
        """Return the tree. Raises ValueError."""
        raise NotImplementedError


class Prefix(Maker):
    """Codes grouped by their first characters, such as ZIP codes: `123**` for 12345 and 12399."""

    values: tuple[str, ...] = Field(description=f"{_VALUES}.")
    lengths: tuple[int, ...] = Field(
        description="Numbers of characters of the groups, e.g. [1, 3]: groups by the first character, and in these "
        "groups by the first three. A value that is no longer than a group's prefix stands alone."
    )

    @field_validator("lengths")
    @classmethod
    def _at_least_one(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if not lengths or min(lengths) < 1:
            raise ValueError("write numbers of characters, e.g. [1, 3]")
        return tuple(sorted(set(lengths)))

    def taxonomy(self) -> Nested:
        width = max(map(len, self.values))
        return {ROOT: _grouped(self.values, [partial(_masked, n, width) for n in self.lengths])}


def _masked(length: int, width: int, value: str) -> str:
    """Return the first characters of a value, with asterisks up to a width; a shorter value unchanged."""
    return value if len(value) <= length else value[:length].ljust(width, "*")


class Order(Maker):
    """Values with an order, joined in neighbouring groups, level by level: `low–medium`."""

    values: tuple[str, ...] = Field(description=f"{_VALUES}, in their order.")
    groups: int = Field(default=2, ge=2, description="Number of neighbours that a group joins on each level.")

    def taxonomy(self) -> Nested:
        nodes = [_Joined(value, value) for value in self.values]
        while len(nodes) > self.groups:
            parts = [nodes[i : i + self.groups] for i in range(0, len(nodes), self.groups)]
            nodes = [part[0] if len(part) == 1 else _Joined.of(part) for part in parts]
        labels = Counter(label for node in nodes for label in node.labels())
        for label, times in labels.items():
            if times > 1:
                raise ValueError(f"two groups or values would have the label {label!r}: rename a value")
        return {ROOT: _below(nodes)}


class _Joined:
    """Value, or neighbouring values joined. parts: the nodes below; empty for a value."""

    def __init__(self, first: str, last: str, parts: Sequence[_Joined] = ()) -> None:
        self.first, self.last, self.parts = first, last, parts

    @classmethod
    def of(cls, parts: Sequence[_Joined]) -> _Joined:
        return cls(parts[0].first, parts[-1].last, parts)

    @property
    def label(self) -> str:
        return f"{self.first}–{self.last}" if self.parts else self.first

    def labels(self) -> list[str]:
        """Return the labels of the node and of all nodes below."""
        return [self.label, *(label for part in self.parts for label in part.labels())]


def _below(nodes: Sequence[_Joined]) -> Nested:
    if not any(node.parts for node in nodes):
        return [node.label for node in nodes]
    return {node.label: _below(node.parts) if node.parts else [node.label] for node in nodes}


class Icd(Maker):
    """Codes of diseases, grouped by chapter and category: `I00–I99 Circulatory system`, `I21.-`."""

    version: Literal["10", "9"] = Field(
        description="`10`: ICD-10, also with the digits of national versions. `9`: ICD-9-CM, with V and E codes."
    )
    values: tuple[str, ...] = Field(description=f"{_VALUES}: codes such as I21.4 or 410.71.")

    def taxonomy(self) -> Nested:
        category_of, chapter_of = _CODES[self.version]

        def category(value: str) -> str:
            found = category_of(value)
            if found is None:
                raise ValueError(
                    f"{value[:_MOST_SHOWN]!r} is no code of ICD-{self.version}: write codes such as "
                    f"{_EXAMPLES[self.version]}"
                )
            return found

        return {
            ROOT: _grouped(
                self.values, [lambda value: chapter_of(category(value)), lambda value: f"{category(value)}.-"]
            )
        }


_EXAMPLES = {"10": "I21.4", "9": "410.71"}
_MOST_SHOWN = 20
"""Characters of a wrong code in an error."""


def _grouped(values: Sequence[str], labels: Sequence[Callable[[str], str]]) -> Nested:
    """Group values by their labels, level by level, in order of appearance.

    labels:  for each level from the top a function from a value to its group's label.
    """
    if not labels:
        return list(values)
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault(labels[0](value), []).append(value)
    return {
        label: [label] if inside == [label] else _grouped(inside, labels[1:])
        for label, inside in groups.items()
    }


_ICD_10 = (
    ("A0", "A00–B99 Infectious diseases"),
    ("C0", "C00–D48 Neoplasms"),
    ("D5", "D50–D89 Blood and immune mechanism"),
    ("E0", "E00–E90 Endocrine and metabolic"),
    ("F0", "F00–F99 Mental and behavioural"),
    ("G0", "G00–G99 Nervous system"),
    ("H0", "H00–H59 Eye"),
    ("H6", "H60–H95 Ear"),
    ("I0", "I00–I99 Circulatory system"),
    ("J0", "J00–J99 Respiratory system"),
    ("K0", "K00–K93 Digestive system"),
    ("L0", "L00–L99 Skin"),
    ("M0", "M00–M99 Musculoskeletal system"),
    ("N0", "N00–N99 Genitourinary system"),
    ("O0", "O00–O99 Pregnancy and childbirth"),
    ("P0", "P00–P96 Perinatal period"),
    ("Q0", "Q00–Q99 Congenital malformations"),
    ("R0", "R00–R99 Symptoms and findings"),
    ("S0", "S00–T98 Injury and poisoning"),
    ("U0", "U00–U99 Special purposes"),
    ("V0", "V01–Y98 External causes"),
    ("Z0", "Z00–Z99 Contact with health services"),
)
"""Chapters by their first code's letter and digit, in the order of letters. The third character decides nowhere, so
categories that national versions add (C4A, H99, T88) are in their chapter, too."""
_ICD_9 = (
    (1, "001–139 Infectious diseases"),
    (140, "140–239 Neoplasms"),
    (240, "240–279 Endocrine and metabolic"),
    (280, "280–289 Blood"),
    (290, "290–319 Mental disorders"),
    (320, "320–389 Nervous system and senses"),
    (390, "390–459 Circulatory system"),
    (460, "460–519 Respiratory system"),
    (520, "520–579 Digestive system"),
    (580, "580–629 Genitourinary system"),
    (630, "630–679 Pregnancy and childbirth"),
    (680, "680–709 Skin"),
    (710, "710–739 Musculoskeletal system"),
    (740, "740–759 Congenital anomalies"),
    (760, "760–779 Perinatal period"),
    (780, "780–799 Symptoms and ill-defined"),
    (800, "800–999 Injury and poisoning"),
)
_ICD_9_V, _ICD_9_E = "V01–V91 Factors influencing health", "E000–E999 External causes"
_CODE_10 = re.compile(r"([A-Z][0-9][0-9A-Z])(?:\.?[0-9A-Z]{1,4}|\.?-)?[+*!†]?")
_CODE_9 = re.compile(r"(V[0-9]{2}|E[0-9]{3}|[0-9]{3})(?:\.?[0-9]{1,2})?|([0-9]{1,2})(?:\.[0-9]{1,2})?")
"""Codes with and without point; numbers that lost their leading zeros, such as 38 for 038."""


def category_10(code: str) -> str | None:
    """Return the category of an ICD-10 code, its first three characters; None for other texts."""
    found = _CODE_10.fullmatch(code.strip().upper())
    return found and found[1]


def category_9(code: str) -> str | None:
    """Return the category of an ICD-9-CM code: three digits, V and two digits, E and three; None for other texts."""
    found = _CODE_9.fullmatch(code.strip().upper())
    category = found and (found[1] or found[2].zfill(3))
    return None if category == "000" else category


def _chapter_10(category: str) -> str:
    starts = [start for start, _ in _ICD_10]
    return _ICD_10[bisect_right(starts, category[:2]) - 1][1]


def _chapter_9(category: str) -> str:
    if not category.isdigit():
        return _ICD_9_V if category[0] == "V" else _ICD_9_E
    return _ICD_9[bisect_right([start for start, _ in _ICD_9], int(category)) - 1][1]


_CODES: Mapping[str, tuple[Callable[[str], str | None], Callable[[str], str]]] = {
    "10": (category_10, _chapter_10),
    "9": (category_9, _chapter_9),
}
"""Category of a code and chapter of a category, by version."""

MAKERS = ("prefix", "order", "icd")
"""Keys of the makers in a column."""
