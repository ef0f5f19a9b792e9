"""Pass 1 keeps codes no wider than they need, whatever is found in which batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from anonymize.grid import from_step
from jobs.data.coders import BAD, Categorical, Coder, Numeric, Unlisted
from jobs.data.coding import Coding
from jobs.data.streaming import Streamed

MANY = [str(i) for i in range(70_000)]


class Batches(Streamed):
    """A table of one column, in batches."""

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
