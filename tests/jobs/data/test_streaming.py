"""Pass 1 keeps codes no wider than they need, whatever is found in which batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from anonymize.grid import from_step
from jobs.data import streaming
from jobs.data.coders import BAD, DROPPED, Categorical, Coder, Numeric, Unlisted
from jobs.data.coding import Coding
from jobs.data.streaming import Streamed

MANY = [str(i) for i in range(70_000)]


class Batches(Streamed):
    """A table all of whose columns are alike, in batches."""

    def __init__(self, *batches: Sequence[str]) -> None:
        self._batches = batches

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for values in self._batches:
            column = pa.array(values, pa.string()).dictionary_encode()
            yield pa.RecordBatch.from_arrays([column] * len(columns), columns)

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


@pytest.mark.parametrize(("matched", "entries"), [(False, 5), (True, 8)])
def test_equal_rows_are_joined_while_they_are_read(
    monkeypatch: pytest.MonkeyPatch, matched: bool, entries: int
) -> None:
    """After the third and the seventh row that is kept; where ids are compared, records stay apart, in order."""
    monkeypatch.setattr(streaming, "_MOST_APART", 2)
    batches = [["a", "b", "a"], ["?", "a"], ["c"], ["b"], ["a", "c"]]
    coder = Categorical({"a": 0, "b": 1, "c": 2}, DROPPED)
    coding = Coding({"x": coder}, ("id",) if matched else (), checked=False, outside=False, matched=matched)
    coded = Batches(*batches).collapse(coding)
    assert (coded.rows.read, coded.rows.used, int(coded.weights.sum())) == (9, 8, 8)
    codes = np.repeat(coded.columns["x"].codes, coded.weights).tolist()
    assert Counter(codes) == Counter({0: 4, 1: 2, 2: 2})
    assert len(coded.weights) == entries
    if matched:
        assert codes == [0, 1, 0, 0, 2, 1, 0, 2]
