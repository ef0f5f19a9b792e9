"""Guesses about columns: what is left out, and why; roles; and C."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from jobs.drafting.counting import Counted, joined
from jobs.drafting.guessing import Asked, confidence, guess

NONE = Asked()


def column(name: str, counts: Mapping[str, int], missing: int = 0) -> Counted:
    numbers = {}
    for text in counts:
        try:
            numbers[text] = float(text)
        except ValueError:
            continue
    return Counted(name, counts, numbers, missing)


def by_chance(most: int, n: int) -> dict[str, int]:
    """Return records of whole numbers that are drawn by chance."""
    rng = random.Random(9)  # noqa: S311  the same each time, and no secret
    return dict(Counter(str(rng.randrange(most)) for _ in range(n)))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (column("code", {f"x{i}": 1 for i in range(100)}), "most of its values are different"),
        (column("nr", {str(1000 + i): 1 for i in range(100)}), "its name suggests an id"),
        (column("sum", {str(1000 + i): 1 for i in range(100)}), "nearly all its numbers are different"),
        (column("customerId", {str(7 * i): 3 for i in range(100)}), "'customer' in its name"),
        (column("surname", {f"n{i}": 20 for i in range(100)}), "'surname' in its name"),
        (column("Last_Name", {f"n{i}": 20 for i in range(25)}), "'name' in its name"),
        (column("patient_id", {str(1000 + i): 13 for i in range(300)}), "'patient' in its name"),
        (column("iban", {f"DE{i}": 200 for i in range(19)}), "'iban' in its name"),
        (column("nachname", {f"n{i}": 200 for i in range(15)}), "a part of people's names"),
        (column("Kundennummer", {str(i): 12 for i in range(50)}), "an id of people"),
        (column("pid", {str(i): 2 + i % 3 for i in range(1, 300)}), "an id of people"),
        (column("respondent", {str(i): 2 + i % 3 for i in range(1, 300)}), "an id of people"),
        (column("household", {str(i): 2 + i % 3 for i in range(1, 300)}), "equally frequent, like an id"),
        (column("household_id", {str(9 * i): 5 for i in range(1, 300)}), "an id of people"),
        (column("barcode", {str(4_000_000 + 7919 * i): 1 for i in range(300)}), "an id of people"),
        (column("Kartennr", {str(4_000_000 + 7919 * i): 1 for i in range(300)}), "an id of people"),
        (column("serial", {str(10_000_000 + 7919 * i): 1 for i in range(300)}), "long and of one length"),
        (
            column("lfd", {str(i): 1 + i % 4 for i in range(500)}),
            "follow each other and are equally frequent",
        ),
        (column("geburtsname", {f"n{i}": 12 for i in range(60)}), "a part of people's names"),
        (column("Mädchenname", {f"n{i}": 12 for i in range(60)}), "a part of people's names"),
        (column("handle", {f"n{i}": 12 for i in range(155)}), "a part of people's names"),
        (column("ref", {f"C-{i:05d}": 12 for i in range(40)}), "numbered, like ids"),
        (
            column("at", {f"2024-01-{1 + i % 28:02d}T{i % 24:02d}:05:00Z": 1 for i in range(99)}),
            "have a time zone",
        ),
        (
            column("at", {f"2024-01-{1 + i % 28:02d} {i % 24:02d}:05:00+00": 1 for i in range(99)}),
            "have a time zone",
        ),
        (column("note", {" ".join("abcdefgh") + str(i): 20 for i in range(50)}), "texts of several words"),
        (column("b", {"x": 20, "y": 20}, missing=41), "most of its cells are empty"),
        (column("b", {}, missing=0), "it has no values"),
        (column("b", {"x": 50}), "or it has one value"),
        (
            column("b", {f"x{i}": 9 for i in range(10)} | {"y": 40}),
            "most of its values have fewer than 10 records",
        ),
    ],
)
def test_columns_that_are_left_out(found: Counted, why: str) -> None:
    guessed = guess(found, NONE)
    assert guessed.keys is None
    assert why in guessed.why


@pytest.mark.parametrize(
    ("found", "key"),
    [
        (column("salary_band", {"a": 20, "b": 30}), "role"),
        (column("income", {str(17 * i): 1 for i in range(200)}), "numeric"),
        (column("day", by_chance(365, 5000)), "numeric"),
        (column("weight", by_chance(150, 500)), "numeric"),
        (column("household", {"single": 30, "pair": 30, "family": 20}), "suppress"),
        (column("Wochennummer", {str(i): 30 for i in range(1, 53)}), "numeric"),
        (column("household_size", {str(i): 30 for i in range(1, 9)}), "order"),
        (column("weight", {f"{i / 7:.3f}": 1 for i in range(200)}), "numeric"),
        (column("NO", {f"{i / 7:.3f}": 1 for i in range(200)}), "numeric"),
        (column("patient_class", {"a": 20, "b": 30}), "suppress"),
        (column("town", {"Bonn": 20, "Lyon": 30, "Oslo": 12, "Nice": 2}), "suppress"),
        (column("grade", {"1": 20, "2": 20, "3": 20}), "order"),
        (column("birthdate", {f"19{i:02d}-05-03": 4 for i in range(60)}), "dates"),
    ],
)
def test_columns_and_their_keys(found: Counted, key: str) -> None:
    keys = guess(found, NONE).keys
    assert keys is not None
    assert key in keys


@pytest.mark.parametrize("rare", [0, 3])
def test_rare_codes_are_told_where_there_are_any(rare: int) -> None:
    counts = {f"E1{i}.{i}": 20 for i in range(10)} | ({"I21.4": rare} if rare else {})
    guessed = guess(column("code", counts), Asked(dp=True))
    assert guessed.keys is not None
    assert "icd" in guessed.keys
    assert ("fewer than 10 records are not listed" in guessed.why) is bool(rare)


def test_codes_of_illnesses_are_sensitive() -> None:
    guessed = guess(column("code", {f"E1{i}.{i}": 20 for i in range(10)}), NONE)
    assert guessed.keys == {"role": "sensitive", "missing": "leaf"}
    assert "codes of ICD-10 tell of illnesses" in guessed.why
    plain = guess(column("code", {f"E1{i}": 20 for i in range(10)}), NONE)
    assert plain.role == "qid"


def test_dp_jobs_mark_each_domain_and_protect_all_columns_alike() -> None:
    dp = Asked(sensitive=["ill"], classes=["dead"], dp=True)
    ill = guess(column("ill", {"flu": 20, "cold": 30, "gout": 3}), dp)
    assert ill.keys == {"role": "qid", "taxonomy": {"*": ["cold", "flu"]}, "from_data": "true"}
    dead = guess(column("dead", {"y": 20, "n": 30}), dp)
    assert dead.keys == {"role": "class", "domain": ["n", "y"], "from_data": "true"}
    age = guess(column("age", {str(i): 20 for i in range(50)}, missing=300), dp)
    assert age.keys is not None


def test_the_owner_is_told_of_rare_values() -> None:
    guessed = guess(column("town", {"Bonn": 20, "Lyon": 30, "Oslo": 3, "Nice": 2}), NONE)
    (told,) = guessed.told
    assert "town: 5 rows with 'Oslo' (3), 'Nice' (2)" in told
    assert "Oslo" not in repr(guessed)
    assert "Oslo" not in guessed.why


@pytest.mark.parametrize("asked", [NONE, Asked(dp=True)])
def test_no_draft_has_the_mark_of_suppressed_values(asked: Asked) -> None:
    found = guess(column("ward", {"A": 40, "*": 30, "B": 30}), asked)
    assert found.keys is not None
    assert found.keys.get("suppress") == (None if asked.dp else ["A", "B"])
    assert found.keys.get("taxonomy") == ({"*": ["A", "B"]} if asked.dp else None)
    assert found.told == ("ward: 30 rows with '*' (30): no text for a release",)


def test_frequent_spellings_are_joined_to_the_most_frequent() -> None:
    found = joined(column("town", {"Bonn": 20, "bonn": 30, "BONN": 4, "Lyon": 12}))
    assert found.respelled == {"Bonn": "bonn"}
    assert found.counts == {"bonn": 50, "BONN": 4, "Lyon": 12}


@pytest.mark.parametrize(
    ("share", "c"), [(0.1, "1/2"), (0.4, "1/2"), (0.5, "3/4"), (0.7, "9/10"), (0.75, "19/20"), (0.9, "1")]
)
def test_c_allows_the_most_frequent_value(share: float, c: str) -> None:
    assert confidence(share) == c


@pytest.mark.parametrize(
    ("missing", "more"),
    [(0, {}), (1, {}), (0, {"900": 3}), (60, {})],
    ids=["none", "an empty cell", "numbers beyond an end", "many"],
)
def test_a_row_without_a_number_of_the_range_stays(missing: int, more: dict[str, int]) -> None:
    """Always: a key that depends on a single cell would tell of the cell."""
    guessed = guess(column("age", {str(i): 20 for i in range(50)} | more, missing=missing), NONE)
    assert guessed.keys is not None
    assert guessed.keys["missing"] == "leaf"
    assert guessed.keys["outside"] == "missing"


OF_PEOPLE = (
    *(
        "employee_id",
        "student_id",
        "staff_id",
        "donor_id",
        "resident_id",
        "encounter_id",
        "hadm_id",
        "child_id",
    ),
    *(
        "employee_no",
        "studentNumber",
        "DonorNum",
        "childid",
        "id",
        "ID_2",
        "id_employee",
        "lfd_nr",
        "patient_file_id",
    ),
    *("PatID", "pat_nr", "MitarbeiterNr", "mitarbeiternr", "PersonalNr", "Personalnummer", "PatientenCode"),
    *("Benutzerkennung", "Haushaltsnummer", "study_id", "patient_file_id", "Ortskrankenkassennummer"),
)
"""Names of columns whose values are ids."""


@pytest.mark.parametrize("name", OF_PEOPLE)
@pytest.mark.parametrize("text", ["{}", "X{}y"], ids=["numbers", "texts"])
def test_ids_are_left_out_however_often_they_repeat(name: str, text: str) -> None:
    rng = random.Random(3)  # noqa: S311  the same each time, and no secret
    values = rng.sample(range(1000, 9999), 300)
    found = guess(column(name, {text.format(value): 12 for value in values}), NONE)
    assert found.keys is None
    assert "its name suggests an id" in found.why
    assert found.repeats


@pytest.mark.parametrize(
    ("found", "repeats"),
    [
        (column("x", {str(i): 1 + i % 4 for i in range(500)}), True),
        (column("x", {f"C-{i:05d}": 12 for i in range(40)}), True),
        (column("x", {f"h{i * 7919:x}": 1 + (i < 9) for i in range(100)}), True),
        (column("x", {f"h{i * 7919:x}": 1 for i in range(100)}), False),
        (column("x", {f"came on day {i}": 1 + (i < 9) for i in range(100)}), False),
    ],
)
def test_values_like_ids_may_repeat_for_a_person(found: Counted, repeats: bool) -> None:
    guessed = guess(found, NONE)
    assert (guessed.keys, guessed.repeats) == (None, repeats)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "hospital_id",
            "number_of_children",
            "patient_age",
            "ward",
            "case_type",
            "store_no",
            "regionNumber",
        ),
        *(
            "product_id",
            "ward_nr",
            "admission_source_id",
            "Filialnummer",
            "FilialNr",
            "StationsNr",
            "Hausnummer",
        ),
        *("week_no", "stores_id", "condition_concept_id", "region_code", "paid", "covid"),
    ],
)
def test_numbers_about_people_are_no_ids(name: str) -> None:
    found = guess(column(name, {str(i): 12 for i in range(18, 60)}), Asked())
    assert found.keys is not None
    assert "numeric" in found.keys


def test_marks_of_missing_cells_are_told_at_the_column() -> None:
    """`NA` may be a region."""
    region = replace(column("region", {"EU": 50, "AS": 50}, missing=50), marks=("NA",))
    assert "NA: taken for a missing cell (`missing` under `data`)" in guess(region, Asked()).why


@pytest.mark.parametrize("dp", [False, True])
def test_dates_that_no_job_reads_are_named(dp: bool) -> None:
    """Months are grouped by the year, other dates stay texts. None has an order by its first number."""
    asked = Asked(dp=dp)
    months = guess(column("came", {f"20{y}-{m:02d}": 20 for y in (22, 23) for m in range(1, 13)}), asked)
    assert months.keys is not None
    assert months.keys["prefix"]["lengths"] == ["4"]
    assert "look like months such as 2023-05, which no job reads as dates: write the first day" in months.why
    short = guess(column("came", {f"{d:02d}.{d % 12 + 1:02d}.23": 20 for d in range(1, 16)}), asked)
    assert short.keys is not None
    assert "order" not in short.keys
    assert "look like dates with two-digit years" in short.why
    assert "01.02.23" not in short.why


def test_days_that_do_not_exist_are_told_apart_from_rare_days() -> None:
    days = {f"2024-{m:02d}-{d:02d}": 20 for m in range(1, 13) for d in range(1, 29)}
    found = guess(column("came", {**days, "2024-02-30": 2, "1999-01-01": 3}), NONE)
    assert any("1999-01-01" in told and told.endswith(": beyond the range") for told in found.told)
    assert any("2024-02-30" in told and told.endswith(": no date that exists") for told in found.told)
    assert not any("1999-01-01" in told and "2024-02-30" in told for told in found.told)


@pytest.mark.parametrize("records", [1, 2])
def test_dates_that_no_job_reads_are_left_out_with_a_reason(records: int) -> None:
    texts = [f"Jan {d} {y}" for d in range(1, 29) for y in range(2000, 2010)]
    found = guess(column("came", dict.fromkeys(texts, records)), NONE)
    assert found.keys is None
    assert "look like dates with the name of a month" in found.why


def test_the_comment_names_the_scale() -> None:
    found = guess(column("shirt", {"S": 30, "L": 20, "M": 10}), NONE)
    assert found.keys is not None
    assert found.keys["order"] == {"values": ["S", "M", "L"]}
    assert "values with an order (sizes from XS to XXL)" in found.why
    assert "correct the order if other values are meant" in found.why


def test_a_sensitive_column_like_an_id_has_a_warning() -> None:
    email = column("email", {f"mail{i}@x.de": 1 for i in range(100)})
    guessed = guess(email, Asked(sensitive=["email"]))
    assert guessed.role == "sensitive"
    (warning,) = guessed.warnings
    assert warning.startswith(
        "email: 'email' in its name suggests an id of people; its values are published as they are"
    )
    assert guess(column("ill", {"flu": 20, "cold": 30}), Asked(sensitive=["ill"])).warnings == ()


def test_whole_numbers_that_are_all_different_have_a_warning() -> None:
    (warning,) = guess(column("steps", {str(17 * i): 1 for i in range(200)}), NONE).warnings
    assert warning.startswith("steps: nearly all its whole numbers are different")
    assert guess(column("weight", {f"{i / 7:.3f}": 1 for i in range(200)}), NONE).warnings == ()


@pytest.mark.parametrize(
    ("name", "repeats"),
    [
        ("patient_id", True),
        ("Fallnr", True),
        ("last_name", False),
        ("phone1", False),
        ("address", False),
        ("ip", False),
        ("hadm_id", True),
    ],
)
def test_repeated_values_suggest_a_person_if_strangers_cannot_share_them(name: str, repeats: bool) -> None:
    found = guess(column(name, {f"a{i} {i}": 3 for i in range(100)}), NONE)
    assert (found.keys, found.repeats) == (None, repeats)
