"""Products of bit vectors with bit matrices, against sums row by row."""

from __future__ import annotations

import numpy as np
import pytest

from crypto.byte_tables import add_products, tables_of
from tests.support.rng import SeededRng


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (8, 2), (13, 3), (40, 8), (76, 8)])
def test_products_are_sums_of_the_selected_rows(rows: int, width: int) -> None:
    rng = SeededRng((rows, width))
    matrix = np.frombuffer(rng.bytes(8 * rows * width), dtype="<u8").reshape(rows, width)
    octets = -(-rows // 8)
    vectors = np.frombuffer(rng.bytes(20 * octets), dtype=np.uint8).reshape(20, octets)
    tables = tables_of(matrix)
    assert tables.shape == (octets, 256, width)
    sums = np.arange(20 * width, dtype=np.uint64).reshape(20, width)
    expected = sums.copy()
    for vector, total in zip(vectors, expected, strict=True):
        for row, bit in zip(matrix, np.unpackbits(vector, bitorder="little")[:rows], strict=True):
            total ^= row * np.uint64(bit)
    add_products(sums, tables, vectors)
    assert np.array_equal(sums, expected)
