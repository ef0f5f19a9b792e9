"""What a page is made of, whatever the model: sections of sentences, facts, tables, bars and trees.

Everything is text here; the template alone knows HTML, and escapes all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias


@dataclass(frozen=True)
class Sentences:
    """Paragraphs, or with ``listed`` the items of a list."""

    kind: ClassVar[str] = "sentences"
    lines: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class Fact:
    """A figure, and in a sentence what it means. warns: whether a reader should stop at it."""

    name: str
    figure: str
    meaning: str
    warns: bool = False


@dataclass(frozen=True)
class Facts:
    """Figures below each other."""

    kind: ClassVar[str] = "facts"
    facts: Sequence[Fact]


@dataclass(frozen=True)
class Rows:
    """A table; all rows have as many cells as there are heads. numeric: the columns whose cells are numbers."""

    kind: ClassVar[str] = "rows"
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Bar:
    """share: 0 to 1, how long the bar is. figure: what stands beside it."""

    name: str
    share: float
    figure: str


@dataclass(frozen=True)
class Bars:
    """A bar chart, which reads as a table of two columns without its bars."""

    kind: ClassVar[str] = "bars"
    caption: str
    heads: tuple[str, str]
    bars: Sequence[Bar]
    note: str = ""


@dataclass(frozen=True)
class Branch:
    """A value of a hierarchy. bar: of one that is published; below: those that it was split into."""

    name: str
    bar: Bar | None = None
    below: Sequence[Branch] = ()


@dataclass(frozen=True)
class Tree:
    """A hierarchy down to what is published of it."""

    kind: ClassVar[str] = "tree"
    caption: str
    root: Branch


Block: TypeAlias = Sentences | Facts | Rows | Bars | Tree


@dataclass(frozen=True)
class Part:
    """What of a section has a heading of its own."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Section:
    """One heading of a page, and what is below it."""

    title: str
    blocks: Sequence[Block] = ()
    parts: Sequence[Part] = field(default=())

    @property
    def anchor(self) -> str:
        """What links to it name."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())


@dataclass(frozen=True)
class Opening:
    """What a page begins with: the release in a sentence, the few figures that matter most, what was checked."""

    sentence: str
    figures: Sequence[Fact]
    checked: Sequence[str]


@dataclass(frozen=True)
class Told:
    """What a model says of a report: its opening, its sections in order, and the words it uses with their meaning."""

    opening: Opening
    sections: Sequence[Section]
    words: Sequence[tuple[str, str]]
