"""Kinds of columns: ranges, dates, codes and order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.drafting.counting import RARE, Counted
from jobs.drafting.kinds import (
    MOST_CELLS,
    Range,
    days_of,
    grouped_by_post,
    icd_of,
    ordered,
    post_of,
    prefixes_of,
    range_of,
    small_counts,
    sounds_sensitive,
    unread_dates,
    words_of,
)


def column(counts: Mapping[str, int], name: str = "x") -> Counted:
    return Counted(name, counts)


def numbers_of(values: Iterable[str]) -> dict[str, float]:
    """Return the values that Python takes for numbers."""
    numbers = {}
    for text in values:
        with suppress(ValueError):
            numbers[text] = float(text)
    return numbers


def range_of_numbers(records: Mapping[float, int]) -> Range | None:
    """Return the range of a column of numbers, each with its records."""
    return range_of(Counted("x", {repr(x): n for x, n in records.items()}, {repr(x): x for x in records}))


@given(st.dictionaries(st.integers(-100_000, 100_000), st.integers(1, 30), min_size=1, max_size=60))
def test_a_range_holds_all_but_rare_ends_and_tells_nothing_of_them(whole: dict[int, int]) -> None:
    numbers: dict[float, int] = {float(number): n for number, n in whole.items()}
    found = range_of_numbers(numbers)
    ordered_numbers = sorted(numbers)
    frequent = [x for x in ordered_numbers if sum(n for y, n in numbers.items() if y <= x) >= RARE]
    frequent = [x for x in frequent if sum(n for y, n in numbers.items() if y >= x) >= RARE]
    if len(frequent) < 2:
        assert found is None or len(frequent) == 0
        return
    assert found is not None
    assert all(found.covers(x) for x in frequent)
    assert 1 <= (found.high - found.low) / found.step <= MOST_CELLS
    assert found.low % (10 * found.step) == 0
    assert found.high % (10 * found.step) == 0
    assert found.step.normalize().as_tuple().digits in ((1,), (2,), (5,))
    first, last = ordered_numbers[0], ordered_numbers[-1]
    if {first, last}.isdisjoint(frequent):
        beyond = {first: first - 12_345, last: last + 12_345}
        assert range_of_numbers({beyond.get(x, x): n for x, n in numbers.items()}) == found


def test_a_range_of_ages_and_of_fractions() -> None:
    ages = range_of_numbers({float(age): 20 for age in range(17, 91)})
    assert ages == Range(Decimal(0), Decimal(100), Decimal(2))
    shares = range_of_numbers({i / 40: 20 for i in range(40)})
    assert shares == Range(Decimal(0), Decimal(1), Decimal("0.02"))
    assert range_of_numbers({5.0: 3, 6.0: 3}) is None
    assert range_of_numbers({5.0: 300}) is None


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("YYYY-MM-DD", "%Y-%m-%d"),
        ("DD.MM.YYYY", "%d.%m.%Y"),
        ("MM/DD/YYYY", "%m/%d/%Y"),
        ("DD/MM/YYYY", "%d/%m/%Y"),
    ],
)
def test_dates_in_their_forms(form: str, written: str) -> None:
    first = date(2021, 3, 5)
    days = {(first + timedelta(n)).strftime(written): 12 for n in range(300)}
    found = days_of(column(days))
    assert found is not None
    assert (found.form, found.step, found.first, found.below) == (
        form,
        "7d",
        date(2021, 3, 1),
        date(2022, 1, 1),
    )
    assert found.rival == ""


@pytest.mark.parametrize("sign", "/-")
def test_dates_that_may_be_meant_either_way_have_a_rival(sign: str) -> None:
    texts = [f"{one:02d}{sign}{two:02d}{sign}2020" for one in range(1, 13) for two in range(1, 13)]
    found = days_of(column(dict.fromkeys(texts, 9)))
    assert found is not None
    forms = {f"MM{sign}DD{sign}YYYY", f"DD{sign}MM{sign}YYYY"}
    assert {found.form, found.rival} == forms
    one_way = days_of(column(dict.fromkeys([*texts, f"31{sign}12{sign}2020"], 9)))
    assert one_way is not None
    assert (one_way.form, one_way.rival) == (f"DD{sign}MM{sign}YYYY", "")


def test_dates_that_mean_the_same_day_both_ways_have_no_rival() -> None:
    found = days_of(column({f"{month:02d}/{month:02d}/2020": 9 for month in range(1, 13)}))
    assert found is not None
    assert found.rival == ""


@pytest.mark.parametrize(
    ("years", "step", "ends"), [(3, "1mo", (2001, 2004)), (25, "1y", (2000, 2030)), (80, "5y", (1940, 2030))]
)
def test_the_step_of_dates_follows_their_range(years: int, step: str, ends: tuple[int, int]) -> None:
    first = date(1941 if years == 80 else 2001, 2, 1)
    days = {str(first + timedelta(days=n * (365 * years // 200))): 10 for n in range(200)}
    found = days_of(column(days))
    assert found is not None
    assert (found.step, found.first.year, found.below.year) == (step, *ends)


def test_numbers_and_words_are_no_dates() -> None:
    assert days_of(column({"20200131": 50, "20200201": 50})) is None
    assert days_of(column({"20200131": 50, "20200201": 50}, "admission_date")) is not None
    assert days_of(column({"Monday": 50, "2020-01-01": 50})) is None


@pytest.mark.parametrize(
    ("name", "values", "version"),
    [
        ("code", ["I21.0", "I21.4", "C50.9"], "10"),
        ("code", ["I21", "C50"], None),
        ("diagnosis_code", ["I21", "C50"], "10"),
        ("Nebendiagnose", ["I21", "C50"], "10"),
        ("diag_1", [f"{n}.{n % 10}" for n in range(200, 230)] + ["V57"], "9"),
        ("weight", [f"{n}.{n % 10}" for n in range(200, 230)], None),
        ("diagnosis", ["flu", "cold"], None),
    ],
)
def test_icd_codes(name: str, values: list[str], version: str | None) -> None:
    assert icd_of(column(dict.fromkeys(values, 20), name)) == version


@pytest.mark.parametrize(
    ("name", "values", "lengths"),
    [
        ("zip", ["12345", "90210"], [1, 3]),
        ("PLZ", ["8001", "1200"], [1, 2]),
        ("area", ["01234", "90210"], [1, 3]),
        ("area", ["11234", "90210"], None),
        ("postcode", ["SW1A 1AA", "E1 6AN"], [1, 4]),
        ("zip", ["unknown!", "12345"], None),
    ],
)
def test_codes_like_zip_codes(name: str, values: list[str], lengths: list[int] | None) -> None:
    assert prefixes_of(column(dict.fromkeys(values, 20), name)) == lengths


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["3", "1", "10", "2"], ["1", "2", "3", "10"]),
        (["10-19", "20-29", "0-9"], ["0-9", "10-19", "20-29"]),
        (["<18", "18-64", "65+"], ["<18", "18-64", "65+"]),
        (["2nd", "1st", "3rd"], ["1st", "2nd", "3rd"]),
        (["High", "low", "medium"], ["low", "medium", "High"]),
        (["Mar", "Jan", "Feb"], ["Jan", "Feb", "Mar"]),
        (["III", "I", "II"], ["I", "II", "III"]),
        (["Bonn", "Lyon", "Oslo"], None),
        (["1", "2"], None),
        (["1 apple", "2 pears", "3 plums", "4 figs"], None),
        (["-2", "-10", "-30", "4"], ["-30", "-10", "-2", "4"]),
        (["-10.5", "1e3", "3.2", "17", "25.5"], ["-10.5", "3.2", "17", "25.5", "1e3"]),
        ([".5", ".25", ".125", "1"], [".125", ".25", ".5", "1"]),
        (["0.5", "-1.5", "0", "1.5", "-0.5"], ["-1.5", "-0.5", "0", "0.5", "1.5"]),
        (["2", "1.0", "1"], ["1", "1.0", "2"]),
        ([".25 mg", "10 mg", "5 mg"], None),
        (["-5 %", "0 %", "5 %"], None),
        (["1.2.1990", "5.12.2001", "13.4.1985"], None),
        (["1-2-1990", "5-12-2001", "13-4-1985"], None),
        (["2 Q 2020", "1 Q 2021", "3 Q 2020"], None),
        (["2-1", "3-0", "0-4"], None),
        (["10 mg", "2.5 mg", "5 mg"], ["2.5 mg", "5 mg", "10 mg"]),
        (["18 \u2013 64", "0 \u2013 17", "65 +"], ["0 \u2013 17", "18 \u2013 64", "65 +"]),
        (
            ["Agree", "Neutral", "Strongly disagree", "Strongly agree", "Disagree"],
            ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"],
        ),
        (["trifft zu", "teils/teils", "trifft nicht zu"], ["trifft nicht zu", "teils/teils", "trifft zu"]),
        (
            ["Satisfied", "Very dissatisfied", "Neutral", "Very satisfied"],
            ["Very dissatisfied", "Neutral", "Satisfied", "Very satisfied"],
        ),
        (["Grade 10", "Grade 2", "Grade 1"], ["Grade 1", "Grade 2", "Grade 10"]),
        (["grade 3", "Grade 2", "Grade 1"], ["Grade 1", "Grade 2", "grade 3"]),
        (["Stage IV", "Stage I", "Stage II"], ["Stage I", "Stage II", "Stage IV"]),
        (["Pflegegrad 3", "Pflegegrad 1", "Pflegegrad 2"], ["Pflegegrad 1", "Pflegegrad 2", "Pflegegrad 3"]),
        (["Year 10-12", "Year 1-6", "Year 7-9"], ["Year 1-6", "Year 7-9", "Year 10-12"]),
        (["Ward 1", "Ward 2", "Ward 3"], None),
        (["Grade 1", "Stage 2", "Grade 3"], None),
        (["Grade 1", "Grade 2", "Grade new"], None),
        (["$10 to $20", "$0 to $10", "$20 or more"], ["$0 to $10", "$10 to $20", "$20 or more"]),
    ],
)
def test_order_where_it_is_obvious(values: list[str], found: list[str] | None) -> None:
    in_order = ordered(values, numbers_of(values))
    assert (in_order and list(in_order.values)) == found


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (["S", "M", "L"], "sizes from XS to XXL"),
        (["Mar", "Jan", "Feb"], "months"),
        (["III", "I", "II"], "Roman numerals"),
        (["10-19", "20-29", "0-9"], "the first number in each value"),
        (["-1", "0", "1"], "numbers"),
    ],
)
def test_the_assumed_scale_is_named(values: list[str], scale: str) -> None:
    in_order = ordered(values, numbers_of(values))
    assert in_order is not None
    assert in_order.scale == scale


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["2023-05", "1999-12"], "months such as 2023-05"),
        (["05/2023", "12.1999"], "months such as 05/2023"),
        (["31.01.23", "1.2.99"], "dates with two-digit years"),
        (["31/01/23 10:00", "1/2/99 09:15:01"], "dates with two-digit years"),
        (["Jan 3 2023", "February 14, 2024"], "dates with the name of a month"),
        (["3 Jan 2023", "14-Feb-24", "3. März 2023"], "dates with the name of a month"),
        (["01/31/2023 10:00 PM", "2/3/2024 1:05:09 am"], "dates with AM and PM"),
        (["2023-13", "2023-05"], None),
        (["3.14", "2.71"], None),
        (["1.2.345", "31.01.2023"], None),
        (["Market 3 2023", "Jan"], None),
        ([], None),
    ],
)
def test_dates_that_no_job_reads(texts: list[str], name: str | None) -> None:
    found = unread_dates(dict.fromkeys(texts, 1))
    assert (found and found.name) == name


@pytest.mark.parametrize("n_others", [5, 6])
def test_nearly_all_values_look_like_dates(n_others: int) -> None:
    found = unread_dates({"2023-05": 95, "never": n_others})
    assert (found is not None) == (n_others == 5)


@pytest.mark.parametrize(
    ("name", "sounds"),
    [
        ("diag_1", True),
        ("Diagnosis", True),
        ("number_diagnoses", False),
        ("diagnosis_date", False),
        ("Hauptdiagnose", True),
        ("Entlassungsdiagnosen", True),
        ("Krankheit", True),
        ("Vorerkrankung", True),
        ("lung_cancer", True),
        ("Haushaltseinkommen", True),
        ("Gehalt", True),
        ("Bruttojahresgehalt", True),
        ("Alkoholgehalt", False),
        ("household_income", True),
        ("salary", True),
        ("Konfession", True),
        ("Religionszugehörigkeit", True),
        ("religion", True),
        ("sexual_orientation", True),
        ("Anzahl_Diagnosen", False),
        ("Krankheitstage", False),
        ("Diagnosedatum", False),
        ("Krankenhaus", False),
        ("age", False),
    ],
)
def test_names_of_sensitive_columns(name: str, sounds: bool) -> None:
    assert sounds_sensitive(name) is sounds


def test_words_of_a_name() -> None:
    assert words_of("patientAge_ICD10 Code") == {"patient", "age", "icd", "10", "code"}


@pytest.mark.parametrize(
    ("name", "code", "parts"),
    [
        ("home", "SW1A 1AA", ["SW", "SW1A", "SW1A 1"]),
        ("home", "M1 1AE", ["M", "M1", "M1 1"]),
        ("postcode", "EC1A1BB", ["EC", "EC1A", "EC1A1"]),
        ("postcode", "SW1A", ["SW"]),
        ("home", "K1A 0B1", ["K", "K1A", "K1A 0"]),
        ("postal_code", "k1a0b1", ["k", "k1a", "k1a0"]),
        ("home", "1234 AB", ["12", "1234"]),
        ("home", "EC1A1BB", None),
        ("home", "12345 AB", None),
        ("home", "0234 AB", None),
    ],
)
def test_postal_codes_of_letters_and_digits(name: str, code: str, parts: list[str] | None) -> None:
    found = post_of(column({code: 20}, name))
    assert (None if found is None else found.levels(code)) == parts


def test_a_tree_of_postal_codes() -> None:
    post = post_of(column(dict.fromkeys(["SW1A 1AA", "SW1A 1AB", "SW1P 3BU", "M1 1AE"], 20), "home"))
    assert post is not None
    tree = grouped_by_post(post, ["SW1A 1AA", "SW1A 1AB", "SW1P 3BU", "M1 1AE"])
    assert tree == {
        "*": {
            "SW": {"SW1A": {"SW1A 1": ["SW1A 1AA", "SW1A 1AB"]}, "SW1P": {"SW1P 3": ["SW1P 3BU"]}},
            "M": {"M1": {"M1 1": ["M1 1AE"]}},
        }
    }


@pytest.mark.parametrize(
    ("records", "high"),
    [
        ({"0": 40, "1": 30, "2": 20, "3": 10}, 4),
        ({"0": 40, "1": 30, "2": 20, "3": 10, "4": 6, "5": 4}, 5),  # ten records have 4 or more
        ({"0": 40, "1": 30, "2": 20, "3": 10, "4": 6}, 4),
        ({"0": 40, "1": 30, "2": 20}, None),
        ({"1": 40, "2": 30, "3": 20, "4": 10}, None),  # codes of categories
        ({"0": 40, "1": 30, "2": 20, "3": 10, "9": 10}, None),  # a code beside counts
        ({"0": 40, "0.5": 30, "1": 20, "2": 10}, None),
        ({"none": 40, "1": 30, "2": 20, "3": 10}, None),
    ],
)
def test_small_counts_have_a_cell_for_each_number(records: dict[str, int], high: int | None) -> None:
    found = small_counts(Counted("children", records, numbers_of(records)))
    assert found == (None if high is None else Range(Decimal(0), Decimal(high), Decimal(1)))


@pytest.mark.parametrize("sign", " _-")
def test_words_of_a_scale_may_be_joined(sign: str) -> None:
    values = [f"Very{sign}High", "Low", "High", f"Very{sign}Low"]
    found = ordered(values, {})
    assert found is not None
    assert found.values == [values[3], "Low", "High", values[0]]
