"""Numbers that are kept in pass 1: rows that differ in a number alone stand apart, in the same cell."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonymize.errors import DataError
from jobs.data.coders import canonical
from jobs.data.sources import Csv
from jobs.lkc.checked import verify_table
from jobs.lkc.forms.anatomy import load_raw
from jobs.reading import load_table
from jobs.release.csv import read_csv
from tests.support import jobs
from tests.support.blocks import COLUMNS, job_of, released, rows_of

EXACT: dict[str, Any] = {"release": "anatomy", "quasi": "exact"}


def rows(*ages: str) -> list[dict[str, str]]:
    (row,) = rows_of(1)
    return [{**row, "age": age, "job": "?"} for age in ages]


SPELLINGS = {
    "5": ["5", "5.0", "05", "+5", " 5", "5 ", "0.5e1", "50e-1", "5.0000000000000000001", "005.", "5E0"],
    "0": ["0", "-0", "+0.00", "0e9", "-0e-9"],
    "7.25": ["7.25", "+7.250", "725e-2", "007.25"],
    "0.1": ["0.1", ".1", "0.1000000000000000055511151231257827"],
    "0.0000001": ["1e-7", "0.0000001"],
    "30": ["30", "3e1", "3E+1"],
}
"""By number, as it is printed, texts that are read as this double."""


def test_a_number_is_printed_in_one_way_however_it_was_written(tmp_path: Path) -> None:
    ages = [text for texts in SPELLINGS.values() for text in texts]
    task, out = released(tmp_path, job_of(columns=COLUMNS, **EXACT), rows(*ages))
    table = read_csv(out / "groups.csv", ["group", "age", "job", "paid"])
    found = Counter(age for _, age, _, _ in jobs.multiset(table).elements())
    assert found == {number: len(texts) for number, texts in SPELLINGS.items()}
    verify_table(task, out)


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(-1.7976931348623157e308)
@example(2.0**53 + 2)
def test_the_canonical_form_is_read_as_the_same_double(number: float) -> None:
    """No shorter digits are, as Python's own printing of doubles; nothing is left to say of them."""
    for text in (
        repr(number),
        f"{number:+.17e}",
        format(Decimal(number), "f") + (".0" if number % 1 == 0 else ""),
    ):
        (found,) = canonical([text])
        assert float(found) == number
        assert re.fullmatch(r"0|-?([1-9][0-9]*|(0|[1-9][0-9]*)\.[0-9]*[1-9])", found)
        assert Decimal(found) == Decimal(repr(number))


def test_numbers_stand_apart_in_their_cell(tmp_path: Path) -> None:
    """A missing value that is kept as a leaf is published as that; a row without a number is dropped."""
    ages = ["5", "5.5", "6", "5", "7.25", "?", ""]
    task, out = released(tmp_path, job_of(columns=COLUMNS, **EXACT), rows(*ages))
    table = read_csv(out / "groups.csv", ["group", "age", "job", "paid"])
    found = sorted((age, job) for _, age, job, _ in jobs.multiset(table).elements())
    assert found == sorted((age, "?") for age in ages[:5])
    loaded = load_raw(Csv(tmp_path / "table.csv"), task)
    assert set(loaded.table.qid[0].tolist()) == {0}
    assert loaded.table.n_records == 5 == len(loaded.raw_of_records["age"].codes)
    plain = load_table(Csv(tmp_path / "table.csv"), jobs.task_of(job_of()))
    assert (len(plain.table.cells), plain.raw) == (1, {})


def test_a_number_outside_its_domain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="age") as caught:
        released(tmp_path, job_of(columns=COLUMNS, **EXACT), rows("5", "80"))
    assert caught.value.error_id == "data-outside-domain"
    assert "80" not in str(caught.value)
