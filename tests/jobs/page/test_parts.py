"""Bars of a column: few, in order, and with every record."""

from __future__ import annotations

import re
from xml.etree.ElementTree import tostring

from hypothesis import given
from hypothesis import strategies as st

from jobs.page.html import document
from jobs.page.parts import INTERVAL, MOST_BARS, bars, in_few, listing, ordered, paragraph, warning
from tests.support.pages import Reader

VALUES = st.dictionaries(
    st.one_of(
        st.builds(lambda a, n: f"[{a},{a + n})", st.integers(-50, 50), st.integers(1, 60)),
        st.builds(lambda a, n: f"[{a},{a + n}) or ?", st.integers(-50, 50), st.integers(1, 60)),
        st.text(max_size=3),
        st.integers(0, 99).map(lambda n: f"{n} others"),
    ),
    st.integers(0, 1000),
    max_size=90,
)


@given(VALUES)
def test_every_record_is_in_one_of_few_bars(counts: dict[str, int]) -> None:
    given = ordered(counts, ())
    found = in_few(given, list(given))
    assert sum(n for _, n in found) == sum(counts.values())
    assert len(found) <= MOST_BARS
    if len(counts) <= MOST_BARS:
        assert dict(found) == counts


def test_rare_values_are_the_last_bar() -> None:
    """Values without an order keep their order, except the rarest, which are together at the end."""
    counts = {f"v{i}": i for i in range(MOST_BARS + 3)}
    read = Reader(document("t", bars(counts, "x")))
    values = [text for text in read.texts if re.fullmatch(r"v\d+|\d+ others", text)]
    assert values == [*(f"v{i}" for i in range(4, MOST_BARS + 3)), "4 others"]
    assert in_few(counts, list(counts))[-1] == ("4 others", 0 + 1 + 2 + 3)


def test_neighbouring_intervals_are_joined() -> None:
    """A hundred intervals of a cut are twenty bars; the values without a number stay apart."""
    counts = {f"[{i},{i + 1})": i for i in range(100)} | {"?": 7}
    found = in_few(counts, list(counts))
    assert found[0] == ("[0,5)", 0 + 1 + 2 + 3 + 4)
    assert found[19] == ("[95,100)", 95 + 96 + 97 + 98 + 99)
    assert found[20:] == [("?", 7)]


def test_intervals_without_a_record_fill_the_gaps() -> None:
    labels = [f"[{i},{i + 1})" for i in range(100)]
    counts = dict.fromkeys(labels[:50:2], 1) | {"[99,100)": 5}
    found = in_few(counts, labels)
    assert [label for label, _ in found] == [f"[{i},{i + 5})" for i in range(0, 100, 5)]
    assert found[-1] == ("[95,100)", 5)


def test_overlapping_intervals_are_held_by_their_bar() -> None:
    """Intervals of kd overlap, also with the records without a value: a bar holds each of its intervals."""
    counts = {f"[{i},{i + 2 + i % 9 * 3})": 1 for i in range(60)} | {"[59,90) or ?": 2}
    found = in_few(ordered(counts, ()), list(ordered(counts, ())))
    assert [each for each, _ in found if each.endswith("or ?")] == ["[56,90) or ?"]
    hulls = [tuple(map(int, match.groups()[:2])) for each, _ in found if (match := INTERVAL.fullmatch(each))]
    assert len(hulls) == len(found)
    for value in counts:
        inner = INTERVAL.fullmatch(value)
        assert inner is not None
        assert any(low <= int(inner[1]) and int(inner[2]) <= high for low, high in hulls)


def test_intervals_of_dates_are_in_order() -> None:
    days = [f"[2024-{month:02}-01,2024-{month:02}-15)" for month in range(1, 13)]
    assert list(ordered({day: 12 - i for i, day in enumerate(reversed(days))}, ())) == days
    values = {"x": 1, "[90,100) or ?": 9, "[8,10)": 5, "y": 3}
    assert list(ordered(values, ())) == ["[8,10)", "[90,100) or ?", "y", "x"]


def test_a_bar_of_empty_cells_has_a_label() -> None:
    read = Reader(document("t", bars({"a": 3, "": 1}, "x")))
    assert "without a value" in read.texts


def test_sentences_have_code_and_spaced_percents() -> None:
    """Also hostile texts stay texts."""
    text = "`own_k` is 5% or 9.5 %, <b>`a` and 7%x and `"
    inner = "<code>own_k</code> is 5\u00a0% or 9.5 %, &lt;b&gt;<code>a</code> and 7%x and `"
    for made in (paragraph(text), warning(text), listing([text])):
        assert made is not None
        assert inner in tostring(made, "unicode", "html")
    assert tostring(paragraph("`a`"), "unicode", "html") == "<p><code>a</code></p>"
