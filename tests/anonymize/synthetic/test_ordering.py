"""Rows in the order of their columns: the rule, compared with a rule written row by row."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.dates import from_dates
from anonymize.grid import Grid, from_step
from anonymize.release import LabelledColumn, Release
from anonymize.synthetic.ordering import are_in_order, in_order
from anonymize.table import QidColumn


def grid(low: int, high: int, step: str = "1") -> Grid:
    return from_step(Decimal(low), Decimal(high), Decimal(step), "x")


def release(**columns: list[str]) -> Release:
    built = {}
    for name, texts in columns.items():
        labels = tuple(dict.fromkeys(texts))
        built[name] = LabelledColumn(labels, np.array([labels.index(text) for text in texts]))
    return Release(built)


def texts(table: Release, name: str) -> list[str]:
    column = table.columns[name]
    return [column.labels[code] for code in column.codes]


def by_hand(first: str, second: str, low: tuple[int, int], high: tuple[int, int]) -> tuple[str, str]:
    """Return a row in order, for columns of whole numbers."""
    if not first or not second or int(second) >= int(first):
        return first, second
    if high[0] <= int(first) < high[1]:
        return first, first
    if low[0] <= int(second) < low[1]:
        return second, second
    least = str(max(low[0], high[0]))
    return least, least


ends = st.tuples(st.integers(-5, 20), st.integers(1, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(low=ends, high=ends, data=st.data())
def test_rows_are_mended_one_by_one(low: tuple[int, int], high: tuple[int, int], data: st.DataObject) -> None:
    columns = [QidColumn("a", grid(*low)), QidColumn("b", grid(*high))]
    if max(low[0], high[0]) >= min(low[1], high[1]):
        assert not are_in_order(columns)
        return
    assert are_in_order(columns)
    values = [st.integers(begin, end - 1).map(str) | st.just("") for begin, end in (low, high)]
    rows = data.draw(st.lists(st.tuples(*values), min_size=1, max_size=20))
    mended, broken = in_order(
        release(a=[a for a, _ in rows], b=[b for _, b in rows], c=["x"] * len(rows)), columns
    )
    expected = [by_hand(a, b, low, high) for a, b in rows]
    assert list(zip(texts(mended, "a"), texts(mended, "b"), strict=True)) == expected
    assert broken == [sum(one != other for one, other in zip(rows, expected, strict=True))]
    assert texts(mended, "c") == ["x"] * len(rows)


def test_three_columns_in_a_chain() -> None:
    columns = [QidColumn(name, grid(0, 10)) for name in "abc"]
    mended, broken = in_order(release(a=["5", "1"], b=["3", "2"], c=["1", "3"]), columns)
    assert [texts(mended, name) for name in "abc"] == [["5", "1"], ["5", "2"], ["5", "3"]]
    assert broken == [1, 1]


def test_dates_of_one_form() -> None:
    held = from_dates(date(2024, 1, 1), date(2025, 1, 1), "1mo", "DD.MM.YYYY", timed=False, column="x")
    columns = [QidColumn("a", held), QidColumn("b", held)]
    mended, broken = in_order(
        release(a=["31.01.2024", "01.02.2024"], b=["01.02.2024", "31.01.2024"]), columns
    )
    assert texts(mended, "b") == ["01.02.2024", "01.02.2024"]
    assert broken == [1]


def test_no_columns_no_change() -> None:
    table = release(a=["5"])
    assert in_order(table, []) == (table, [])


@pytest.mark.parametrize(
    "other",
    [
        grid(0, 10, "0.5"),
        from_dates(date(2024, 1, 1), date(2025, 1, 1), "1mo", "YYYY-MM-DD", timed=False, column="x"),
    ],
)
def test_columns_that_print_differently_have_no_order(other: Grid) -> None:
    assert not are_in_order([QidColumn("a", grid(0, 10)), QidColumn("b", other)])
