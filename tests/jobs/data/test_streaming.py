"""Pass 1 keeps codes no wider than they need, whatever is found in which batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from anonymize.errors import DataError
from anonymize.grid import from_step
from anonymize.table import Ints
from jobs.data import streaming, unfit
from jobs.data.coders import BAD, DROPPED, Categorical, Coder, Numeric, Unlisted
from jobs.data.coding import Coding
from jobs.data.streaming import Streamed
from jobs.data.unfit import MOST_SHOWN

MANY = [str(i) for i in range(70_000)]


class Batches(Streamed):
    """A table of one column, in batches."""

    identity = "batches"

    def __init__(self, *batches: Sequence[str]) -> None:
        self._batches = batches

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for values in self._batches:
            yield pa.RecordBatch.from_arrays([pa.array(values, pa.string()).dictionary_encode()], columns)

    def place(self, row: int) -> str:
        return f"row {row}"


@pytest.mark.parametrize(
    ("coder", "batches", "codes", "width"),
    [
        (Categorical({"a": 0, "b": 1}, BAD), (["a"], ["b", "a"]), [0, 1, 0], 1),
        (Categorical({str(i): i for i in range(257)}, BAD), (["255"], ["256", "0"]), [255, 256, 0], 2),
        (Numeric(from_step(Decimal(0), Decimal(9), Decimal(1), "x")), (["8", "?", "1"], ["0"]), [8, 1, 0], 1),
        (
            Numeric(from_step(Decimal(0), Decimal(300), Decimal(1), "x")),
            (["?", "200"], ["299"]),
            [200, 299],
            2,
        ),
        (Unlisted(BAD), (MANY[:2], MANY, MANY[::-1]), None, 4),
        (Categorical({"a": 0}, BAD), (), [], 1),
    ],
    ids=["few", "two widths", "dropped", "dropped and more than a byte", "many", "no rows"],
)
def test_codes_are_no_wider_than_they_need(
    coder: Coder, batches: tuple[list[str], ...], codes: list[int] | None, width: int
) -> None:
    coded = Batches(*batches).collapse(Coding({"x": coder}, (), checked=False, outside=False))
    column = coded.columns["x"]
    assert column.codes.dtype.itemsize == width
    if codes is not None:
        assert column.codes.tolist() == codes
    else:
        assert [column.domain[code] for code in column.codes] == [*MANY[:2], *MANY, *MANY[::-1]]
        assert np.issubdtype(column.codes.dtype, np.unsignedinteger)


@pytest.mark.parametrize("most", [0, 1, 3, 100])
def test_texts_are_coded_alike_however_many_are_remembered(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_MOST_KNOWN", most)
    batches = (["b", " a"], ["a", "c", "b"], ["d", "a ", "e", "c"], ["a", "b"])
    coders = {"x": Unlisted(BAD), "y": Categorical({"a": 0, "b": 1}, DROPPED, other=DROPPED)}
    column = (
        Batches(*batches).collapse(Coding({"x": coders["x"]}, (), checked=False, outside=False)).columns["x"]
    )
    assert [column.domain[code] for code in column.codes] == [
        text.strip() for batch in batches for text in batch
    ]
    coded = Batches(*batches).collapse(Coding({"y": coders["y"]}, (), checked=False, outside=False))
    assert coded.columns["y"].codes.tolist() == [1, 0, 0, 1, 0, 0, 1]
    assert coded.rows.dropped == {"y": {"unusable": 4}}


def test_a_text_is_read_once() -> None:
    seen: list[str] = []

    class Noted(Categorical):
        def codes(self, values: Sequence[str]) -> Ints:
            seen.extend(values)
            return super().codes(values)

    Batches(["a", "b"], ["b", "a", "a"], ["c", "a"]).collapse(
        Coding({"x": Noted({"a": 0, "b": 1, "c": 2}, BAD)}, (), checked=False, outside=False)
    )
    assert seen == ["a", "b", "c"]


# ---- values that fit nowhere


class Tables(Batches):
    """A table of several columns, in batches of rows; after them the reader fails where it is told to."""

    def __init__(self, *batches: Sequence[Sequence[str]], fails: bool = False) -> None:
        self._rows = batches
        self._fails = fails

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for rows in self._rows:
            texts = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)]
            chosen = [texts[[*COLUMNS].index(name)].dictionary_encode() for name in columns]
            yield pa.RecordBatch.from_arrays(chosen, list(columns))
        if self._fails:
            raise DataError("data-unreadable", "the table cannot be read")


LETTERS = Categorical({"a": 0, "b": 1}, BAD)
NUMBERS = Numeric(from_step(Decimal(0), Decimal(9), Decimal(1), "y"))
COLUMNS = {"x": LETTERS, "y": NUMBERS}


def refused(source: Streamed, coders: dict[str, Coder] = COLUMNS) -> DataError:
    with pytest.raises(DataError) as caught:
        source.collapse(Coding(coders, (), checked=False, outside=False))
    return caught.value


def test_all_values_that_fit_nowhere_are_told_at_once() -> None:
    """Others read of the first column what they would read of its first value; the owner reads of all of them."""
    error = refused(
        Tables(
            [("a", "1"), ("b", "12"), ("p", "-3")],
            [("q", "1"), ("p", "2"), ("a", "12"), ("b", "1,5")],
        )
    )
    assert (error.error_id, error.column) == ("data-unknown-value", "x")
    assert str(error) == "column x has a value that the column's taxonomy or domain does not list"
    assert error.private == (
        "2 different values in 3 of 7 rows: row 3: 'p' (2 rows) | row 4: 'q' (1 row)"
        " | column y: 3 different values in 4 of 7 rows: row 2: '12' (2 rows) | row 3: '-3' (1 row) | row 7: '1,5'; "
        "write '1.5', with a decimal point (or no thousands separator), or say `decimal: \",\"` under `data` "
        "(1 row) | "
        "smallest number -3, greatest 12"
    )


def test_the_first_column_of_the_job_is_named_wherever_its_value_stands() -> None:
    error = refused(Tables([("a", "12")], [("p", "1")]))
    assert (error.error_id, error.column) == ("data-unknown-value", "x")
    assert error.private == "row 2: 'p' | column y: row 1: '12'"


def test_one_value_in_several_rows() -> None:
    assert refused(Tables([("p", "1"), ("a", "1"), ("p", "1")])).private == "row 1: 'p' (2 of 3 rows)"


@pytest.mark.parametrize(("rest", "told"), [("a", False), ("?", True), ("p", True)])
def test_a_column_in_which_nothing_fits_may_be_another_one(rest: str, told: bool) -> None:
    coder = Categorical({"a": 0, "?": 1}, 1)
    error = refused(Tables([["p"], ["q"]], [[rest]]), {"x": coder})
    assert ("may be that of another column" in error.private) is told


def test_few_values_are_shown_and_all_counted() -> None:
    error = refused(Tables([[value] for value in MANY], [[MANY[0]]]), {"x": LETTERS})
    assert error.private.startswith(
        "70,000 different values in 70,001 of 70,001 rows: row 1: '0' (2 rows) | row 2: "
    )
    assert error.private.count(": '") == MOST_SHOWN
    assert f" | and {len(MANY) - MOST_SHOWN:,} more" in error.private


def test_what_is_kept_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfit, "MOST_COUNTED", 100)
    error = refused(Tables([[value] for value in MANY], [["p" * 100_000]]), {"x": LETTERS})
    assert error.private.startswith("more than 120 different values in 70,001 of 70,001 rows: ")
    assert " | and more than 100 more" in error.private
    assert len(error.private) < 2000


def test_a_table_that_ends_badly_is_refused_for_what_comes_first() -> None:
    assert refused(Tables([("p", "1")], fails=True)).error_id == "data-unknown-value"
    assert refused(Tables([("a", "1")], fails=True)).error_id == "data-unreadable"
