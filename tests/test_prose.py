"""Words of the project: docstrings begin with a verb or a noun, documents are short of pronouns."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import prose


@pytest.mark.parametrize("folder", prose.FOLDERS)
def test_docstrings_begin_with_a_verb_or_a_noun(folder: str) -> None:
    """Write "Return the groups that …" instead of "Which groups …", and "Return True if …" instead of "Whether …"."""
    assert [f"{path}:{line}: {text}" for path, line, text in prose.ill_begun(folder)] == []


@pytest.mark.parametrize("folder", [folder for folder in prose.FOLDERS if folder != "tests"])
def test_docstrings_are_short_of_pronouns(folder: str) -> None:
    """Repeat the noun."""
    found = prose.of_docstrings(folder)
    assert found.pronouns <= 45
    assert found.lengths[0] <= 15


def test_documents_are_short_of_pronouns() -> None:
    """Of README and all documents together; `python -m benchmarks.prose --long 28` lists long sentences."""
    found = prose.together(prose.of_markdown(path.read_text("utf-8")) for path in prose.documents())
    median, of_one_in_ten = found.lengths
    assert found.pronouns <= 45
    assert median <= 15
    assert of_one_in_ten <= 28
    assert len(found.words) <= 53_500


_FIRST = [
    prose.ROOT / "README.md",
    *(prose.ROOT / "docs" / f"{name}.md" for name in ("index", "security", "architecture", "extending")),
    *sorted((prose.ROOT / "docs" / "guide").glob("*.md")),
]
"""Pages that a newcomer reads."""


@pytest.mark.parametrize("page", _FIRST, ids=lambda page: page.stem)
def test_a_page_that_a_newcomer_reads_is_short_of_pronouns(page: Path) -> None:
    """The mean of all documents hides a page that is hard to read."""
    found = prose.of_markdown(page.read_text("utf-8"))
    median, of_one_in_ten = found.lengths
    assert found.pronouns <= 50
    assert median <= 15
    assert of_one_in_ten <= 28


def test_sentences_of_the_program_are_short_of_pronouns() -> None:
    assert prose.of_program().pronouns <= 45


def test_figures_of_a_text() -> None:
    """Code is a name, headings and tables have no sentences, a link counts by its text."""
    found = prose.of_markdown(
        "# One heading\n\nIt has `one two` words. Those\nare [two](x.md) sentences!\n\n"
        "- An item.\n\n| one | that |\n| --- | --- |\n| it | none |\n\n```sh\nno words here\n```\n"
    )
    assert found.sentences == ["It has 0 words.", "Those are two sentences!", "An item."]
    assert found.words[:2] == ["One", "heading"]
    assert len(found.words) == 2 + 3 + 4 + 2 + 4
    assert found.pronouns == pytest.approx(1000 * 7 / 15)
    assert found.lengths[0] == 3


def test_docstrings_of_a_module() -> None:
    """Modules, classes, functions and values have docstrings; no other text is one."""
    tree = ast.parse(
        '"""M."""\nX = 1\n"""V."""\n\nclass C:\n    """K."""\n    y: int = 2\n    """W."""\n\n'
        'def f():\n    """F."""\n    "no"\n'
    )
    assert sorted(text for _, text in prose.docstrings(tree)) == ["F.", "K.", "M.", "V.", "W."]


def test_sentences_of_a_program() -> None:
    tree = ast.parse(
        '"""A docstring of five words here."""\nraise ValueError(f"write {x} or leave it out `y`")\nz = "too short"\n'
    )
    assert list(prose.said(tree)) == ["write 0 or leave it out 0"]
