"""Elements of pages: every text is escaped, and nothing can run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.page.html import document, rows, tag
from jobs.page.parts import bars, number, percent, sentence
from tests.support.pages import Reader


@pytest.mark.parametrize(
    "text",
    ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "</style><b>", "a & b"],
)
def test_a_text_stays_a_text(text: str) -> None:
    read = Reader(document(text, tag("p", text, title=text), rows([text, text], head=[text, text])))
    assert not {"script", "img", "b"} & set(read.tags)
    assert not any(name.startswith("on") for name in read.names)
    assert read.texts.count(text) == 6


@given(st.text())
def test_any_text_makes_a_page(text: str) -> None:
    page = document("t", tag("p", text))
    page.encode()
    assert Reader(page).tags.count("p") == 1


def test_a_page_is_one_file_without_script() -> None:
    read = Reader(document("t", bars({"a": 1, "b": 0}, "x")))
    assert not {"script", "link", "img", "iframe"} & set(read.tags)
    assert not {"style", "src", "href"} & read.names


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.5, "50 %"),
        (0.1234, "12.3 %"),
        (1e-9, "< 0.1 %"),
        (1 - 1e-9, "> 99.9 %"),
    ],
)
def test_percent(share: float, text: str) -> None:
    assert percent(share).replace("\u00a0", " ") == text


def test_numbers_and_sentences() -> None:
    assert [number(12345), number(0.000496612)] == ["12,345", "0.000497"]
    assert [sentence("δ is small"), sentence("is it."), sentence("")] == ["δ is small.", "Is it.", "."]
