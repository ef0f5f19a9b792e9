"""Hierarchy makers: keys of a column that are short for a `taxonomy`.

A column takes a maker as a mapping and keeps the nested taxonomy alone. So canonical job, hash, verifier and joint
runs are those of a job with the taxonomy written by hand.

Sources of the ICD chapters and blocks: World Health Organization, International Statistical Classification of
Diseases, 10th revision (22 chapters); ICD-9-CM, tabular list (17 chapters and two supplementary classifications). The
ranges are public facts; the titles are shortened.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from pydantic import Field, field_validator

from jobs.data.table_file import shown
from jobs.file.fields import Fields, Nested

ROOT = "*"
"""Root above all values of a column without a separate taxonomy."""
_VALUES = "All values of the column, each once"


def repeated(values: Sequence[str]) -> str | None:
    """Return the first value that stands in a list twice, or None."""
    seen = set[str]()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


class Maker(Fields):
    """A taxonomy in one line. The job that is hashed and sent has the taxonomy instead."""

    values: tuple[str, ...]

    @field_validator("values")
    @classmethod
    def _each_once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        stripped = tuple(value.strip() for value in values)
        if not values:
            raise ValueError("list at least one value")
        if (twice := repeated(stripped)) is not None:
            raise ValueError(f"{shown(twice)} is listed twice: list each value once")
        if ROOT in stripped:
            raise ValueError(
                f"{ROOT!r} is published for all values together: rename this value, also in the table"
            )
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
    """Codes of diseases by chapter, block and category: `I00–I99 Circulatory system`, `I20–I25`, `I21.-`."""

    version: Literal["10", "9"] = Field(
        description="`10`: ICD-10, also with the digits of national versions. `9`: ICD-9-CM, with V and E codes."
    )
    values: tuple[str, ...] = Field(description=f"{_VALUES}: codes such as I21.4 or 410.71.")

    def taxonomy(self) -> Nested:
        category_of, chapter_of, block_of = _CODES[self.version]

        def category(value: str) -> str:
            found = category_of(value)
            if found is None:
                raise ValueError(
                    f"{value[:_MOST_SHOWN]!r} is no code of ICD-{self.version}: write codes such as "
                    f"{_EXAMPLES[self.version]}"
                )
            return found

        levels: list[Callable[[str], str]] = [
            lambda value: chapter_of(category(value)),
            lambda value: block_of(category(value)),
            lambda value: f"{category(value)}.-",
        ]
        return {ROOT: _grouped(self.values, levels)}


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


_BLOCKS_10 = (
    "A00-A09 A15-A19 A20-A28 A30-A49 A50-A64 A65-A69 A70-A74 A75-A79 A80-A89 A90-A99 B00-B09 B15-B19 "
    "B20-B24 B25-B34 B35-B49 B50-B64 B65-B83 B85-B89 B90-B94 B95-B98 B99 C00-C14 C15-C26 C30-C39 C40-C41 "
    "C43-C44 C45-C49 C50 C51-C58 C60-C63 C64-C68 C69-C72 C73-C75 C76-C80 C81-C96 C97 D00-D09 D10-D36 "
    "D37-D48 D50-D53 D55-D59 D60-D64 D65-D69 D70-D77 D80-D89 E00-E07 E10-E14 E15-E16 E20-E35 E40-E46 "
    "E50-E64 E65-E68 E70-E90 F00-F09 F10-F19 F20-F29 F30-F39 F40-F48 F50-F59 F60-F69 F70-F79 F80-F89 "
    "F90-F98 F99 G00-G09 G10-G14 G20-G26 G30-G32 G35-G37 G40-G47 G50-G59 G60-G64 G70-G73 G80-G83 G90-G99 "
    "H00-H06 H10-H13 H15-H22 H25-H28 H30-H36 H40-H42 H43-H45 H46-H48 H49-H52 H53-H54 H55-H59 H60-H62 "
    "H65-H75 H80-H83 H90-H95 I00-I02 I05-I09 I10-I15 I20-I25 I26-I28 I30-I52 I60-I69 I70-I79 I80-I89 "
    "I95-I99 J00-J06 J09-J18 J20-J22 J30-J39 J40-J47 J60-J70 J80-J84 J85-J86 J90-J94 J95-J99 K00-K14 "
    "K20-K31 K35-K38 K40-K46 K50-K52 K55-K64 K65-K67 K70-K77 K80-K87 K90-K93 L00-L08 L10-L14 L20-L30 "
    "L40-L45 L50-L54 L55-L59 L60-L75 L80-L99 M00-M03 M05-M14 M15-M19 M20-M25 M30-M36 M40-M43 M45-M49 "
    "M50-M54 M60-M63 M65-M68 M70-M79 M80-M85 M86-M90 M91-M94 M95-M99 N00-N08 N10-N16 N17-N19 N20-N23 "
    "N25-N29 N30-N39 N40-N51 N60-N64 N70-N77 N80-N98 N99 O00-O08 O10-O16 O20-O29 O30-O48 O60-O75 O80-O84 "
    "O85-O92 O94-O99 P00-P04 P05-P08 P10-P15 P20-P29 P35-P39 P50-P61 P70-P74 P75-P78 P80-P83 P90-P96 "
    "Q00-Q07 Q10-Q18 Q20-Q28 Q30-Q34 Q35-Q37 Q38-Q45 Q50-Q56 Q60-Q64 Q65-Q79 Q80-Q89 Q90-Q99 R00-R09 "
    "R10-R19 R20-R23 R25-R29 R30-R39 R40-R46 R47-R49 R50-R69 R70-R79 R80-R82 R83-R89 R90-R94 R95-R99 "
    "S00-S09 S10-S19 S20-S29 S30-S39 S40-S49 S50-S59 S60-S69 S70-S79 S80-S89 S90-S99 T00-T07 T08-T14 "
    "T15-T19 T20-T32 T33-T35 T36-T50 T51-T65 T66-T78 T79 T80-T88 T90-T98 U00-U49 U82-U85 V01-V99 W00-X59 "
    "X60-X84 X85-Y09 Y10-Y34 Y35-Y36 Y40-Y84 Y85-Y89 Y90-Y98 Z00-Z13 Z20-Z29 Z30-Z39 Z40-Z54 Z55-Z65 "
    "Z70-Z76 Z80-Z99 "
)
"""Blocks of ICD-10, ascending."""
_BLOCKS_9 = (
    "001-009 010-018 020-027 030-041 042 045-049 050-059 060-066 070-079 080-088 090-099 100-104 110-118 "
    "120-129 130-136 137-139 140-149 150-159 160-165 170-176 179-189 190-199 200-208 209 210-229 230-234 "
    "235-238 239 240-246 249-259 260-269 270-279 280-289 290-294 295-299 300-316 317-319 320-327 330-337 "
    "338 339 340-349 350-359 360-379 380-389 390-392 393-398 401-405 410-414 415-417 420-429 430-438 "
    "440-449 451-459 460-466 470-478 480-488 490-496 500-508 510-519 520-529 530-539 540-543 550-553 "
    "555-558 560-569 570-579 580-589 590-599 600-608 610-612 614-616 617-629 630-633 634-639 640-649 "
    "650-659 660-669 670-677 678-679 680-686 690-698 700-709 710-719 720-724 725-729 730-739 740-759 "
    "760-763 764-779 780-789 790-796 797-799 800-804 805-809 810-819 820-829 830-839 840-848 850-854 "
    "860-869 870-879 880-887 890-897 900-904 905-909 910-919 920-924 925-929 930-939 940-949 950-957 "
    "958-959 960-979 980-989 990-995 996-999 E000 E001-E030 E800-E807 E810-E819 E820-E825 E826-E829 "
    "E830-E838 E840-E845 E846-E849 E850-E858 E860-E869 E870-E876 E878-E879 E880-E888 E890-E899 E900-E909 "
    "E910-E915 E916-E928 E929 E930-E949 E950-E959 E960-E969 E970-E978 E979 E980-E989 E990-E999 V01-V09 "
    "V10-V19 V20-V29 V30-V39 V40-V49 V50-V59 V60-V69 V70-V82 V83-V84 V85 V86 V87 V88 V89 V90 V91 "
)
"""Sections of ICD-9-CM, ascending."""


def _block(blocks: Sequence[str], category: str) -> str:
    """Return the block of a category as a range; a category that national versions add stands alone: `C4A–C4A`."""
    first, _, last = blocks[max(bisect_right(blocks, category, key=_first_of) - 1, 0)].partition("-")
    return f"{first}–{last or first}" if first <= category <= (last or first) else f"{category}–{category}"


def _first_of(block: str) -> str:
    return block.partition("-")[0]


_CODES: Mapping[str, tuple[Callable[[str], str | None], Callable[[str], str], Callable[[str], str]]] = {
    "10": (category_10, _chapter_10, partial(_block, _BLOCKS_10.split())),
    "9": (category_9, _chapter_9, partial(_block, _BLOCKS_9.split())),
}
"""Category of a code, and chapter and block of a category, by version."""

MAKERS = ("prefix", "order", "icd")
"""Keys of the makers in a column."""
