"""Codes of missing cells: what is taken out of a column, and what stays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.data.sources import source_of_file
from jobs.drafting.codes import without_codes
from jobs.drafting.counting import Counted, counted_columns
from jobs.drafting.guessing import Asked, guess

NONE = Asked()
AGES = {str(i): 20 for i in range(18, 80)}


def counted(texts: Mapping[str, int], tmp_path: Path) -> Counted:
    """Return a column as counted from a file."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x", *(text for text, n in texts.items() for _ in range(n))]) + "\n")
    return without_codes(counted_columns(source_of_file(path), ["x"])["x"])


@pytest.mark.parametrize("code", ["-9", "-99", "-1", "999", "777", "k.A.", "refused"])
def test_codes_set_no_end_and_no_order(code: str, tmp_path: Path) -> None:
    for texts in (AGES, {str(i): 40 for i in range(1, 6)}):
        column = counted({**texts, code: 30}, tmp_path)
        assert column.codes == (code,)
        assert (column.missing, column.respelled[code]) == (30, "")
        guessed = guess(column, NONE)
        assert guessed.keys is not None
        assert code not in str(guessed.keys)
        assert f"{code}: taken for a missing cell" in guessed.why


@pytest.mark.parametrize(
    "texts",
    [
        {**AGES, "99": 30},  # an age
        {**{str(i): 20 for i in range(-20, 20)}, "-9": 20},  # a temperature
        {**{str(i): 20 for i in range(1, 6)}, "9": 20},  # a digit may be a value
        {**AGES, "-9": 9},  # too rare to be written
        {"yes": 30, "no": 30, "-9": 30},
        {"1": 30, "2": 30, "3": 30, "ICU": 20},  # wards
        {str(i): 200 for i in range(-2, 3)},  # a scale
        {str(i): 20 for i in range(-6, 25)},  # a temperature
        {"-3": 100, "-1": 100, "0": 100, "2": 100},
        {"-2": 30, "-1": 30, "0": 30, "+1": 30, "+2": 30},  # grades
        {"-1": 10, "0": 90, "1": 99},  # worse, equal, better: above 5 % of the cells
        {**{str(i): 99 for i in range(0, 30, 5)}, "-5": 60},
    ],
)
def test_values_that_may_be_meant_stay(texts: dict[str, int], tmp_path: Path) -> None:
    column = counted(texts, tmp_path)
    assert column.codes == ()
    assert sum(column.counts.values()) == sum(texts.values())


@pytest.mark.parametrize(
    ("texts", "codes"),
    [
        ({str(i): 40 for i in range(10)} | {"-1": 15}, ("-1",)),  # a number of children
        ({str(i): 90 for i in range(10)} | {"-9": 400, "-8": 11, "-1": 12}, ("-9", "-8", "-1")),
        (
            {str(i): 40 for i in range(18, 80)} | {str(-i): 40 for i in range(1, 6)},
            ("-1", "-2", "-3", "-4", "-5"),
        ),
    ],
)
def test_codes_beside_the_numbers_are_few(
    texts: dict[str, int], codes: tuple[str, ...], tmp_path: Path
) -> None:
    column = counted(texts, tmp_path)
    assert column.codes == codes
    n = sum(texts[code] for code in codes)
    (warning,) = guess(column, NONE).warnings
    assert warning.startswith(f"{', '.join(codes)} in {n} rows of x count as missing")


def test_values_that_may_be_codes_are_told(tmp_path: Path) -> None:
    guessed = guess(counted({str(i): 200 for i in range(-2, 3)}, tmp_path), NONE)
    assert guessed.keys is not None
    assert guessed.keys["order"] == {"values": ["-2", "-1", "0", "1", "2"]}
    (warning,) = guessed.warnings
    assert warning.startswith("-2, -1 of x are taken for numbers: if they are codes of missing cells")


DAYS = {f"{1 + i % 28:02d}.{1 + i % 12:02d}.{2000 + i // 20}": 3 for i in range(400)}


@pytest.mark.parametrize(
    ("none", "n"),
    [("00.00.0000", 100), ("31.12.9999", 30), ("30.02.2023", 600), ("01.01.0001", 10), ("offen", 40)],
)
def test_days_that_are_none_are_codes(none: str, n: int, tmp_path: Path) -> None:
    column = counted({**DAYS, none: n}, tmp_path)
    assert (column.codes, column.missing) == ((none,), n)
    guessed = guess(column, NONE)
    assert guessed.keys is not None
    assert guessed.keys["dates"]["to"] == "2020-01-01"
    (warning,) = guessed.warnings
    assert warning.startswith(f"{none} in {n} rows of x count as missing, since they are no likely days")


@pytest.mark.parametrize(
    "others",
    [
        {"00.00.0000": 9},  # too rare to be written
        {f"99.99.{i}": 20 for i in range(9990, 9994)},  # four codes are too many
        {"offen": 1300},  # more than half of the cells
    ],
)
def test_other_texts_beside_dates_stay(others: dict[str, int], tmp_path: Path) -> None:
    assert counted({**DAYS, **others}, tmp_path).codes == ()
