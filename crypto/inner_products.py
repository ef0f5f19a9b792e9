"""Entries of public tables by shares of unit vectors, in NumPy: the reference of every :class:`crypto.engine.Engine`.

Bit b of the entry that a unit vector stands for is its inner product with bit b of all entries; a share of the vector
gives a share of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from crypto.blocks import WORD_BITS
from crypto.encoding import Words
from crypto.slices import slices

Places = NDArray[np.intp]

_WORDS_AT_ONCE = 1 << 16
_OCTET = 8


def inner_products(tables: Words, of: Places, vectors: Words, shifts: Words) -> Words:
    """Of every vector, turned: the XOR of the entries where it is 1; uint64, shape (count,).

    tables:   uint64, shape (n_tables, size); size a power of two, at least 64.
    of:       the table of each vector, shape (count,).
    vectors:  bit i mod 64 of word i // 64 stands for entry i + shift, around the end; shape (count, size / 64).
    shifts:   of each vector, below the size: uint64, shape (count,).
    """
    planes = planes_of(tables)
    answers = np.zeros(len(shifts), dtype=np.uint64)
    places = np.arange(planes.shape[1], dtype=np.uint64)
    for strand in _parts(len(shifts), vectors.shape[1]):
        turned, own, tables_of = _turned(vectors[strand], shifts[strand]), answers[strand], of[strand]
        for part in _parts(len(tables_of), planes[0].size):
            alone = part.stop - part.start == 1
            read = planes[tables_of[part.start]][None] if alone else planes[tables_of[part]]
            kept = np.bitwise_xor.reduce(read & turned[part, None], axis=2)
            bits = (np.bitwise_count(kept) & 1).astype(np.uint64)
            own[part] = (bits << places).sum(axis=1, dtype=np.uint64)
    return answers


def _parts(count: int, words: int) -> Iterator[slice]:
    """Cut vectors, of so many words each, into parts that fit a processor's cache, one vector at least."""
    return slices(count, max(1, _WORDS_AT_ONCE // words))


def planes_of(tables: Words) -> Words:
    """The bits of tables, plane by plane: uint64, shape (n_tables, n_bits, size / 64); a plane for zeros, too."""
    n_bits = max(1, int(tables.max(initial=0)).bit_length())
    octets = tables.astype("<u8").view(np.uint8).reshape(*tables.shape, WORD_BITS // _OCTET)
    planes = np.empty((len(tables), n_bits, tables.shape[1] // _OCTET), dtype=np.uint8)
    for first in range(0, n_bits, _OCTET):
        column = np.ascontiguousarray(octets[:, :, first // _OCTET])
        for bit in range(first, min(first + _OCTET, n_bits)):
            planes[:, bit] = np.packbits(column & np.uint8(1 << bit - first), axis=1, bitorder="little")
    return planes.view("<u8").astype(np.uint64, copy=False)


def _turned(vectors: Words, shifts: Words) -> Words:
    """Move entry i of every vector to i + shift, around its end."""
    words, bits = (shifts >> np.uint64(6)).astype(np.intp), (shifts & np.uint64(63))[:, None]
    moved = np.empty_like(vectors)
    for row, (vector, by) in enumerate(zip(vectors, words.tolist(), strict=True)):
        moved[row, by:], moved[row, :by] = vector[: len(vector) - by], vector[len(vector) - by :]
    below = np.roll(moved, 1, axis=1)
    return np.asarray(moved << bits | below >> np.uint64(1) >> (np.uint64(63) - bits), dtype=np.uint64)
