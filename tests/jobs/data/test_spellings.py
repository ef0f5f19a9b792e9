"""Spellings of one value."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.data.texts import alike, are_alike, folded
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HIV", "hiv"),
        ("HIV", "HIV "),
        ("HIV", "\u00a0HIV"),
        ("HIV", "H\u200bIV"),
        ("HIV", "\ufeffHIV"),
        ("HIV", "\uff28\uff29\uff36"),
        ("HIV", "\u041d\u0406V"),
        ("HIV", "\u0397\u0399V"),
        ("HIV", "\u202eHIV"),
        ("New York", "NewYork"),
        ("New York", "New\u2003York"),
        ("caf\u00e9", "cafe\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("O'Neil", "O\u2019Neil"),
        ("5-10", "5\u201310"),
        ("non-HIV", "non\u2011HIV"),
        ("\u041c\u043e\u0441\u043a\u0432\u0430", "\u043c\u041e\u0421\u041a\u0412\u0410"),
        ("\u0391\u0398\u0397\u039d\u0391", "\u03b1\u03b8\u03b7\u03bd\u03b1"),
        ("Type\ufe0f", "type"),
        ("HIV", "HIV\u3164"),
        ("HIV", "H\u2800IV"),
        ("HIV", "HIV\u180b"),
        ("HIV", "HIV\u17b4"),
        ("HIV", "HIV\U000e0100"),
        ("HIV", "\u041d\u0406\u0474"),
        ("flu", "fl\u03c5"),
        ("A-1", "A\u22121"),
        ("miss", "m\u0131ss"),
    ],
)
def test_spellings_of_one_value(one: str, other: str) -> None:
    assert one != other
    assert are_alike(one, other)
    assert alike(["x", one, "y", other]) == (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HIV", "HPV"),
        ("A1", "Al"),
        ("0", "O"),
        ("10", "1.0"),
        ("1,5", "15"),
        ("caf\u00e9", "cafe"),
        ("+", "-"),
        ("<5", ">5"),
        ("5 mg", "5 \u00b5g"),
        ("1 1/2", "11/2"),
        ("10 1", "101"),
    ],
)
def test_different_values(one: str, other: str) -> None:
    assert not are_alike(one, other)
    assert alike([one, other]) is None


def test_a_text_is_no_other_spelling_of_itself() -> None:
    assert alike(["HIV", "HIV"]) is None


@settings(max_examples=examples(300))
@given(st.text(max_size=8))
def test_folding_twice_is_folding_once(text: str) -> None:
    once = folded(text)
    assert folded(once) == once
    assert folded(unicodedata.normalize("NFD", text)) == once
