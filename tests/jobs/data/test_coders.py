"""The rule of a column: which text has which code, and what is said of a text that has none."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from anonymize.grid import from_step
from anonymize.table import SetRule
from anonymize.taxonomy import from_nested
from jobs.data.coders import BAD, DROPPED, Categorical, Coder, Numeric, Sets, Unlisted, taxonomy_coder

GRID = from_step(Decimal(0), Decimal(100), Decimal(10), "age")


@pytest.mark.parametrize(
    ("coder", "texts", "codes"),
    [
        (Categorical({"a": 0, "b": 1}, missing=7), ["b", "a", "", "?", "c", "A"], [1, 0, 7, 7, BAD, BAD]),
        (Categorical({"a": 0}, missing=DROPPED, other=5), ["x", "?", "a"], [5, DROPPED, 0]),
        (Numeric(GRID), ["5", " 15", "?", "", "-1", "100", "old"], [0, 1, DROPPED, DROPPED, BAD, BAD, BAD]),
        (
            Numeric(GRID),
            [
                "1e1",
                "+5",
                "05",
                "5.",
                ".5",
                "-0",
                "\t5\u00a0",
                "\u2003?",
                "5 5",
                "0x5",
                "1_0",
                "nan",
                "inf",
                "٣",
            ],
            [1, 0, 0, 0, 0, 0, 0, DROPPED, BAD, BAD, BAD, BAD, BAD, BAD],
        ),
        (Numeric(GRID, clamp=True), ["-1", "1e9", "old"], [0, 9, DROPPED]),
        (Numeric(GRID, clamp=True, missing=0), ["55", "?", "old"], [5, 0, 0]),
        (Unlisted(missing=BAD), ["z", "a", "z", "?"], [0, 1, 0, BAD]),
        (Sets(Categorical({"a": 0, "b": 1}, 2), SetRule(";", 2)), ["b;a", "a;b", "a", ""], [0, 0, 1, 2]),
        (Sets(Categorical({"a": 0}, DROPPED), SetRule(";")), ["", "a"], [DROPPED, 0]),
    ],
    ids=[
        "listed",
        "other",
        "grid",
        "hostile",
        "clamped",
        "missing is a cell",
        "unlisted",
        "sets",
        "sets with holes",
    ],
)
def test_the_code_of_each_text(coder: Coder, texts: list[str], codes: list[int]) -> None:
    assert coder.begin().codes(texts).tolist() == codes


@pytest.mark.parametrize(
    ("coder", "texts", "outside"),
    [
        (Categorical({"a": 0}, missing=0, other=0), ["a", "x", "?"], [False, True, False]),
        (Categorical({"a": 0}, missing=0, other=0, moved=True), ["a", "x", "?"], [False, True, True]),
        (Numeric(GRID, clamp=True), ["5", "-1", "?", "old"], [False, True, False, True]),
        (Numeric(GRID, clamp=True, missing=0), ["?"], [True]),
        (Sets(Categorical({"a": 0}, 1, 1), SetRule(";")), ["a", "a;x", ""], [False, True, False]),
        (Unlisted(missing=DROPPED), ["a", "?"], [False, False]),
    ],
    ids=["other", "moved", "clamped", "missing is a cell", "sets", "unlisted"],
)
def test_which_texts_are_outside(coder: Coder, texts: list[str], outside: list[bool]) -> None:
    assert coder.begin().outside(texts).tolist() == outside


def test_a_coder_keeps_nothing_of_a_pass() -> None:
    for coder in (Unlisted(DROPPED), Sets(Categorical({"a": 0, "b": 1}, 2), SetRule(";"))):
        assert coder.begin().codes(["b"]).tolist() == coder.begin().codes(["a"]).tolist() == [0]


def test_values_that_are_found_are_numbered_in_sorted_order() -> None:
    at_work = Unlisted(missing=DROPPED).begin()
    codes = np.concatenate([at_work.codes(["z", "b"]), at_work.codes(["a", "z"])])
    column = at_work.finished(codes)
    assert (column.domain, column.codes.tolist()) == (("a", "b", "z"), [2, 1, 0, 2])


def test_the_sets_that_are_found() -> None:
    at_work = Sets(Categorical({"a": 0, "b": 1}, 2), SetRule(";")).begin()
    column = at_work.finished(at_work.codes(["b;a", "?", "a"]))
    assert column.sets is not None
    assert (column.sets.leaves.tolist(), column.sets.starts.tolist()) == ([0, 1, 2, 0], [0, 2, 3, 4])


@pytest.mark.parametrize(("drop", "missing"), [(False, 2), (True, DROPPED)])
def test_a_missing_cell_of_a_taxonomy(drop: bool, missing: int) -> None:
    tree = from_nested({"Any": ["a", "b"]}, "job", missing_leaf=not drop)
    assert taxonomy_coder(tree, drop=drop).codes(["a", "b", ""]).tolist() == [0, 1, missing]


@pytest.mark.parametrize(
    ("coder", "value", "error_id", "private"),
    [
        (Categorical({"a": 0}, BAD), "Zebra", "data-unknown-value", "line 7: 'Zebra'"),
        (
            Categorical({"a": 0}, BAD),
            " a",
            "data-unknown-value",
            "without surrounding blanks the value would fit",
        ),
        (Categorical({"20": 0}, BAD), "20.0", "data-unknown-value", "as '20' (without `.0`)"),
        (
            Categorical({"04109": 0}, BAD),
            "4109",
            "data-unknown-value",
            "as '04109' (leading zeros were lost)",
        ),
        (
            Categorical({"true": 0}, BAD),
            "TRUE",
            "data-unknown-value",
            "as 'true' (upper and lower case differ)",
        ),
        (Categorical({"a": 0}, BAD), "?", "data-missing-value", "line 7: '?'"),
        (Unlisted(BAD), "", "data-missing-value", "line 7: ''"),
        (Numeric(GRID), "Zebra", "data-outside-domain", "line 7: 'Zebra'"),
    ],
)
def test_what_is_refused_is_shown_to_the_owner_alone(
    coder: Coder, value: str, error_id: str, private: str
) -> None:
    error = coder.refused("job", value, "line 7")
    assert (error.error_id, error.column) == (error_id, "job")
    assert private in error.private
    assert "line 7" not in str(error)
    assert "Zebra" not in str(error)


@pytest.mark.parametrize("value", ["20.5", "20.01", "0.0", "41", "4109.0.0"])
def test_no_other_value_is_taken_for_a_spelling(value: str) -> None:
    """Two listed numbers that differ in leading zeros alone give no hint, either."""
    coder = Categorical({"20": 0, "041": 1, "0041": 2, "4109": 3}, BAD)
    assert "would fit" not in coder.refused("job", value, "line 7").private
