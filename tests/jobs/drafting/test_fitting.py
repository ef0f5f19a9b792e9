"""The words that make a party's table fit a job: whatever is undone is found again, and nothing is invented."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.dates import from_dates
from anonymize.grid import Grid
from jobs.data.coders import Categorical, Numeric
from jobs.data.wording import AS_WRITTEN, Wording, with_point
from jobs.drafting.fitting import Fitted, Near, Own, Wanted, fitted, worded

SEX = Wanted("sex", Categorical({"male": 0, "female": 1, "?": 2}, 2))
WARD = Wanted("ward", Categorical({"surgery-1": 0, "surgery-2": 1, "cardiology": 2, "?": 3}, 3))
INSURED = Wanted("insured", Categorical({"yes": 0, "no": 1}, 0))
AGE = Wanted("age", Numeric(Grid(tuple(Decimal(n) for n in range(0, 101, 10)))))
ADMITTED = Wanted(
    "admitted",
    Numeric(
        from_dates(date(2024, 1, 1), date(2025, 1, 1), "1mo", "YYYY-MM-DD", timed=False, column="admitted")
    ),
)
PATIENT = Wanted("patient")


def own(name: str, *texts: str, **counts: int) -> Own:
    return Own(name, name, dict(Counter(texts)) | counts)


def fit(wanted: Wanted, column: Own, wording: Wording = AS_WRITTEN) -> Fitted:
    (found,) = fitted([wanted], [column], wording, lambda texts: texts)
    return found


@pytest.mark.parametrize(
    ("wanted", "texts", "words"),
    [
        (SEX, ["Male", "FEMALE"], {"Male": "male", "FEMALE": "female"}),
        (SEX, ["m", "f", "M"], {"m": "male", "M": "male", "f": "female"}),
        (SEX, ["male", "f"], {"f": "female"}),
        (SEX, ["NA", "male"], {"NA": ""}),
        (
            WARD,
            ["Surgery 1", "surgery_2", "Cardiology"],
            {"Surgery 1": "surgery-1", "surgery_2": "surgery-2"},
        ),
        (INSURED, ["1", "0"], {"1": "yes", "0": "no"}),
        (INSURED, ["TRUE", "true", "FALSE"], {"TRUE": "yes", "true": "yes", "FALSE": "no"}),
        (INSURED, ["ja", "nein", "-"], {"ja": "yes", "nein": "no", "-": ""}),
    ],
)
def test_values_in_another_spelling(wanted: Wanted, texts: list[str], words: Mapping[str, str]) -> None:
    found = fit(wanted, own(wanted.name, *texts))
    assert {text: found.words[text] for text in words} == words
    assert not found.others
    assert found.hints


@pytest.mark.parametrize(
    ("wanted", "texts", "others"),
    [
        (SEX, ["male", "divers"], {"divers": 1}),
        (SEX, ["w", "m"], {"w": 1}),
        (WARD, ["surgery", "s"], {"surgery": 1, "s": 1}),  # the beginning of two values
        (AGE, ["12", "130", "old"], {"130": 1, "old": 1}),
        (ADMITTED, ["2024-03-01", "2023-03-01"], {"2023-03-01": 1}),
        (ADMITTED, ["01.03.2024", "31.02.2024"], {"01.03.2024": 1, "31.02.2024": 1}),  # too few are dates
    ],
)
def test_nothing_is_guessed_where_nothing_is_clear(
    wanted: Wanted, texts: list[str], others: Mapping[str, int]
) -> None:
    assert fit(wanted, own(wanted.name, *texts)).others == others


def test_a_value_of_another_column_is_no_mark_of_missing_cells() -> None:
    country = Wanted("country", Categorical({"NA": 0, "DE": 1}, 0))
    table = [own("sex", "male", "NA"), own("country", "NA", "DE")]
    fits = fitted([SEX, country], table, AS_WRITTEN, list)
    found = worded(fits, [SEX, country], table, AS_WRITTEN)
    assert (found.missing, found.values) == ((), {"sex": {"NA": ""}})


@pytest.mark.parametrize("form", ["DD.MM.YYYY", "MM/DD/YYYY", "DD/MM/YYYY", "YYYYMMDD", "DD-MM-YYYY"])
def test_the_form_of_dates(form: str) -> None:
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(366)]
    texts = [form.replace("YYYY", f"{d:%Y}").replace("MM", f"{d:%m}").replace("DD", f"{d:%d}") for d in days]
    found = fit(ADMITTED, own("admitted", *texts))
    assert (found.form, found.words, found.others) == (form, {}, {})
    read = Wording(dates={"admitted": form}).reader("admitted")
    assert read is not None
    assert [read(text) for text in texts] == [str(d) for d in days]
    assert "possible, too" not in found.hints[0]


def test_dates_that_no_job_reads_are_named() -> None:
    found = fit(ADMITTED, own("admitted", "31.01.24", "01.02.24"))
    assert "look like dates with two-digit years" in found.hints[0]
    assert found.form == ""


def test_dates_that_can_be_read_in_two_ways() -> None:
    found = fit(ADMITTED, own("admitted", "01/02/2024", "03/04/2024"))
    assert "DD/MM/YYYY is possible, too" in found.hints[0]


def test_a_column_that_is_taken_leaves_a_single_column_to_another() -> None:
    days = ["2024-01-31", "2024-02-29"]
    left = Wanted("left", ADMITTED.coder)
    found = fitted(
        [ADMITTED, left], [own("came", *days), own("day_left", *days)], AS_WRITTEN, lambda texts: texts
    )
    assert [each.own for each in found] == ["came", "day_left"]


def test_dates_in_the_form_of_the_job_that_fit_another_form() -> None:
    cells = from_dates(date(2024, 1, 1), date(2025, 1, 1), "1mo", "MM/DD/YYYY", timed=False, column="x")
    found = fit(Wanted("x", Numeric(cells)), own("x", "01/02/2024", "12/11/2024"))
    assert found.form == ""
    assert "every date fits DD/MM/YYYY, too: if that is meant, write `dates: {x: DD/MM/YYYY}`" in found.hints
    assert not fit(Wanted("x", Numeric(cells)), own("x", "01/02/2024", "12/31/2024")).hints
    assert not fit(ADMITTED, own("admitted", "2024-02-01", "2024-03-04")).hints


def test_decimal_commas_are_numbers() -> None:
    (found,) = fitted([AGE], [own("age", "12,5", "30,0")], AS_WRITTEN, with_point)
    assert not found.others


def test_names() -> None:
    table = [
        own("PATIENT", "1", "2"),
        own("Age at entry", "12", "14"),
        own("gender", "m", "f"),
        own("Admission", "01.12.2024"),
        own("other", "12"),
    ]
    fits = fitted([SEX, AGE, ADMITTED, PATIENT, WARD], table, AS_WRITTEN, list)
    assert [found.own for found in fits] == ["gender", "Age at entry", "Admission", "PATIENT", None]
    assert fits[-1].why == (
        "no column of the table can be meant by name and values; "
        "write `rename: {OUR COLUMN: ward}` for the right column"
    )


def test_a_column_that_nearly_fits_is_asked_about() -> None:
    """Too few of its records fit for a guess: nothing is renamed, and the owner is asked with the share."""
    table = [own("x", "surgery-1", "surgery-2", "icu", "er"), own("y", "cardiology", "a", "b", "c", "d")]
    (found,) = fitted([WARD], table, AS_WRITTEN, list)
    assert found.own is None
    assert found.near == {"ward": Near("x", 0.5, "50% of the column's records fit")}
    assert worded([found], [WARD], table, AS_WRITTEN) == AS_WRITTEN


def test_a_name_that_is_nearly_right_is_asked_about() -> None:
    (found,) = fitted([PATIENT], [own("patent", "1", "2"), own("other", "3")], AS_WRITTEN, list)
    assert (found.own, found.near["patient"].meant) == (None, "patent")
    assert found.near["patient"].why == f"the names are alike by {2 * 6 / 13:.0%}"
    (found,) = fitted([PATIENT], [own("zzz", "1", "2")], AS_WRITTEN, list)
    assert found.near == {}


def test_a_value_that_is_nearly_a_listed_value_is_asked_about() -> None:
    found = fit(WARD, own("ward", "cardiology", "cardiolgy", "intensive", "surgery-2"))
    assert found.others == {"cardiolgy": 1, "intensive": 1}
    assert {text: near.meant for text, near in found.near.items()} == {"cardiolgy": "cardiology"}
    assert found.words == {}


def test_few_values_are_asked_about() -> None:
    texts = [f"cardiology{'x' * n}" for n in range(1, 5)] + ["cardiolog", "cardiolo", "ardiology"]
    assert len(fit(WARD, own("ward", *texts)).near) <= 5
    many = Wanted("many", Categorical({f"value {n}": n for n in range(2000)}, 0))
    assert fit(many, own("many", "valu 1")).near == {}


def test_two_columns_with_fitting_values_are_told() -> None:
    (found,) = fitted([SEX], [own("a", "male"), own("b", "f", "m")], AS_WRITTEN, list)
    assert (found.own, found.why) == (
        None,
        "several columns of the table can be meant: a, b; write `rename: {OUR COLUMN: sex}` for the right column",
    )


def test_a_column_of_numbers_is_asked_about_by_its_values() -> None:
    """Numbers of any kind may lie in a range: nothing is renamed, and the owner is asked if all fit."""
    table = [
        own("x", "a"),
        own("Alter", "12", "20"),
        own("Kinder", "1", "2"),
        own("Einkommen", "12", "99000"),
    ]
    (found,) = fitted([AGE], table, AS_WRITTEN, list)
    assert found.own is None
    assert found.why.startswith(
        "no column of the table has the name, and the values alone do not decide; write"
    )
    assert found.near["age"] == Near("Alter", 1.0, "100% of the column's records fit, as for Kinder")
    assert worded([found], [AGE], table, AS_WRITTEN) == AS_WRITTEN
    (found,) = fitted([AGE], [own("Einkommen", "12", "99000")], AS_WRITTEN, list)
    assert found.near == {}
    assert "no column of the table can be meant by name and values" in found.why


def test_words_of_the_configuration_stay() -> None:
    before = Wording(missing=("-9",), rename={"geschl": "sex"}, values={"sex": {"w": "female"}})
    table = [Own("geschl", "sex", {"w": 3, "M": 2, "-9": 1}), Own("station", "station", {"Cardiology": 2})]
    fits = fitted([SEX, WARD], table, before, list)
    found = worded(fits, [SEX, WARD], table, before)
    assert found.missing == ("-9",)
    assert found.rename == {"geschl": "sex", "station": "ward"}
    assert found.values == {"sex": {"w": "female", "M": "male"}, "ward": {"Cardiology": "cardiology"}}


SPELL = st.sampled_from([str, str.upper, str.title, lambda t: t.replace("-", " "), lambda t: f" {t}"])


@given(st.lists(st.tuples(st.sampled_from(["surgery-1", "surgery-2", "cardiology"]), SPELL), min_size=1))
def test_every_spelling_is_undone(cells: list[tuple[str, object]]) -> None:
    texts = [spell(value) for value, spell in cells]  # type: ignore[operator]
    table = [own("the ward", *texts)]
    fits = fitted([WARD], table, AS_WRITTEN, list)
    assert fits[0].own == "the ward"
    read = worded(fits, [WARD], table, AS_WRITTEN).reader("ward") or str
    assert [read(text).strip() for text in texts] == [value for value, _ in cells]


def test_no_value_is_shown_in_a_repr() -> None:
    rng = random.Random(1)  # noqa: S311
    secret = f"secret-{rng.random()}"
    column = own("sex", secret, "f")
    assert secret not in repr(column) + repr(fit(SEX, column))


@pytest.mark.parametrize(
    ("listed", "texts"),
    [
        (["<=50K", ">50K"], ["<50K", "=50K"]),
        (["1", "-1", "0"], ["+1", "±1"]),
        (["A", "B", "A+"], ["A-", "A*"]),
        (["10", "15", "20"], ["1.0", "1.5", "2,0"]),
        (["positive", "negative"], ["+-", "p/n"]),
    ],
)
def test_a_sign_is_never_dropped(listed: list[str], texts: list[str]) -> None:
    wanted = Wanted("x", Categorical({value: i for i, value in enumerate(listed)}, 0))
    found = fit(wanted, own("x", *texts))
    assert {text: value for text, value in found.words.items() if value} == {}


def test_two_different_texts_are_not_one_value() -> None:
    wanted = Wanted("x", Categorical({"Paris": 0, "Lyon": 1}, 0))
    found = fit(wanted, own("x", "Par", "Pa", "Lyon"))
    assert not found.words
    assert set(found.others) == {"Par", "Pa"}
