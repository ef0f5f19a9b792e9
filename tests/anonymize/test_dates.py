"""Cells of days, months and years, and how dates are read and printed."""

from __future__ import annotations

import math
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.dates import (
    ISO,
    DateGrid,
    are_nested,
    calendar_cells,
    calendar_tree,
    from_dates,
    in_iso,
    is_form,
    is_step,
)
from anonymize.errors import SchemaError
from anonymize.taxonomy import Node


def grid(first: str, below: str, step: str, form: str = "YYYY-MM-DD", *, timed: bool = False) -> DateGrid:
    ends = (date.fromisoformat(day) for day in (first, below))
    return from_dates(*ends, step, form, timed=timed, column="day")


def edges(found: DateGrid) -> list[str]:
    return [found.edge_label(i) for i in range(len(found.edges))]


def test_cells_are_days_months_or_years() -> None:
    assert edges(grid("2024-02-26", "2024-03-08", "7d")) == ["2024-02-26", "2024-03-04", "2024-03-08"]
    assert edges(grid("2023-12-28", "2024-03-28", "1mo")) == [
        "2023-12-28",
        "2024-01-28",
        "2024-02-28",
        "2024-03-28",
    ]
    assert edges(grid("1990-05-01", "2020-01-01", "10y"))[1:3] == ["2000-05-01", "2010-05-01"]
    assert edges(grid("9990-01-01", "9999-12-31", "5y"))[-1] == "9999-12-31"


@pytest.mark.parametrize("timed", [True, False])
def test_intervals_print_as_dates_and_are_found_by_them(timed: bool) -> None:
    found = grid("2024-01-01", "2025-01-01", "1mo", "DD.MM.YYYY", timed=timed)
    assert found.label(Node(0, 2)) == "[01.01.2024,01.03.2024)"
    assert found.interval("[01.01.2024,01.03.2024)") == Node(0, 2)


@pytest.mark.parametrize(
    "text", ["2024-02-29", "2024-02-29 10:00:00", "2024-02-29T23:59", "29.02.2024", "29.2.2024"]
)
def test_dates_are_read_with_and_without_a_time(text: str) -> None:
    found = grid("2024-01-01", "2025-01-01", "1mo", "DD.MM.YYYY")
    assert found.text(int(found.number(text))) == "29.02.2024"


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-30",
        "2023-02-29",
        "20240229",
        "2024-02-29x",
        "2024-02-29 25:00",
        "2024-02-29T10:00Z",
        "",
        "45351",
    ],
)
def test_no_date(text: str) -> None:
    assert math.isnan(grid("2024-01-01", "2025-01-01", "1mo").number(text))


@pytest.mark.parametrize(
    ("form", "text", "impossible"),
    [
        (ISO, "2024-02-30", True),
        (ISO, "2023-02-29 10:00", True),
        (ISO, "2024-02-29 25:00", True),
        (ISO, "2024-02-29", False),
        (ISO, "soon", False),
        (ISO, "2024-02-30 late", False),
        ("DD.MM.YYYY", "31.04.2024", True),
        ("DD.MM.YYYY", "2024-04-31", True),
        ("DD.MM.YYYY", "04/31/2024", False),
    ],
)
def test_days_that_do_not_exist(form: str, text: str, impossible: bool) -> None:
    cells = from_dates(date(2024, 1, 1), date(2025, 1, 1), "1mo", form, timed=False, column="x")
    assert cells.is_impossible(text) == impossible


def test_a_time_of_day_is_kept_where_it_is_asked_for() -> None:
    found = grid("2024-01-01", "2024-02-01", "1d", "YYYYMMDD", timed=True)
    assert found.text(int(found.number("20240105 10:02:03"))) == "20240105 10:02:03"
    assert found.text(int(found.number("2024-01-05"))) == "20240105 00:00:00"


def test_domains_without_days_are_refused() -> None:
    with pytest.raises(SchemaError, match="need `from` before `to`"):
        grid("2024-01-01", "2024-01-01", "1d")
    with pytest.raises(SchemaError, match="begin on day 31, which not every month has"):
        grid("2024-01-31", "2025-01-01", "1mo")
    with pytest.raises(SchemaError, match="more than 1048576 cells"):
        grid("0001-01-01", "9999-01-01", "1d")


def test_steps_and_forms() -> None:
    assert all(map(is_step, ("1d", "12mo", "10y")))
    assert not any(map(is_step, ("0d", "1", "1h", "d", "-1d")))
    assert all(map(is_form, ("YYYY-MM-DD", "DD.MM.YYYY", "MM/DD/YYYY", "YYYYMMDD")))
    assert not any(map(is_form, ("YYYY-DD-MM", "DD.MM", "YYYY,MM,DD", "%Y-%m-%d")))


@pytest.mark.parametrize(
    "form", ["YYYY-MM-DD", "DD.MM.YYYY", "MM/DD/YYYY", "DD/MM/YYYY", "YYYYMMDD", "DD-MM-YYYY"]
)
@given(day=st.dates(), rest=st.sampled_from(["", " 12:30", "T01:02:03.5"]))
def test_a_date_of_any_form_in_iso(form: str, day: date, rest: str) -> None:
    text = (
        form.replace("YYYY", f"{day.year:04d}")
        .replace("MM", f"{day.month:02d}")
        .replace("DD", f"{day.day:02d}")
    )
    assert in_iso(text + rest, form) == day.isoformat() + rest


@pytest.mark.parametrize(
    "text", ["31.02.2024", "1.1.24", "01.01.2024 25:00", "01.01.2024x", "2024-01-01", "", "NA"]
)
def test_other_texts_are_no_dates_of_a_form(text: str) -> None:
    assert in_iso(text, "DD.MM.YYYY") is None


def test_calendar_units_hold_their_days() -> None:
    """Against the calendar of the standard library, day by day; every unit of a level lies in one unit above."""
    levels = ("decade", "year", "quarter", "month", "day")
    cells = calendar_cells(date(1999, 1, 1), date(2001, 1, 1), levels, ISO, "x")
    tree = calendar_tree(cells, levels, "*")
    found = [
        (decade, year, quarter, month, day)
        for decade, years in tree["*"].items()
        for year, quarters in years.items()
        for quarter, months in quarters.items()
        for month, days in months.items()
        for day in days
    ]
    days = [date(1999, 1, 1) + timedelta(days=i) for i in range(365 + 366)]
    assert found == [
        (f"{d:%Y}"[:3] + "0s", f"{d:%Y}", f"{d:%Y}-Q{(d.month - 1) // 3 + 1}", f"{d:%Y-%m}", f"{d:%Y-%m-%d}")
        for d in days
    ]
    assert [int(cells.cells(np.array([float(d.toordinal())]))[0]) for d in days] == list(range(len(days)))


@pytest.mark.parametrize(
    ("levels", "tree"),
    [
        (("year",), {"*": ["2024", "2025"]}),
        (("decade", "year"), {"*": {"2020s": ["2024", "2025"]}}),
        (("month",), {"*": [f"{y}-{m:02d}" for y in (2024, 2025) for m in range(1, 13)]}),
        (("year", "quarter"), {"*": {y: [f"{y}-Q{q}" for q in range(1, 5)] for y in ("2024", "2025")}}),
    ],
)
def test_some_levels(levels: tuple[str, ...], tree: object) -> None:
    cells = calendar_cells(date(2024, 1, 1), date(2026, 1, 1), levels, ISO, "x")
    assert calendar_tree(cells, levels, "*") == tree


def test_weeks_are_those_of_the_standard_library() -> None:
    """Years begin and end within weeks: 2020 has 53 weeks, and 2024 begins on a Monday."""
    levels = ("week", "day")
    cells = calendar_cells(date(2019, 12, 25), date(2025, 1, 9), levels, ISO, "x")
    weeks = calendar_tree(cells, levels, "*")["*"]  # type: ignore[call-overload]
    found = {day: week for week, days in weeks.items() for day in days}
    days = [
        date(2019, 12, 25) + timedelta(days=i) for i in range((date(2025, 1, 9) - date(2019, 12, 25)).days)
    ]
    assert found == {f"{day}": f"{day:%G-W%V}" for day in days}
    assert "2020-W53" in weeks
    assert found["2024-12-30"] == "2025-W01"


@pytest.mark.parametrize(
    ("levels", "nested"),
    [
        (("week",), True),
        (("week", "day"), True),
        (("month", "week"), False),
        (("year", "week", "day"), False),
    ],
)
def test_no_level_holds_weeks(levels: tuple[str, ...], nested: bool) -> None:
    assert are_nested(levels) is nested


@pytest.mark.parametrize(
    ("first", "below", "level", "says"),
    [
        (date(2024, 1, 2), date(2024, 3, 1), "month", "`from: 2024-01-02` lies inside a month"),
        (date(2024, 1, 1), date(2024, 3, 2), "month", "`to: 2024-03-02` lies inside a month"),
        (date(2024, 2, 1), date(2025, 1, 1), "quarter", "inside a quarter"),
        (date(2024, 1, 1), date(2024, 7, 1), "year", "inside a year"),
        (date(2024, 1, 1), date(2030, 1, 1), "decade", "inside a decade"),
        (date(2024, 1, 1), date(2024, 3, 5), "week", "`to: 2024-03-05` lies inside a week"),
    ],
)
def test_ends_inside_a_unit_are_refused(first: date, below: date, level: str, says: str) -> None:
    with pytest.raises(SchemaError, match=says) as caught:
        calendar_cells(first, below, (level,), ISO, "x")
    monday = ", a Monday" if level == "week" else ""
    assert caught.value.remedy == f"write the first day of a {level}{monday}"
