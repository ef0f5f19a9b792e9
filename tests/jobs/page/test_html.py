"""Elements of pages: every text is escaped, and nothing can run."""

from __future__ import annotations

from xml.etree.ElementTree import tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.page.html import document, rows, tag
from jobs.page.parts import bars, number, pairs, percent, sentence, size
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


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("גיל [18,22), מין M", "<bdi>גיל</bdi> [18,22), <bdi>מין</bdi> M"),
        ("גיל, מין", "<bdi>גיל</bdi>, <bdi>מין</bdi>"),
        ("العمر 20-30 سنة: K", "<bdi>العمر 20-30 سنة</bdi>: K"),
        ("is תל-אביב. עיר", "is <bdi>תל-אביב</bdi>. <bdi>עיר</bdi>"),
        ("ε is <1", "ε is &lt;1"),
    ],
)
def test_words_from_right_to_left_stand_alone(text: str, made: str) -> None:
    assert tostring(tag("p", text), "unicode", "html") == f"<p>{made}</p>"
    assert text in Reader(document(text, "")).texts  # in the title, which has no elements


def test_a_name_and_its_value_stand_alone() -> None:
    made = tostring(pairs([("מין", "זכר"), ("age", "5")]), "unicode", "html")
    assert made == "<span><bdi>מין</bdi> <bdi>זכר</bdi>, age 5</span>"


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
    assert [number(1050.4), number(999.7), number(99.96), number(4.96e-7)] == [
        "1,050",
        "1,000",
        "100",
        "0.000000496",
    ]
    assert [size(n).replace("\u00a0", " ") for n in (0, 999, 1500, 12_345_678)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "12.3 MB",
    ]
    assert [sentence("δ is small"), sentence("is it."), sentence("")] == ["δ is small.", "Is it.", "."]
