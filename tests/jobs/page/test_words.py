"""Words of pages: every term has a meaning on its page, and docs/report.md says the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.page.page import PAGE
from jobs.page.parts import WORDS, Section, term, with_words
from jobs.release.folder import OWN_PAGE
from tests.jobs.page.releases import JOBS

DOCUMENT = Path(__file__).parents[3] / "docs" / "words.md"


def test_the_document_has_the_same_meanings() -> None:
    lines = re.findall(r"^\| (?!term|---)(.+?) \| (.+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert dict(lines) == dict(WORDS)


def test_only_used_words_stand_at_the_end() -> None:
    made = with_words([Section("A", [term("Noise"), term("Noise", " of a count")])])
    assert [entry.text for entry in made[-1].iter("dt")] == ["Noise"]
    assert len(with_words([Section("A", ["no term"])])) == 1


@pytest.mark.parametrize(
    ("name", "page", "words"),
    [
        ("classified", PAGE, ["Quasi-identifier", "Group", "Inference"]),
        ("sequences", PAGE, ["Group"]),
        ("classified", OWN_PAGE, ["Naive Bayes"]),
    ],
)
def test_a_page_links_the_terms_that_it_uses(
    releases: Mapping[str, Path], name: str, page: str, words: list[str]
) -> None:
    text = (releases[name] / "out" / page).read_text()
    for word in words:
        assert re.search(rf'href="#word-{word.lower().replace(" ", "-")}">{word}s?</a>', text, re.IGNORECASE)


@pytest.mark.parametrize("name", JOBS)
def test_every_link_has_a_place_on_its_page(releases: Mapping[str, Path], name: str) -> None:
    for page in (PAGE, OWN_PAGE):
        path = releases[name] / "out" / page
        if path.is_file():
            text = path.read_text()
            links = set(re.findall(r'href="#([^"]+)"', text))
            assert links
            assert links <= set(re.findall(r'id="([^"]+)"', text))
