"""Blocks: packing and the bit transpose against plain Python; products with bit matrices, against sums row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto import blocks
from crypto.blocks import add_products, tables_of
from crypto.errors import RemoteProtocolError
from tests.support.rng import SeededRng


@given(st.integers(0, 2**128 - 1))
def test_bits_of_a_block(value: int) -> None:
    block = np.array([value & (2**64 - 1), value >> 64], dtype=np.uint64)
    bits = blocks.bits_of(block)
    assert bits.tolist() == [value >> i & 1 for i in range(128)]
    assert blocks.block_of(bits).tolist() == block.tolist()


@given(st.lists(st.integers(0, 1), max_size=200))
def test_pack_bits(bits: list[int]) -> None:
    words = blocks.pack_bits(np.array(bits, dtype=np.uint8))
    assert len(words) == blocks.words_for(len(bits))
    assert [int(words[i // 64]) >> (i % 64) & 1 for i in range(len(bits))] == bits
    assert sum(int(w).bit_count() for w in words) == sum(bits)


@pytest.mark.parametrize("width", [1, 2, 5, 64])
def test_transpose(width: int) -> None:
    rows = blocks.random_blocks(SeededRng(width), 64 * width).reshape(128, width)
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
    out = np.empty((64 * width, 2), dtype=np.uint64)
    blocks.transpose_rows(rows.copy(), np.empty(64 * width, dtype=np.uint64), out)
    assert np.array_equal(np.unpackbits(out.view(np.uint8), axis=1, bitorder="little"), bits.T)


def test_blocks_travel_unchanged() -> None:
    some = blocks.random_blocks(SeededRng("blocks"), 5)
    payload = blocks.encode_blocks(some)
    assert len(payload) == 80
    assert np.array_equal(blocks.decode_blocks(payload, 5, "p", "s"), some)
    with pytest.raises(RemoteProtocolError):
        blocks.decode_blocks(payload[:-1], 5, "p", "s")


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
