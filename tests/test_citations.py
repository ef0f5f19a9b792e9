"""Every citation resolves inside the repository.

What is read: docstrings and comments of Python files (not code, so `list[T]` is no citation), Markdown without its
code, comments of configuration files. What counts as a citation:

- a *source key*: capital letters, perhaps two digits of a year, in brackets, behind a blank or an opening bracket
  and not followed by one, as in "[T] Eq. 3.2" or "([KDD09])"; it is a heading of docs/sources.md;
- "semantics §3.4" and "house-style §2": numbered headings of these documents, also in lists ("semantics §3.4, §6").
  The pages below docs/semantics are one document;
- a work *by year*, such as "CCS 2017" or "Ding et al. 2021": a line of docs/sources.md has both words.

Documents that are not part of the repository are not cited at all.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.statements import statements

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    *("crypto", "anonymize", "jobs", "party", "coordinator", "evaluation", "protos", "tests", "benchmarks"),
    *("docs", "deploy", "examples"),
)
WRITTEN = {".py", ".md", ".toml", ".yaml", ".yml", ".proto", ".sh"}
NUMBERED = {
    "semantics": tuple(sorted((ROOT / "docs" / "semantics").glob("*.md"))),
    "house-style": (ROOT / "docs" / "house-style.md",),
}
"""The pages of every document whose headings have numbers."""

KEY = re.compile(r"(?<![^\s(\[/—–-])\[([A-Z]+(?:[0-9]{2})?)\](?![\[(:\w])")
SECTIONS = re.compile(
    rf"\b({'|'.join(NUMBERED)})(?:(?:/[a-z]+)?\.md\)|\))?,? (§[0-9.]*[0-9](?:(?:,| and| to|,? or) §[0-9.]*[0-9])*)"
)
YEAR = re.compile(r"\b([A-Z][\w&]*)(?: et al\.)?,? \(?((?:19|20)[0-9]{2})\b(?!-)")
MAY_CITE = re.compile(r"\[[A-Z]+(?:[0-9]{2})?\]|§|(?:19|20)[0-9]{2}")
"""Without any of these there is nothing to read closely."""
OUTSIDE = re.compile(
    r"\bDESIGN\b|\b(?:dp|engine)-notes\b|house style, section"
    r"|\b(?:anchors|decisions|redesign|newcomer|trajectories|multi-sensitive|tdr-and-clusters)\.md"
    r"|(?<!semantics/)(?<!\]\()\bsynthetic\.md"
    r"|\.\./shared/(?:[\w-]+\.md|papers|prototypes|attacks)"
)


def prose_of_python(text: str) -> Iterator[str]:
    """Docstrings, those of attributes too, and blocks of comments."""
    for node in statements(ast.parse(text)):
        constant = node.value if isinstance(node, ast.Expr) else None
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
            yield constant.value
    if not any("#" in line and MAY_CITE.search(line) for line in text.splitlines()):
        return  # a comment that cites has a line of its own that says so
    block, last = [""], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    yield " ".join(block)


def prose_of(path: Path) -> Iterator[str]:
    """Yield the prose of a file: of Markdown all but code, of other files but Python the comments."""
    text = path.read_text()
    if not MAY_CITE.search(text):
        return
    if path.suffix == ".py":
        yield from prose_of_python(text)
    elif path.suffix == ".md":
        yield re.sub(r"```.*?```|`[^`\n]*`", " ", text, flags=re.DOTALL)
    else:
        yield " ".join(line.partition("#")[2] for line in text.splitlines())


def one_line(text: str) -> str:
    return " ".join(text.split())


@cache
def files() -> tuple[Path, ...]:
    """Every file that may cite: of the project's folders, and at the top. This one quotes what is no citation."""
    top = [path for path in ROOT.iterdir() if path.suffix in WRITTEN or path.name == "Makefile"]
    below = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in WRITTEN]
    return tuple(path for path in sorted([*top, *below]) if path != Path(__file__).resolve())


@cache
def prose() -> tuple[tuple[str, str], ...]:
    """All texts in which citations stand, each with its place."""
    return tuple((name(path), one_line(text)) for path in files() for text in prose_of(path))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def headings(document: str) -> frozenset[str]:
    """Return the numbers of a document's headings: "3", "3.4"."""
    return frozenset(number for page in NUMBERED[document] for number in numbers_of(page))


def numbers_of(page: Path) -> list[str]:
    return re.findall(r"^#+ ([0-9]+(?:\.[0-9]+)*) ", page.read_text(), re.MULTILINE)


@cache
def source_keys() -> frozenset[str]:
    return frozenset(re.findall(r"^## \[([A-Z]+[0-9]*)\]$", SOURCES.read_text(), re.MULTILINE))


SOURCES = ROOT / "docs" / "sources.md"


def keys_in(text: str) -> list[str]:
    return KEY.findall(text)


def sections_in(text: str) -> list[tuple[str, str]]:
    """Document and number of every cited section."""
    found = SECTIONS.findall(text)
    return [
        (document, number) for document, listed in found for number in re.findall(r"§([0-9.]*[0-9])", listed)
    ]


# ---- what counts


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Source: [T] 5.4; see [KDD09].", ["T", "KDD09"]),
        ("([T] Algorithm 3.1) and [T]'s threshold", ["T", "T"]),
        ("codes: list[T], Rounds[R], T[v], Any: {White-collar: [Lawyer]}", []),
        ("a link [T](other.md), a list [A, B]", []),
    ],
)
def test_what_a_source_key_is(text: str, keys: list[str]) -> None:
    assert keys_in(text) == keys


def test_what_a_section_is() -> None:
    text = (
        "the loop (semantics §3.6, §10.2); house-style §5. [semantics](semantics/topdown.md) §3 and §6, or [T] §7"
        "; [house-style.md](house-style.md) §4"
    )
    assert sections_in(text) == [
        ("semantics", "3.6"), ("semantics", "10.2"), ("house-style", "5"), ("semantics", "3"), ("semantics", "6"),
        ("house-style", "4"),
    ]  # fmt: skip


def test_code_is_not_read() -> None:
    source = 'def f(x: "list[T]") -> T:\n    """See [KDD09]."""\n    # [T] 5\n    return x[A]\n'
    assert [key for text in prose_of_python(source) for key in keys_in(text)] == ["KDD09", "T"]


@pytest.mark.more
def test_the_search_finds_citations_at_all() -> None:
    assert sum(len(keys_in(text)) for _, text in prose()) > 80
    assert sum(len(YEAR.findall(text)) for _, text in prose()) > 40


# ---- what must resolve


def test_every_source_key_is_resolved() -> None:
    assert [
        (place, key) for place, text in prose() for key in keys_in(text) if key not in source_keys()
    ] == []


def test_every_cited_section_is_a_heading() -> None:
    missing = [
        (place, f"{document} §{number}")
        for place, text in prose()
        for document, number in sections_in(text)
        if number not in headings(document)
    ]
    assert missing == []


def test_every_work_cited_by_year_is_listed() -> None:
    lines = SOURCES.read_text().splitlines()
    cited = {
        (place, *work) for place, text in prose() if place.endswith(".py") for work in YEAR.findall(text)
    }
    missing = [
        (place, word, year)
        for place, word, year in cited
        if not any(word in line and year in line for line in lines)
    ]
    assert sorted(missing) == []


def test_numbers_of_headings_are_unique_and_ascend() -> None:
    """A number stands once in all pages of a document. It ascends within a page."""
    for document, pages in NUMBERED.items():
        found = [number for page in pages for number in numbers_of(page)]
        assert sorted(found) == sorted(headings(document))
        for page in pages:
            numbers = [tuple(map(int, number.split("."))) for number in numbers_of(page)]
            assert numbers == sorted(numbers)


def test_the_index_of_the_definitions_lists_every_number() -> None:
    """Every page with its numbers: "3, 10.4, 10.6 to 10.10". A whole chapter stands with its number alone."""
    index = (ROOT / "docs" / "semantics" / "index.md").read_text()
    rows = re.findall(r"^\| \[[^]]+\]\(([a-z]+\.md)\) \| ([0-9., to]+) \|", index, re.MULTILINE)
    listed = {page: set(spelled_out(numbers)) for page, numbers in rows}
    pages = {page.name: numbers_of(page) for page in NUMBERED["semantics"] if page.name != "index.md"}
    assert listed == {
        page: {
            number for number in numbers if number == "10" or number.startswith("10.") or "." not in number
        }
        for page, numbers in pages.items()
    }


def spelled_out(numbers: str) -> Iterator[str]:
    """Yield every number of a list such as "3, 10.6 to 10.8"."""
    for part in numbers.split(", "):
        first, _, last = part.partition(" to ")
        chapter, _, least = first.rpartition(".")
        yield from (
            [f"{chapter}.{n}" for n in range(int(least), int(last.rpartition(".")[2]) + 1)]
            if last
            else [first]
        )


def test_nothing_outside_the_repository_is_cited() -> None:
    """Not in strings either: figures and messages quote documents, too."""
    found = {(name(path), cited) for path in files() for cited in OUTSIDE.findall(one_line(path.read_text()))}
    assert sorted(found) == []
