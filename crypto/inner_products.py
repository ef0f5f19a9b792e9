"""Inner products of turned bit vectors with tables, for :mod:`crypto.lookup`, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crypto.blocks import WORD_BITS
from crypto.encoding import Words
from crypto.pieces import slices

Places = NDArray[np.intp]

_WORDS_AT_ONCE = 1 << 16
"""Words that fit a processor's cache."""


def planes_of(tables: Words) -> Words:
    """Return the bits of tables, plane by plane: uint64, shape (n_tables, n_bits, size / 64); at least 1 plane."""
    n_bits = max(1, int(tables.max(initial=0)).bit_length())
    octets = tables.astype("<u8", copy=False).view(np.uint8).reshape(*tables.shape, WORD_BITS // 8)
    planes = np.empty((len(tables), n_bits, tables.shape[1] // 8), dtype=np.uint8)
    for first in range(0, n_bits, 8):
        column = np.ascontiguousarray(octets[:, :, first // 8])
        for bit in range(first, min(first + 8, n_bits)):
            planes[:, bit] = np.packbits(column & np.uint8(1 << bit % 8), axis=1, bitorder="little")
    return planes.view("<u8").astype(np.uint64, copy=False)


def inner_products(planes: Words, of: Places, vectors: Words, shifts: Words) -> Words:
    """Return the inner products of turned vectors with a table each: sums of entries, modulo 2**64.

    planes:   from :func:`planes_of`.
    of:       number of the table of each vector, public: shape (count,).
    vectors:  bit i mod 64 of word i // 64 is entry i: shape (count, words), as many words as a plane.
    shifts:   places by which vectors turn, modulo the size of a table; public: shape (count,).

    Returns uint64, shape (count,).
    """
    words = planes.shape[2]
    products = np.zeros(len(shifts), dtype=np.uint64)
    places = np.arange(planes.shape[1], dtype=np.uint64)
    for strand in slices(len(shifts), max(1, _WORDS_AT_ONCE // vectors.shape[1])):
        turned = _turned(vectors[strand], shifts[strand] & np.uint64(WORD_BITS * words - 1))
        own, tables = products[strand], of[strand]
        for part in slices(len(tables), max(1, _WORDS_AT_ONCE // planes[0].size)):
            read = planes[tables[part]] if part.stop - part.start > 1 else planes[tables[part.start]][None]
            ones = np.bitwise_count(read & turned[part, None]).sum(axis=2, dtype=np.uint32)
            own[part] = (ones << places).sum(axis=1, dtype=np.uint64)
    return products


def folded(vectors: Words, words: int) -> Words:
    """Return the XOR of the parts of each vector; vectors: shape (count, a multiple of words)."""
    parts = vectors.reshape(len(vectors), -1, words)
    return parts[:, 0] if parts.shape[1] == 1 else np.bitwise_xor.reduce(parts, axis=1)


def _turned(vectors: Words, shifts: Words) -> Words:
    """Move entry i of every vector to i + shift, around the end."""
    words, bits = (shifts >> np.uint64(6)).astype(np.intp), (shifts & np.uint64(63))[:, None]
    moved = np.empty_like(vectors)
    for row, (vector, by) in enumerate(zip(vectors, words.tolist(), strict=True)):
        moved[row, by:], moved[row, :by] = vector[: len(vector) - by], vector[len(vector) - by :]
    below = np.roll(moved, 1, axis=1)
    return np.asarray(moved << bits | below >> np.uint64(1) >> (np.uint64(63) - bits), dtype=np.uint64)
